"""Horovod's timeline, read from the recorded one of ResNet50V2, and from made ones, whose numbers are known.

That a slow rank is seen in one that Horovod writes here: test_experiment.py.
"""

import json
import random

import pytest
from figures import sound

from labs import recorded
from labs.errors import UseError
from lessons import timeline, timelines

# A step in ms: {tensor: (when ranks 0 and 1 announce it, its all-reduce)}
STEP = {
    "gradient_2": ((0, 10), (10, 30)),
    "gradient_1": ((20, 35), (35, 65)),
    "gradient_1b": ((25, 30), (35, 65)),  # in one message with gradient_1
    "gradient_0": ((40, 50), (65, 85)),
}


def read(folder, text):
    """The collectives of a file that holds the text."""
    (folder / "made.json").write_text(text)
    return timeline.read(folder / "made.json")


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


@pytest.mark.parametrize("arrivals", [True, False])
def test_every_number_of_a_made_step(tmp_path, arrivals):
    events = read(tmp_path, written(STEP, arrivals))
    (known,) = timeline.summary(events)
    assert (known["step"], known["tensors"], known["buffers"], known["bytes"]) == (1, 4, 3, 4 * 30)
    assert ms(known, "", "negotiate", "allreduce", "copy") == (85, 35, 67, 1.5)
    assert known["last"] == (1 if arrivals else None)
    assert known["waited"] == ({0: pytest.approx(0.01), 1: 0} if arrivals else {})
    assert [item.buffer for item in timeline.steps(events)[0]] == [1, 2, 2, 3]
    assert ms(known, "within", "behind") == (19 + 14, 15 + 19)


def test_the_recorded_steps_hold_every_gradient_and_most_of_the_all_reduce_lies_within_backward():
    rows = timeline.summary(timeline.read(recorded.horovod_timeline()))
    assert [row["tensors"] for row in rows] == [170] * 3  # of 174; four biases have the gradient of another one
    for row in rows:
        assert row["bytes"] == pytest.approx(4 * 23_539_850, rel=1e-3)
        parts = row["within_seconds"], row["behind_seconds"]
        assert sum(parts) == pytest.approx(row["allreduce_seconds"]) and parts[0] > 4 * parts[1] > 0


def test_overlapping_time_counts_once():
    draw = random.Random(0)
    for count in range(9):
        spans = [sorted(draw.choices(range(30), k=2)) for _ in range(count)]
        assert timeline.covered(spans) == len({cell for begin, end in spans for cell in range(begin, end)})


def test_odd_names_are_read_and_what_is_no_whole_timeline_is_told_in_one_line(tmp_path):
    text = written({"allreduce.gradients\n_1/dense": ((0.5, 5.5), (5.5, 7.25))}).replace("\\n", "\n")
    events = read(tmp_path, text)
    assert events[0].tensor == "allreduce.gradients\n_1/dense" and timelines.figure(events).alt
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


def test_the_picture_has_a_curve_for_each_rank_and_one_of_what_was_averaged():
    events = timeline.read(recorded.horovod_timeline())
    row = timeline.summary(events)[-1]
    megabytes, waited = row["bytes"] / 1e6, f"A tensor of rank 0 waited {1000 * row['waited'][0]:.1f} ms"
    figure = timelines.figure(events, kind="recorded")
    above, _ = sound(figure, "recorded", f"{megabytes:.3g} MB, messages: ", waited).axes
    assert [line.get_ydata()[-1] for line in above.get_lines()] == pytest.approx([megabytes] * 3)
