"""The packages and their rooms: who imports whom; what is offered is typed, and knows no item of a lesson."""

import re
import subprocess
import sys

from tree import ROOT, clean_environment


def test_no_room_imports_one_above_it_and_no_circles():
    code = "import sys; sys.path.insert(0, ''); from importlinter import cli; cli.lint_imports_command()"
    command = [sys.executable, "-P", "-c", code, "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=clean_environment(PYTHONPATH=""))
    assert done.returncode == 0 and "Contracts: " in done.stdout, done.stdout + done.stderr


def test_no_room_but_the_lessons_knows_an_item_of_a_lesson():
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("lessons/*/tasks.toml")]
    ids = {id for text in texts for id in re.findall(r'(?m)^id = "(\w+\.\d+)"', text)}
    assert len(ids) > 100
    for path in (*ROOT.glob("labs/**/*.py"), *ROOT.glob("teaching/**/*.py")):
        assert ids & set(re.findall(r"[\w.]+", path.read_text(encoding="utf-8"))) == set(), path
