"""Scripts in the styles of sites' documentation, written for this test: no false alarm, and each mistake found.

Their last line says what is to be found.
"""

from pathlib import Path

import pytest

from labs.slurm import check

SCRIPTS = sorted((Path(__file__).parent / "styles").glob("*.sh"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_is_wrong_is_found_and_nothing_else(path, course, monkeypatch):
    (course / "notebooks" / "batches.txt").write_text("128\n" * 4)
    text = path.read_text(encoding="utf-8")
    expected = text.rsplit("# found: ", 1)[1].strip()
    findings = [one.text() for one in check.look_at(text, "local", course).findings]
    assert len(findings) == (expected != "nothing"), "\n".join(findings)
    assert all(expected in one for one in findings)
