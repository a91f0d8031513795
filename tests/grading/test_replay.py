"""A notebook in replay: what trains hands back the submitted runs, also what trains in the background."""

import io
import zipfile

import pytest
from made_class import NOTEBOOKS, ROOT, packed, study, work

from labs.checks import tasks
from teaching.grading import handed, judge, needless, reference

TURNS = """
from labs import jobs
from labs.checks import check

turns = jobs.Turns()
for workers in {0}:
    turns.start("scripts/ResNet50.py", "--n_gpus", workers, name=f"ResNet50_w{{workers}}")
turns.begin()
print(turns, turns.progress())
found = [job.name for job in turns.wait()] == [f"ResNet50_w{{workers}}" for workers in {0}]
check("concepts.14", 27 if found and turns.state == "finished" else 0)  # 27 is right
"""


def test_turns_in_the_background_are_the_submitted_runs(run):
    logs = {f"notebooks/runs/ResNet50_w{workers}.out": b"Epoch 1/2\n" for workers in (1, 2)}
    _, told = run("01_basic_concepts", *(TURNS.format(workers) for workers in ((1, 2), (1, 3))), **logs)
    assert [each.state for _, each in run.each] == ["right", "wrong"], told


def test_a_script_that_was_not_touched_is_not_done_and_no_mistake(run):
    """`labs report` packs scripts that were changed: others are as they were given."""
    code = 'from labs.checks import check\nready = check("resnet50.3", "scripts/ResNet50.py")'
    found, told = run("05_resnet50_scaling", code)
    assert (found["resnet50.3"].state, found["resnet50.3"].how) == ("open", "inside") and not told
    assert "of ResNet50.py is still blank" in found["resnet50.3"].text


def test_the_report_is_judged_as_it_was_handed_in(tmp_path):
    """In replay none is made. What does not agree is left to a person."""
    ((id, asked),) = ((id, each) for id, each in reference.asked(ROOT, "11_report").items() if each.report)
    assert asked.names == ("final",) and not any(each.report for each in reference.asked(ROOT, NOTEBOOKS[1]).values())
    with zipfile.ZipFile(io.BytesIO(packed(work(study(1))))) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    for place, (contents, expected) in enumerate([
        (whole, ("right", "outside")),
        (whole | {"others/old.zip": b"PK"}, ("right", "outside")),
        (whole | {"report.pdf": b"%PDF-other"}, ("wrong", "person")),
        ({name: content for name, content in whole.items() if name != "report.json"}, ("wrong", "person")),
        ({name: content for name, content in whole.items() if "report" not in name}, ("open", "outside")),
    ]):  # fmt: skip
        result = judge._report(handed.Submission("001", contents, tmp_path / str(place)), id)
        assert (result.state, result.how) == expected, (place, result)


# ---- programs of notebook 31, played outside of the sandbox

BEGIN = """
from labs.checks import check
from lessons.write_the_schedule.programs import *
"""
PROGRAM = """
@program
def data_parallel(rank, K, L, M):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    all_reduce(*[gradient(layer) for layer in range(L)])
    for layer in range(L):
        update(layer)
"""
CHECK = "\ncheck('schedule.1', data_parallel)\n"
SLOW = PROGRAM.replace(
    "all_reduce(*[gradient(layer) for layer in range(L)])", "[all_reduce(gradient(n)) for n in range(L)]"
)


# (the program, how it is judged, what is said)
PROGRAMS = (
    (PROGRAM, "right", "Every rank computes its own micro-batch"),
    (SLOW, "wrong", "With K = 4, L = 6, M = 4, the sums are right, but the step takes 38.6 ms"),
)


def test_a_program_is_played_outside(run):
    _, told = run("31_write_the_schedule", BEGIN, *(program + CHECK for program, *_ in PROGRAMS))
    assert [line.partition(":")[0] for line in told] == ["schedule.1 is called in 2 cells"]
    for (_, state, text), (id, each) in zip(PROGRAMS, run.each, strict=True):
        assert (id, each.state, each.how) == ("schedule.1", state, "outside") and text in each.text, each


# ---- what need not run

GIVEN = (
    "import numpy as np\nfrom labs.show import plots",
    "def race(count):\n    return np.arange(count)",
    "slow = race(9)\nplots.show(slow)",
    "rows = []\nfor row in range(3):\n    rows.append(row)",
    "if slow:\n    rows = [slow]\nprint(rows)",
    "model = dict(a=1)",
    "model.update(b=2)",
    "tf.config.threads(1)",
    "x = ...\ncheck('concepts.1', x)",
    "plots.show(x)",
)


# (what a student writes for x; which statements stay, of each cell)
@pytest.mark.parametrize("x, stay", [
    ("3", ""),
    ("slow[0]", "0; 1; 2; 4: if slow:\n    rows = [slow]"),  # what is shown could be changed
    ("model['b']", "5; 6"),
    ("len(rows)", "0; 1; 2; 3; 4"),  # `if` may leave the rows as they are
    ("[row for row in 'ab']", ""),
    ("(lambda: rows)()", "0; 1; 2; 3; 4"),
    ("race(2)", "0: import numpy as np; 1"),
    ("3\nreturn x", "all"),  # what cannot be read leaves all as it is
])  # fmt: skip
def test_what_no_check_depends_on_does_not_run(x, stay):
    sources = [*GIVEN[:8], GIVEN[8].replace("...", x), "plots.show(x)  # theirs now", GIVEN[9]]
    wanted = [""] * 7 + sources[7:9] + ["", ""]
    for place, _, only in (each.partition(": ") for each in stay.split("; ") if stay not in ("", "all")):
        wanted[int(place)] = only or GIVEN[int(place)]
    assert needless.without(sources, GIVEN) == (sources if stay == "all" else wanted)


@pytest.mark.parametrize("notebook", [lesson.notebook for lesson in tasks.on_path("practical")])
def test_every_check_of_a_solution_runs(notebook):
    whole, given = (list(form.values()) for form in reference.forms(ROOT, notebook))
    left = needless.without(whole, given)
    assert sum(map(len, left)) < sum(map(len, whole))
    assert [text.count("check(") for text in left if "check(" in text] == [
        text.count("check(") for text in whole if "check(" in text
    ]
