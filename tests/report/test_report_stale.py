"""Each kind of finding: named where it is so, and not where it is not."""

import json
from datetime import UTC, datetime

import pytest
import reported
from reported import changed

from labs import files, results
from labs.files import digest
from labs.report import course, gather_report
from labs.report.gather import findings_of
from labs.show import plots, tables

EARLY, LATE = (datetime(2026, 1, day, tzinfo=UTC).timestamp() for day in (1, 3))  # the runs are of January 2
SHORT, RECORDED = lambda run: {"epochs": run.epochs[:2]}, lambda run: {"kind": "recorded"}
XEON = {"cpu": "Xeon", "cores": 40, "gpus": []}


def found(root):
    """{(kind, task): texts} of the findings about a course."""
    told = {}
    for each in findings_of(course.course_around(root)):
        told[each["kind"], each["task"]] = told.get((each["kind"], each["task"]), "") + each["text"]
    return told


@pytest.fixture
def root(tmp_path):
    """A course in which nothing is to be found: a study in turns, of the script that is there, then an answer."""
    reported.course(tmp_path, {"T5": "The speedup is 1.6."}, {"notebooks/scripts/ResNet50.py": reported.DONE})
    sha = digest(reported.DONE.encode())
    runs = {name: changed(record, script_sha256=sha) for name, record in reported.study().items()}
    root = reported.saved(reported.keep(tmp_path, runs), LATE)
    assert found(root) == {}
    return root


def runs(root):
    return course.course_around(root).runs_on_record


def again(run, **values):
    """The record of another run of the same training, called ResNet50_1_w1."""
    made = changed(run, **{"name": "ResNet50_1_w1", "study": None, "job_id": "1"} | values)
    for epoch in made.epochs:
        epoch.seconds *= 1.003
    return {made.name: made}


def test_runs_that_do_not_carry_what_is_said_of_them_are_named(root):
    own = runs(root)
    one, two = own.values()
    short, recorded = ({n: changed(r, **of(r)) for n, r in own.items()} for of in (SHORT, RECORDED))
    for made, kind, said in (
        ({"ResNet50_w3": changed(two, name="ResNet50_w3")}, "counted twice", "hold the same times to the last digit"),
        (again(one), "counted twice", "ResNet50_w1, ResNet50_1_w1 are the same training"),
        (again(one, configuration={"seed": 1}), "counted twice", None),
        (again(one, script_sha256="0" * 64), "counted twice", None),
        ({"ResNet50_w2": changed(two, oversubscribed=True)}, "oversubscribed", "ResNet50_w2: more workers than"),
        ({"ResNet50_w2": changed(two, machine=XEON)}, "different machines", "ResNet50_w2 on Xeon with 40 cores"),
        (short, "no repeats", "ResNet50_w2: a speedup of"),
        (recorded, "not measured by you", "ResNet50_w1, ResNet50_w2: recorded"),
    ):
        reported.keep(root, own | made)
        told = found(root).get((kind, "T5"))
        assert (told is None) if said is None else (said in told), kind
        for path in (root / "notebooks/runs").glob("ResNet50*"):
            path.unlink()


def test_a_script_that_changed_after_its_runs_is_named(root):
    files.write(root / "notebooks/scripts/ResNet50.py", reported.DONE + "# new\n")
    told = found(root)
    assert "ResNet50.py has changed since ResNet50_w1, ResNet50_w2 ran" in told["script changed", "T5"]
    assert [*told] == [("script changed", task) for task in ("T6", "T5", "T10")]
    reported.keep(root, {name: changed(record, script_sha256=None) for name, record in runs(root).items()})
    assert found(root) == {}  # nothing is known of it


def test_an_answer_that_was_written_before_its_runs_is_named(root):
    told = found(reported.saved(root, EARLY))
    assert "ResNet50_w1, ResNet50_w2 ended" in told["answer older than its run", "T5"]


def with_output(root, *entries):
    """The findings where a notebook's output says which runs it shows: (file, kind, started)."""
    said = {file: {"kind": kind, "started": started} for file, kind, started in entries}
    output = {"output_type": "display_data", "data": {}, "metadata": {"labs": {"shows": said}}}
    cell = {"cell_type": "code", "source": "tables.scaling(runs)", "outputs": [output]}
    files.write(root / "notebooks/05_resnet50_scaling.ipynb", reported.notebook(cell))
    return found(reported.saved(root, LATE))


def test_outputs_that_show_other_records_are_named(root, monkeypatch):
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata=None: displayed.append(metadata))
    measured = results.load([root / "notebooks/runs"])
    one, two = runs(root).values()
    tables.scaling(measured)
    plots.show(plots.scaling(measured))
    plots.show(plots.rounds(two, one))
    assert len(displayed) == 3 and all(metadata == displayed[0] for metadata in displayed)
    said = displayed[0]["labs"]["shows"]
    assert said == {f"{n}.json": {"kind": "measured", "started": r.started} for n, r in runs(root).items()}
    assert with_output(root, *((file, *each.values()) for file, each in said.items())) == {}
    for shown in (("ResNet50_w1.json", "measured", "2026-01-01"), ("gone.json", "measured", one.started)):
        ((place, text),) = with_output(root, shown).items()
        assert place == ("output of an older record", "05_resnet50_scaling")
        assert f"shows {shown[0].removesuffix('.json')} as it was" in text
    assert with_output(root, ("laptop_w1.json", "recorded", None)) == {}  # beside own runs, a recorded one may stand
    for path in (root / "notebooks/runs").glob("ResNet50*"):
        path.unlink()
    ((place, text),) = found(root).items()
    assert place == ("not measured by you", "T6") and "laptop_w1 (recorded)" in text


def test_an_oversubscribed_run_is_named_where_its_speed_is_used(root):
    name = "ResNet50_w2_crowded"
    reported.keep(root, again(runs(root)["ResNet50_w2"], name=name, oversubscribed=True, study="another"))
    assert found(root) == {}  # it is on record, and nobody uses it
    cell = reported.answer("T5", f"See {name}: it works.")
    files.write(root / "notebooks/06_a_job_for_slurm.ipynb", reported.notebook(cell))
    assert f"{name}: more workers than" in found(reported.saved(root, LATE))["oversubscribed", "T5"]


def test_an_optional_lesson_is_missing_nowhere_and_reported_where_something_of_it_was_done(root):
    notebook = "26_where_a_step_goes"
    open_item = {"state": "open", "points": 0, "attempts": 1, "when": "", "answer": "..."}
    right = open_item | {"state": "right", "points": 2, "answer": "<function parts>"}
    for items in ({}, {"step.1": open_item}, {"step.1": open_item, "step.2": right}):
        progress = json.dumps({"version": 1, "items": items})
        files.write(root / "notebooks/runs/progress.json", progress)
        made, _ = gather_report(course.course_around(root))
        told = [item["id"] for item in made["items"] if item["notebook"] == notebook]
        missing = [line for line in made["missing"] if line.startswith(f"{notebook}: not done are ")]
        assert ("step.2" in told) == bool(told) == bool(missing) == ("step.2" in items)
        assert "05_resnet50_scaling" in "\n".join(made["missing"]) and "resnet50.13" not in "\n".join(made["missing"])


def test_runs_of_different_machines_have_no_figure_of_rounds(root):
    for drawn in (True, False):
        made, _ = gather_report(course.course_around(root))
        captions = [f["caption"] for task in made["tasks"] if task["id"] == "T5" for f in task["figures"]]
        assert any(caption.startswith("Epochs and speedup by round") for caption in captions) == drawn
        reported.keep(root, {"ResNet50_w2": changed(runs(root)["ResNet50_w2"], machine=XEON)})
