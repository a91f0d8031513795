"""Guards on the real notebooks: they are executed, in step with their source, and show nothing that they should not."""

import re

import pytest
from nbformat import read
from tree import ROOT

from labs.blanks import blanks
from teaching.author import build
from teaching.author.regions import regions, strip_markers

# Without notebooks this parameter is None, and every test that gets it fails instead of vanishing.
NAMES = sorted(path.stem for path in (ROOT / "solutions").glob("*.py")) or [None]


def test_sources_and_generated_files_agree_and_solutions_are_executed():
    assert build.check(ROOT) == []


@pytest.mark.parametrize("name", NAMES, ids=str)
def test_what_a_notebook_says_and_shows(name):
    solution, student = (read(ROOT / folder / f"{name}.ipynb", 4) for folder in ("solutions", "notebooks"))
    assert re.search(r"\d\s+minutes? of computing on 2 cores", student.cells[0].source)
    for cell in [*solution.cells, *student.cells]:
        assert not cell.metadata.get("tags"), "which could leave out a cell, or excuse its error"
        for output in cell.get("outputs", ()):
            text = output.get("data", {}).get("text/plain", "")
            # neither `<History object at 0x...>` nor the mark with which horovodrun begins the lines of ranks
            assert not re.search(r"<[\w.]+ object at 0x|\[\d+\]<stdout>", text + output.get("text", ""))
            if any(kind.startswith("image/") for kind in output.get("data", {})):
                assert len(text) >= 20 and not text.startswith("<"), "an image without a text alternative"


@pytest.mark.parametrize("name", sorted(p.name for p in (ROOT / "solutions/scripts").glob("*.py")) or [None], ids=str)
def test_a_script_has_its_blanks_for_students_alone(name):
    text, student = ((ROOT / folder / "scripts" / name).read_text() for folder in ("solutions", "notebooks"))
    assert blanks(text) == [] and (student != strip_markers(text)) == bool(regions(text))
    # a region leaves a blank, or the code given in its place, which may be one; one without regions is given whole
    lines = text.split("\n")
    open_ones = [region for region in regions(text) if all("..." in lines[number] for number in region.given)]
    assert bool(blanks(student)) == bool(open_ones)
