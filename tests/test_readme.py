"""docs/measured.md names the commands behind its figures, and no benchmark is missing."""

import re

from tree import ROOT

from labs import cli


def test_each_row_of_what_was_measured_names_a_command_that_there_is_and_no_benchmark_is_left_out():
    text, command = (ROOT / "docs/measured.md").read_text(encoding="utf-8"), None
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if re.match(r"\| (?!command \|)", line)]
    assert len(rows) > 10
    for row in rows:
        assert len(row) == 3 and row[1].strip() and row[2].strip(), row
        command = row[0].strip() or command  # an empty cell: the command of the row above
        program, *words = command.strip("`").split()
        if program == "make":
            assert f"\n{words[0]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), row
        elif program == "python":
            assert (ROOT / words[0]).is_file(), row
        else:
            assert program == "labs", row
            cli.LABS.parser().parse_args(words)  # else it exits
    assert set(re.findall(r"benchmarks/(\w+\.py)", text)) == {path.name for path in ROOT.glob("benchmarks/*.py")}
