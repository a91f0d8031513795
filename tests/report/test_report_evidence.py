"""What the lessons say a report shows beside their tasks: it can be there."""

import json
import re

import reported
from tree import ROOT

from labs import files
from labs.checks import tasks
from labs.report import evidence
from labs.report.course import course_around
from labs.report.gather import gather_report
from lessons.write_the_schedule import game
from lessons.write_the_schedule.programs import all_reduce, backward, forward, gradient, load, program, update

ITEMS = [item for lesson in tasks.lessons().values() for item in lesson.task]


def test_evidence_names_scripts_that_there_are_and_runs_that_the_lessons_make():
    sources = "\n".join(path.read_text() for path in (ROOT / "solutions").glob("*.py"))
    named = re.findall(r"name=f?[\"']([^\"']+)", sources)
    named += [f"{name}_local_w1" for name in named]
    named += [f"{path.stem}_w1" for path in (ROOT / "solutions/scripts").glob("*.py")]
    named += [f"{path.stem}_7_w1" for path in (ROOT / "solutions/slurm").glob("*.sh")]  # submitted by hand
    named += [f"maxbatch_{model}_32" for model in ("ResNet50V2", "ResNet152V2")]
    made = [re.sub(r"\{[^}]*\}", "1", name) for name in named]
    shown = [item for item in ITEMS if item.evidence != tasks.Evidence()]
    assert len(shown) == 12
    for item in shown:
        lost = [pattern for pattern in item.evidence.runs if not any(re.fullmatch(pattern, name) for name in made)]
        places = [f"scripts/{name}" for name in item.evidence.scripts] + [f"slurm/{n}" for n in item.evidence.batch]
        lost += [place for place in places if not (ROOT / "solutions" / place).is_file()]
        assert (item.id, lost) == (item.id, [])


def test_an_answer_cites_the_runs_that_it_names_and_no_other():
    names = ["ResNet50_w1", "ResNet50_w16", "study"]
    answers = {"As ResNet50_w16 shows,": ["ResNet50_w16"], "(ResNet50_w1), runs/study.": ["ResNet50_w1", "study"]}
    answers |= {"my-ResNet50_w1 and a study of ResNet50_w1-b": [], None: []}
    assert {answer: evidence.cited(answer, names) for answer in answers} == answers


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
    report, drawn = gather_report(course_around(root))
    (task,) = [each for each in report["tasks"] if each["id"] == "P1"]
    assert [each["name"] for each in task["figures"]] == ["P1-1", "P1-2"] and set(drawn) >= {"P1-1", "P1-2"}
    assert "K = 4, L = 6, M = 4: 29.6 ms" in task["figures"][0]["alt"] and "schedule.1" in task["figures"][0]["caption"]
    strange = {"schedule.1": {"programs": [1, 2, 3, 4]}, "schedule.2": {"programs": 5}}
    files.write(root / "notebooks/runs/schedules.json", json.dumps(strange))
    report, _ = gather_report(course_around(root))
    assert [each["figures"] for each in report["tasks"] if each["id"] == "P1"] == [[]]
