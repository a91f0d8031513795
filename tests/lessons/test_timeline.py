"""Horovod's timeline, read from two genuine ones: 2 ranks over Gloo, 4 steps of 6 tensors, rank 1 asleep for 50 ms
before each step. In tests/data, timeline_marks.json was written without Horovod's response cache, timeline_cached.json
with it. And from made ones, whose numbers are known.
"""

import gzip
import json
import random

import pytest
from figures import sound
from tree import ROOT

from labs import recorded
from labs.errors import UseError
from lessons import timeline, timelines

MARKS, CACHED = ROOT / "tests/data/timeline_marks.json", ROOT / "tests/data/timeline_cached.json"
BYTES = 4 * (3 * 3 * 64 * 64 + 64 + 64 + 64 * 256 + 256 * 10 + 10)
# A step in ms: {tensor: (when ranks 0 and 1 announce it, its all-reduce)}
STEP = {
    "gradient_2": ((0, 10), (10, 30)),
    "gradient_1": ((20, 35), (35, 65)),
    "gradient_1b": ((25, 30), (35, 65)),  # in one message with gradient_1
    "gradient_0": ((40, 50), (65, 85)),
}


@pytest.fixture(scope="module")
def marks():
    return timeline.read(MARKS)


@pytest.fixture
def read(tmp_path):
    """read(text) -> the collectives of a file that holds it."""

    def read(text):
        (tmp_path / "made.json").write_text(text)
        return timeline.read(tmp_path / "made.json")

    return read


def written(tensors, arrivals=True):
    """A timeline of one step in Horovod's format; in each all-reduce half a millisecond is copying, from 0.5 to 1."""
    names, events = [{"ph": "M", "pid": 9, "name": "process_name", "args": {"start_time_since_epoch_in_micros": 0}}], []

    def add(pid, kind, ms, **more):
        events.append({"ph": kind, "pid": pid, "ts": 1000 * ms} | more)

    for pid, (tensor, (announced, (begin, end))) in enumerate(tensors.items(), 10):
        names.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": tensor}})
        add(pid, "B", min(announced), name="NEGOTIATE_ALLREDUCE")
        for rank, ms in enumerate(announced) if arrivals else ():
            add(pid, "X", ms, name=str(rank))
        add(pid, "E", max(announced))
        add(pid, "B", begin, name="ALLREDUCE")
        phases = {"MEMCPY_IN_FUSION_BUFFER": (begin + 0.5, begin + 1), "NCCL_ALLREDUCE": (begin + 1, end)}
        for name, (first, last) in phases.items():
            add(pid, "B", first, name=name)
            add(pid, "E", last)
        add(pid, "E", end, args={"dtype": "float16", "shape": "[3, 5]"})
    return json.dumps([*names, *sorted(events, key=lambda event: event["ts"])])


def ms(row, *keys):
    return tuple(round(1000 * row[f"{key}_seconds" if key else "seconds"], 6) for key in keys)


@pytest.mark.parametrize("path", [MARKS, CACHED])
def test_genuine_timelines_hold_every_tensor_of_every_step_and_name_the_slow_rank(path):
    events = timeline.read(path)
    steps, rows = timeline.steps(events), timeline.summary(events)
    assert [len({item.tensor for item in step}) for step in steps] == [6, 6, 6, 6]
    assert [row["bytes"] for row in rows] == [BYTES] * 4
    for row in rows[1:]:  # the first step holds TensorFlow's tracing on both ranks
        assert row["last"] == (1 if path == MARKS else None)  # with the cache, nobody knows who came last
        assert sorted(row["waited"]) == ([0, 1] if path == MARKS else []) and row["waited"].get(1, 0.0) == 0.0
        assert 0.045 < row["waited"].get(0, row["negotiate_seconds"]) < 0.2
        assert 0.045 < row["negotiate_seconds"] <= row["seconds"]
        assert 0 < row["allreduce_seconds"] < row["negotiate_seconds"]


@pytest.mark.parametrize("arrivals", [True, False])
def test_every_number_of_a_made_step(read, arrivals):
    events = read(written(STEP, arrivals))
    (known,) = timeline.summary(events)
    assert (known["step"], known["tensors"], known["buffers"], known["bytes"]) == (1, 4, 3, 4 * 30)
    assert ms(known, "", "negotiate", "allreduce", "copy") == (85, 35, 67, 1.5)
    assert known["last"] == (1 if arrivals else None)
    assert known["waited"] == ({0: pytest.approx(0.01), 1: 0} if arrivals else {})
    assert [item.buffer for item in timeline.steps(events)[0]] == [1, 2, 2, 3]
    assert ms(known, "within", "behind") == (19 + 14, 15 + 19)


def test_of_the_recorded_steps_most_of_the_all_reduce_lies_within_backward():
    events = timeline.read(recorded.horovod_timeline())
    for row in timeline.summary(events):
        parts = row["within_seconds"], row["behind_seconds"]
        assert sum(parts) == pytest.approx(row["allreduce_seconds"]) and parts[0] > 4 * parts[1] > 0


def test_overlapping_time_counts_once():
    draw = random.Random(0)
    for count in range(9):
        spans = [sorted(draw.choices(range(30), k=2)) for _ in range(count)]
        assert timeline.covered(spans) == len({cell for begin, end in spans for cell in range(begin, end)})


def test_odd_names_and_packed_files_are_read_and_what_is_no_whole_timeline_is_told_in_one_line(tmp_path, marks, read):
    text = written({"allreduce.gradients\n_1/dense": ((0.5, 5.5), (5.5, 7.25))}).replace("\\n", "\n")
    events = read(text)
    assert events[0].tensor == "allreduce.gradients\n_1/dense" and timelines.figure(events).alt
    packed = tmp_path / "timeline.json.gz"
    packed.write_bytes(gzip.compress(MARKS.read_bytes()))
    assert timeline.read(packed) == marks
    for file, says in (
        ("none", r"no timeline \(No such file or directory\)"),
        ("cut", "has no end"),
        ("[]", "no events"),
    ):
        (tmp_path / "cut").write_text(text[: len(text) // 2])
        (tmp_path / "[]").write_text("[]")
        with pytest.raises(UseError, match=says) as problem:
            timeline.read(tmp_path / file)
        assert "\n" not in str(problem.value)


# Pictures


def test_the_picture_has_a_curve_for_each_rank_and_one_of_what_was_averaged(marks):
    waited = timeline.summary(marks)[-1]["waited"][0]
    sound(timelines.figure(marks), "measured", f"A tensor of rank 0 waited {1000 * waited:.1f} ms")
    many = timeline.read(recorded.horovod_timeline())
    megabytes = timeline.summary(many)[-1]["bytes"] / 1e6
    above, _ = sound(timelines.figure(many, kind="recorded"), "recorded", f"{megabytes:.3g} MB, messages: ").axes
    assert [line.get_ydata()[-1] for line in above.get_lines()] == pytest.approx([megabytes] * 3)
