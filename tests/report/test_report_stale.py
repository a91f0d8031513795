"""Each kind of finding: named where it is so, and not where it is not."""

import json
from datetime import UTC, datetime

import pytest
import reported
from reported import changed

from labs import files
from labs.course.release import digest
from labs.report import course, findings, form, gather_report, stale

EARLY, LATE = (datetime(2026, 1, day, tzinfo=UTC).timestamp() for day in (1, 3))  # the runs are of January 2


def found(root):
    """{(kind, task): [texts]} of the findings about a course."""
    told = {}
    for each in findings(root):
        told.setdefault((each.kind, each.task), []).append(each.text)
    return told


def kinds(root):
    return {kind for kind, _ in found(root)}


@pytest.fixture
def root(tmp_path):
    """A course in which nothing is to be found: a study in turns, of the script that is there, then an answer."""
    reported.course(tmp_path, {"T5": "The speedup is 1.6."}, {"notebooks/scripts/ResNet50.py": reported.DONE})
    sha = digest(reported.DONE.encode())
    runs = {name: changed(record, script_sha256=sha) for name, record in reported.study().items()}
    return reported.saved(reported.keep(tmp_path, runs), LATE)


def runs(root):
    return {name: held.run for name, held in course.look(root).held.items()}


def test_where_all_agrees_nothing_is_found(root):
    assert found(root) == {}


def test_a_script_that_changed_after_its_runs_is_named(root):
    script = root / "notebooks/scripts/ResNet50.py"
    files.write(script, reported.DONE + "# new\n")
    (said,) = found(root)["script changed", "T5"]
    assert "ResNet50.py has changed since ResNet50_w1, ResNet50_w2 ran" in said
    files.write(script, reported.DONE)
    assert kinds(root) == set()


def test_a_run_without_the_hash_of_its_script_says_nothing_about_it(root):
    reported.keep(root, {name: changed(record, script_sha256=None) for name, record in runs(root).items()})
    files.write(root / "notebooks/scripts/ResNet50.py", reported.DONE + "# new\n")
    assert kinds(root) == set()


def test_an_answer_that_was_saved_before_its_run_is_named(root):
    reported.saved(root, EARLY)
    assert "ResNet50_w1, ResNet50_w2 ended" in found(root)["answer older than its run", "T5"][0]


def test_an_answer_that_stayed_while_its_runs_were_made_again_is_named_though_its_notebook_was_saved(root):
    assert kinds(root) == set()  # the answer is seen, on January 3
    later = {name: changed(r, finished="2026-01-04T10:00:00+00:00") for name, r in runs(root).items()}
    reported.saved(reported.keep(root, later), LATE + 10 * 86400)
    assert ("answer older than its run", "T5") in found(root)
    files.write(root / "notebooks/06_a_job_for_slurm.ipynb", reported.notebook(reported.answer("T5", "It is 1.5 now.")))
    assert kinds(root) == set()


def test_a_damaged_register_of_answers_is_begun_anew(root):
    files.write(root / "notebooks/runs" / stale.SEEN, '{"T5": [')
    assert kinds(root) == set()
    assert json.loads((root / "notebooks/runs" / stale.SEEN).read_text())["T5"]["when"].startswith("2026-01-03")


def shows(*entries):
    """A notebook's cell whose output says which runs it shows: (file, kind, started)."""
    said = {file: {"kind": kind, "started": started} for file, kind, started in entries}
    output = {"output_type": "display_data", "data": {}, "metadata": {"labs": {"shows": said}}}
    return {"cell_type": "code", "source": "tables.scaling(runs)", "outputs": [output]}


def with_output(root, *entries):
    files.write(root / "notebooks/05_resnet50_scaling.ipynb", reported.notebook(shows(*entries)))
    return reported.saved(root, LATE)


def test_an_output_of_an_older_record_is_named(root):
    now = runs(root)["ResNet50_w1"].started
    with_output(root, ("ResNet50_w1.json", "measured", now))
    assert kinds(root) == set()
    with_output(root, ("ResNet50_w1.json", "measured", "2026-01-01T08:00:00+00:00"))
    ((place, said),) = found(root).items()
    assert place == ("output of an older record", "05_resnet50_scaling") and "shows ResNet50_w1 as it was" in said[0]
    with_output(root, ("gone.json", "measured", now))
    assert "gone" in found(root)["output of an older record", "05_resnet50_scaling"][0]


def test_tables_and_figures_of_a_notebook_say_which_runs_they_show(root, monkeypatch):
    from labs import results
    from labs.show import plots, tables

    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw, metadata=None: displayed.append(metadata))
    measured = results.load([root / "notebooks/runs"])
    tables.scaling(measured)
    plots.show(plots.scaling(measured))
    one, two = (held.run for held in course.look(root).held.values())
    plots.show(plots.rounds(two, one))
    assert len(displayed) == 3 and all(metadata == displayed[0] for metadata in displayed)
    said = displayed[0]["labs"]["shows"]
    assert said == {f"{n}.json": {"kind": "measured", "started": r.started} for n, r in runs(root).items()}
    with_output(root, *((file, *each.values()) for file, each in said.items()))
    assert kinds(root) == set()


def test_figures_on_recorded_runs_are_named_where_own_ones_are_asked_for(root):
    with_output(root, ("laptop_w1.json", "recorded", None))
    assert kinds(root) == set()  # beside own runs, a recorded one may stand
    for path in (root / "notebooks/runs").glob("ResNet50*"):
        path.unlink()
    told = found(root)
    assert set(told) == {("not measured by you", "T6")}
    assert "laptop_w1 (recorded)" in told["not measured by you", "T6"][0]


@pytest.mark.parametrize("kind", ["recorded", "simulated"])
def test_records_that_were_not_measured_here_are_named(root, kind):
    reported.keep(root, {name: changed(record, kind=kind) for name, record in runs(root).items()})
    assert f"ResNet50_w1, ResNet50_w2: {kind}" in found(root)["not measured by you", "T5"][0]


def test_a_copy_of_a_run_is_named(root):
    reported.keep(root, {"ResNet50_w3": changed(runs(root)["ResNet50_w2"], name="ResNet50_w3")})
    assert "hold the same times to the last digit" in found(root)["counted twice", "T5"][0]


def other_times(record, **values):
    """The record of another run of the same training."""
    record = changed(record, **values)
    for epoch in record.epochs:
        epoch.seconds *= 1.003
    return record


def test_the_same_training_measured_at_two_times_is_named_and_other_settings_are_not(root):
    again = dict(name="ResNet50_1_w1", study=None, job_id="1")
    reported.keep(root, {"ResNet50_1_w1": other_times(runs(root)["ResNet50_w1"], **again)})
    assert "ResNet50_w1 and ResNet50_1_w1 are the same training" in found(root)["counted twice", "T5"][0]
    other = changed(runs(root)["ResNet50_1_w1"], configuration={"seed": 1})
    reported.keep(root, {"ResNet50_1_w1": other})
    assert "counted twice" not in kinds(root)


def test_runs_of_another_script_are_no_second_measurement(root):
    again = dict(name="ResNet50_1_w1", study=None, job_id="1", script_sha256="0" * 64)
    reported.keep(root, {"ResNet50_1_w1": other_times(runs(root)["ResNet50_w1"], **again)})
    assert "counted twice" not in kinds(root)


def test_an_oversubscribed_run_is_named_where_its_speed_is_used(root):
    crowd = other_times(runs(root)["ResNet50_w2"], name="ResNet50_w2_crowded", oversubscribed=True, study="another")
    reported.keep(root, {"ResNet50_w2_crowded": crowd})
    assert kinds(root) == set()  # it is on record, and nobody uses it
    cell = reported.answer("T5", "See ResNet50_w2_crowded: it works.")
    files.write(root / "notebooks/06_a_job_for_slurm.ipynb", reported.notebook(cell))
    assert "ResNet50_w2_crowded: more workers than" in found(reported.saved(root, LATE))["oversubscribed", "T5"][0]


def test_an_oversubscribed_run_of_the_study_is_named(root):
    reported.keep(root, {"ResNet50_w2": changed(runs(root)["ResNet50_w2"], oversubscribed=True)})
    assert {("oversubscribed", "T5"), ("oversubscribed", "T6")} <= set(found(root))


def test_runs_of_different_machines_are_named(root):
    record = runs(root)["ResNet50_w2"]
    reported.keep(root, {"ResNet50_w2": changed(record, machine={"cpu": "Xeon", "cores": 40, "gpus": []})})
    assert (
        "ResNet50_w1 on AMD EPYC with 2 cores; ResNet50_w2 on Xeon with 40 cores"
        in (found(root)["different machines", "T5"][0])
    )


def test_runs_of_different_machines_have_no_figure_of_rounds_and_stop_no_report(root):
    def captions():
        made, _ = gather_report(course.look(root))
        return [figure.caption for task in made.tasks if task.id == "T5" for figure in task.figures]

    assert any(caption.startswith("Epochs and speedup by round") for caption in captions())
    record = runs(root)["ResNet50_w2"]
    reported.keep(root, {"ResNet50_w2": changed(record, machine={"cpu": "Xeon", "cores": 40, "gpus": []})})
    assert not any(caption.startswith("Epochs and speedup by round") for caption in captions())


def test_a_speedup_without_repeats_is_named(root):
    short = {}
    for name, record in runs(root).items():
        short[name] = changed(record, epochs=record.epochs[:2])
    reported.keep(root, short)
    said = found(root)["no repeats", "T5"]
    assert len(said) == 1 and "ResNet50_w2: a speedup of" in said[0]


def test_a_finding_stands_in_the_report(root, tmp_path_factory):
    from pdf import Pdf

    from labs import report

    files.write(root / "notebooks/scripts/ResNet50.py", reported.DONE + "# new\n")
    made = report.make(tmp_path_factory.mktemp("out"), start=root)
    assert [(f.kind, f.task) for f in made.report.findings] == [
        ("script changed", task) for task in ("T6", "T5", "T10")
    ]
    assert "T5, script changed: ResNet50.py has changed since" in Pdf(made.pdf).text
    read = form.Report.model_validate_json(made.json.read_text())
    assert read.findings == made.report.findings


def test_an_optional_lesson_is_missing_nowhere_and_reported_where_something_of_it_was_done(root):
    notebook = "26_where_a_step_goes"

    def reported_of():
        made, _ = gather_report(course.look(root))
        return [item.id for item in made.items if item.notebook == notebook], "\n".join(made.missing)

    items, missing = reported_of()
    assert not items and notebook not in missing and "05_resnet50_scaling" in missing
    kept = {"state": "open", "points": 0, "attempts": 1, "when": "", "answer": "..."}
    progress = {"version": 1, "items": {"step.1": kept}}
    files.write(root / "notebooks/runs/progress.json", json.dumps(progress))
    assert not reported_of()[0]  # its blanks were run, and nothing was answered
    progress["items"]["step.2"] = kept | {"state": "right", "points": 2, "answer": "<function parts>"}
    files.write(root / "notebooks/runs/progress.json", json.dumps(progress))
    items, missing = reported_of()
    assert "step.2" in items and f"{notebook}: not done are " in missing
