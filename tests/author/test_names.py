"""docs/students/labs.md: the names of `labs` that several sources in solutions/ use."""

import pytest
from tree import ROOT

from labs import files
from labs.blanks import BuildError
from teaching.author import names


def test_the_page_holds_what_the_sources_use():
    page = (ROOT / names.PAGE).read_text()
    assert names.page(ROOT) == {names.PAGE: page} and max(map(len, page.splitlines())) <= 120
    assert page.count("\n- `") == sum(sources > 1 for sources in names.used(ROOT).values())
    assert "- `allreduce`: The mean over the ranks" in page and "- `rank`: Number of this process, from 0.\n" in page


def test_a_name_without_a_description_is_refused(tmp_path):
    files.write(tmp_path / "labs/__init__.py", "")
    files.write(tmp_path / "labs/local.py", "def stop(): pass\n")
    files.write(tmp_path / "solutions/01_first.py", "from labs import local\nlocal.stop()\n")
    with pytest.raises(BuildError, match="labs.local.stop, .* has no description"):
        names.page(tmp_path)
