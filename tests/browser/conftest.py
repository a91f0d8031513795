"""One JupyterLab and one browser for all tests here; skipped by name where something is missing, but not in CI."""

import functools
import json
import os
from pathlib import Path

import pytest
from tree import ROOT

from labs import files

from . import lab


@pytest.fixture(scope="package")
def course(tmp_path_factory):
    """A temporary copy of the course tree, without runs; its notebooks are those that students get."""
    problem = lab.missing()
    if problem:
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


@pytest.fixture(scope="package")
def kept():
    """Folder for screenshots and times: $LABS_SCREENSHOTS, else build/browser; emptied of older ones."""
    folder = Path(os.environ.get("LABS_SCREENSHOTS") or ROOT / "build/browser")
    folder.mkdir(parents=True, exist_ok=True)
    for path in [*folder.glob("[0-9][0-9]*_*.png"), *folder.glob("latency.json")]:
        path.unlink()
    return folder


@pytest.fixture(scope="package")
def latency(kept):
    """{widget: {control: [seconds from key to picture]}}, written to latency.json at the end. Nothing depends on it."""
    times = {}
    yield times
    files.write(kept / "latency.json", json.dumps(times, indent=1) + "\n")
