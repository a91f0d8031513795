"""One JupyterLab and one browser for all tests here; skipped by name where something is missing, but not in CI."""

import functools
import os

import pytest

from . import lab


@pytest.fixture(scope="package")
def course(tmp_path_factory):
    """A temporary copy of the course tree, without runs; its notebooks are those that students get."""
    if problem := lab.missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(problem)
    folder = tmp_path_factory.mktemp("browser") / "course"
    lab.copy_course(folder)
    return folder


@pytest.fixture(scope="package")
def address(course):
    with lab.server(course) as url:
        yield url


# Not for the session: an open browser is a running event loop, and other tests execute notebooks with one of their own.
@pytest.fixture(scope="package")
def chromium(course):
    with lab.browser() as opened:
        yield opened


@pytest.fixture(scope="package")
def open_notebook(address, chromium):
    """Function: the student notebook of this name, opened once; it stays open, with its kernel, for later tests."""
    return functools.cache(lambda name: lab.Notebook(chromium, address, name))
