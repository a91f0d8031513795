"""The README is one page; docs/measured.md names the commands behind its figures, and no benchmark is missing."""

import re
from pathlib import Path

from labs import cli

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs/measured.md"


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1500


def rows():
    """(command, what, figure) of each row."""
    text = MEASURED.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| command |")]
    return [tuple(cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")) for line in lines]


def test_each_row_names_a_command_that_there_is(capsys):
    found, command = rows(), None
    assert len(found) > 10
    for row in found:
        assert len(row) == 3 and all(row[1:]), row
        command = row[0] or command  # an empty cell: the command of the row above
        program, *words = re.fullmatch(r"`(.+)`", command)[1].split()
        if program == "make":
            assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), row
        elif program == "python":
            assert (ROOT / words[0]).is_file(), row
        else:
            assert program == "labs", row
            cli.LABS.parser().parse_args(words)  # else it exits


def test_no_benchmark_is_left_out():
    text = MEASURED.read_text(encoding="utf-8")
    named = set(re.findall(r"benchmarks/(\w+\.py)", text))
    assert named == {path.name for path in (ROOT / "benchmarks").glob("*.py")}
