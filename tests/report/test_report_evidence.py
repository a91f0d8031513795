"""What the lessons say a report shows beside their tasks: it can be there."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import reported
from tree import ROOT

from labs import files
from labs.checks import tasks
from labs.checks.kept import read
from labs.report import document, evidence
from labs.report.course import look
from labs.report.gather import gather_report
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import all_reduce, backward, forward, gradient, load, program, update

LESSONS = tasks.lessons()
ITEMS = [item for lesson in LESSONS.values() for item in lesson.task]


def test_evidence_names_scripts_that_there_are_and_runs_that_the_lessons_make():
    sources = "\n".join(path.read_text() for path in (ROOT / "solutions").glob("*.py"))
    named = re.findall(r"name=f?[\"']([^\"']+)", sources)
    named += [f"{name}_local_w1" for name in named]
    named += [f"{path.stem}_w1" for path in (ROOT / "solutions/scripts").glob("*.py")]
    named += [f"{path.stem}_7_w1" for path in (ROOT / "solutions/slurm").glob("*.sh")]  # submitted by hand
    named += [f"maxbatch_{model}_32" for model in ("ResNet50V2", "ResNet152V2")]
    made = [re.sub(r"\{[^}]*\}", "1", name) for name in named]
    shown = [item for item in ITEMS if item.evidence != tasks.Evidence()]
    assert {item.id for item in shown} == {"T4", "T5", "T6", "S1", "H1", "T7", "T8", "T9", "T10", "W1", "F1", "P1"}
    for item in shown:
        for pattern in item.evidence.runs:
            assert any(re.fullmatch(pattern, name) for name in made), f"{item.id}: {pattern}"
        for name in item.evidence.scripts:
            assert (ROOT / "solutions/scripts" / name).is_file(), f"{item.id}: {name}"
        for name in item.evidence.batch:
            assert (ROOT / "solutions/slurm" / name).is_file(), f"{item.id}: {name}"


def test_the_outcome_of_a_prediction_is_that_of_a_run_that_is_shown():
    patterns = [pattern for item in ITEMS for pattern in item.evidence.runs]
    predicted = [item for item in ITEMS if item.kind == "prediction" and item.outcome]
    assert len(predicted) == 7
    for item in predicted:
        for name in filter(None, (item.outcome.of, item.outcome.by)):
            assert any(re.fullmatch(pattern, name) for pattern in patterns), f"{item.id}: {name}"


def test_the_outcome_compares_largest_batches_of_equal_budgets_only():
    def search(model, largest, memory):
        found = {"model": model, "image_size": 32, "device": "a GPU", "memory": memory, "largest": largest}
        return {f"maxbatch_{model}_32.maxbatch.json": found}

    small, large = search("ResNet50V2", 512, 2**30), search("ResNet152V2", 256, 2**30)
    prediction = tasks.task("resnet152.6")
    assert evidence.outcome(SimpleNamespace(measured=small | large), prediction).value == 2
    small = search("ResNet50V2", 64, 2**27)
    assert "cannot be compared" in evidence.outcome(SimpleNamespace(measured=small | large), prediction).text
    assert evidence.outcome(SimpleNamespace(measured=large), prediction) is None


@pytest.mark.parametrize(
    ("text", "items"), [(None, {}), ('{"items": {"resnet50.1": {"state": "right"}}}', {"resnet50.1"})]
)
def test_progress_of_any_folder_can_be_read(tmp_path, text, items):
    path = Path(tmp_path, "progress.json")
    if text:
        path.write_text(text)
    found, damage, data = read(path)
    assert set(found) == set(items) and damage is None and data == (text and text.encode())


@program
def one_message(rank, K, L, M):
    load(rank)
    for layer in range(L):
        forward(layer, rank)
    for layer in reversed(range(L)):
        backward(layer, rank)
    all_reduce(*map(gradient, range(L)))
    for layer in range(L):
        update(layer)


def test_the_best_schedules_of_a_student_stand_beside_their_answer(tmp_path, monkeypatch):
    root = reported.course(tmp_path, {"P1": "It sends one message."})
    monkeypatch.setenv("LABS_RUNS", str(root / "notebooks/runs"))
    game.show("schedule.1", one_message)
    game.show("schedule.2", one_message)  # right, and above its bar
    report, drawn = gather_report(look(root))
    (task,) = [each for each in report.tasks if each.id == "P1"]
    assert [each.name for each in task.figures] == ["P1-1", "P1-2"] and set(drawn) >= {"P1-1", "P1-2"}
    assert task.figures[0].caption == "schedule.1 Plain data parallelism: one's best schedule of the example"
    assert "K = 4, L = 6, M = 4: 29.6 ms" in task.figures[0].alt
    assert document.svg(drawn["P1-1"]).lstrip().startswith("<?xml")
    files.write(
        root / "notebooks/runs/schedules.json",
        '{"schedule.1": {"programs": [1, 2, 3, 4]}, "schedule.2": {"programs": 5}}',
    )
    report, _ = gather_report(look(root))
    assert [each.figures for each in report.tasks if each.id == "P1"] == [[]]
