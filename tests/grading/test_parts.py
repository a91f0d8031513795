"""A notebook that comes in several parts: all go where the first goes, and a hand-in from before is judged by them."""

import json
from pathlib import Path

import pytest

from labs.author import sources
from labs.checks import tasks
from labs.course import release as course_release
from labs.errors import UseError
from labs.grading import check, handed, judge, release

ROOT = Path(__file__).resolve().parents[2]
FIRST, PART, THIRD = "07_horovod_training", "07b_going_on_and_many_nodes", "07c_why_does_it_stand_still"
ANSWERED = "07.22"
CUT = [
    (FIRST, PART, ANSWERED),
    ("08_resnet152_scaling", "08b_both_networks_together", "08.17"),
    ("13_write_the_schedule", "13a_zero_schedules", "13.5"),
    ("13b_harder_schedules", "13c_pipeline_schedules", "13.11"),  # itself a part of 13_write_the_schedule
]


def whole(*answered, names=(FIRST, PART)):
    """The bytes of the notebook as it was before it came in two, with the solutions of some items."""
    cells, last = [], None
    for name in names:
        complete, student = sources.pair(ROOT, ROOT / f"solutions/{name}.py")
        done = {cell.id: cell for cell in complete.cells}
        for cell in student.cells:
            id = cell.metadata.get("labs", {}).get("id")
            cells.append(json.loads(json.dumps(done[cell.id] if id in answered else cell)))
        last = student
    return json.dumps({**json.loads(json.dumps(last)), "cells": cells}).encode()


@pytest.mark.parametrize(("first", "part", "answered"), CUT)
def test_a_hand_in_from_before_is_judged_by_its_parts(first, part, answered, tmp_path):
    manifest = json.dumps({"files": {}, "release": {"notebooks": [first]}}).encode()
    contents = {f"notebooks/{first}.ipynb": whole(answered, names=(first, part)), "manifest.json": manifest}
    old = handed.Submission("001", contents, tmp_path)
    lesson = next(lesson for lesson in tasks.lessons().values() if lesson.notebook == part)
    found, told = judge.judged(old, ROOT, part, "seed")
    assert set(found) == {item.id for item in lesson.task if isinstance(item, tasks.Check)}
    assert found[answered].state == "right", (told, found[answered])
    assert all(each.text != judge.NOT_HANDED_IN for each in found.values())
    assert {first, part} <= {*tasks.parts(first)}
    shown = set() if lesson.optional else {*tasks.parts(first)}  # optional ones only where `labs` has seen them begun
    assert {lesson.notebook for lesson in old.course.lessons} == shown, "its tasks are those of all"


def test_what_nobody_has_begun_is_not_handed_in(tmp_path):
    untouched = handed.Submission("002", {f"notebooks/{FIRST}.ipynb": whole()}, tmp_path)
    assert f"notebooks/{PART}.ipynb" not in untouched.contents


def test_a_hand_in_of_both_is_taken_as_it_is(tmp_path):
    contents = {f"notebooks/{name}.ipynb": whole(ANSWERED) for name in (FIRST, PART)}
    assert handed.Submission("003", contents, tmp_path).contents == contents


def test_what_names_the_first_part_names_all(tmp_path):
    given = release.release(ROOT, tmp_path / "course.zip", notebooks="02,07")
    named = ("02_concurrency", FIRST, PART, THIRD)
    assert given == [f"notebooks/{name}.ipynb" for name in named], "02b is no part of 02"
    inside = course_release.load(tmp_path / "course.zip").files
    assert "labs/lessons/nb07b/tasks.toml" in inside and "labs/lessons/nb02b/tasks.toml" not in inside
    assert check.counting(tmp_path, [FIRST]) == (FIRST, PART, THIRD) == check.counting(tmp_path)
    schedules = ["13_write_the_schedule", "13a_zero_schedules", "13b_harder_schedules", "13c_pipeline_schedules"]
    given = release.release(ROOT, tmp_path / "schedules.zip", notebooks="13")
    assert given == [f"notebooks/{name}.ipynb" for name in schedules], "and the part of a part"
    with pytest.raises(UseError, match="There is no notebook 07_other"):
        check.counting(tmp_path, ["07_other"])
