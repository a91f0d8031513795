"""Horovod's timeline, read from two genuine ones: 2 ranks over Gloo, 4 steps of 6 tensors, rank 1 asleep for 50 ms
before each step. In tests/data, timeline_marks.json was written without Horovod's response cache, timeline_cached.json
with it.
"""

import gzip
import json
from pathlib import Path

import pytest
from legends import hidden

from labs import recorded
from lessons import timeline, timelines
from lessons.timeline import TimelineError

DATA = Path(__file__).parents[1] / "data"
MARKS, CACHED = DATA / "timeline_marks.json", DATA / "timeline_cached.json"
BYTES = 4 * (3 * 3 * 64 * 64 + 64 + 64 + 64 * 256 + 256 * 10 + 10)


@pytest.fixture(scope="module")
def marks():
    return timeline.read(MARKS)


@pytest.fixture(scope="module")
def cached():
    return timeline.read(CACHED)


def test_every_tensor_of_every_step_is_found_with_its_size(marks, cached):
    for events in (marks, cached):
        steps = timeline.steps(events)
        assert [len(step) for step in steps] == [6, 6, 6, 6]
        for step in steps:
            assert {item.tensor for item in step} == {item.tensor for item in steps[0]}
            assert sum(item.bytes for item in step) == BYTES
    largest = max(marks, key=lambda item: item.bytes)
    assert (largest.tensor, largest.shape, largest.operation) == (
        "gradient_000_kernel_3x3x64x64",
        (3, 3, 64, 64),
        "allreduce",
    )


def test_times_are_seconds_and_in_order(marks):
    for item in marks:
        first, complete = item.negotiated
        assert first <= complete <= item.begin <= item.end < 60
        assert sorted(item.arrivals) == [0, 1]
        assert first <= min(item.arrivals.values()) and max(item.arrivals.values()) <= complete
        assert all(item.begin <= begin <= end <= item.end for _, begin, end in item.phases)
        assert "GLOO_ALLREDUCE" in [name for name, *_ in item.phases]


def test_the_slow_rank_is_named_and_the_other_one_waits(marks):
    for row in timeline.summary(marks)[1:]:  # the first step holds TensorFlow's tracing on both
        assert row["last"] == 1
        assert 0.045 < row["waited"][0] < 0.2 and row["waited"][1] == 0.0
        assert 0.045 < row["negotiate_seconds"] <= row["seconds"]
        assert 0 < row["allreduce_seconds"] < row["negotiate_seconds"]


def test_with_the_cache_the_wait_is_known_and_who_came_last_is_not(cached):
    rows = timeline.summary(cached)
    assert rows[0]["last"] is not None and sorted(rows[0]["waited"]) == [0, 1]
    for row in rows[1:]:
        assert row["last"] is None and row["waited"] == {}
        assert 0.045 < row["negotiate_seconds"] < 0.2


def test_fused_tensors_share_a_message(cached):
    assert [row["buffers"] for row in timeline.summary(cached)] == [1, 1, 1, 2]
    rows = timeline.messages(cached)
    assert [(row["message"], row["tensors"]) for row in rows] == [(1, 5), (2, 1)]
    assert rows[1]["names"] == ["gradient_000_kernel_3x3x64x64"] and rows[1]["bytes"] == 4 * 3 * 3 * 64 * 64
    assert sum(row["bytes"] for row in rows) == BYTES
    assert rows[0]["begin"] + rows[0]["seconds"] <= rows[1]["begin"]


def written(path, tensors, arrivals=True):
    """A timeline of one step in Horovod's format. tensors: {name: (when ranks 0, 1 announce it, all-reduce)}, in ms."""
    events = [{"ph": "M", "name": "process_name", "pid": 9, "args": {"start_time_since_epoch_in_micros": 0}}]

    def add(pid, kind, ms, name=None):
        events.append({"ph": kind, "pid": pid, "ts": 1000 * ms} | ({"name": name} if name else {}))

    for pid, (tensor, (announced, (begin, end))) in enumerate(tensors.items(), 10):
        events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": tensor}})
        add(pid, "B", min(announced), "NEGOTIATE_ALLREDUCE")
        for rank, ms in enumerate(announced) if arrivals else ():
            add(pid, "X", ms, str(rank))
        add(pid, "E", max(announced))
        for kind, name in (("B", "ALLREDUCE"), ("B", "NCCL_ALLREDUCE"), ("E", None), ("E", None)):
            add(pid, kind, begin if kind == "B" else end, name)
    path.write_text(json.dumps(events))
    return timeline.read(path)


STEP = {
    "gradient_2": ((0, 10), (10, 30)),
    "gradient_1": ((20, 35), (35, 65)),
    "gradient_1b": ((25, 30), (35, 65)),  # in one message with gradient_1
    "gradient_0": ((40, 50), (65, 85)),
}


def ms(row):
    return tuple(round(1000 * row[f"{key}_seconds"], 6) for key in ("announce", "within", "behind"))


@pytest.mark.parametrize("arrivals", [True, False])
def test_all_reduce_within_backward_and_behind_it(tmp_path, arrivals):
    (row,) = timeline.overlap(written(tmp_path / "made.json", STEP, arrivals))
    assert row["step"] == 1 and row["allreduce_seconds"] == pytest.approx(0.070)
    assert ms(row) == (50, 20 + 15, 15 + 20)  # until rank 1 has announced gradient_0
    ranks = {rank: ms(of) for rank, of in row["ranks"].items()}
    assert ranks == ({0: (40, 20 + 5, 25 + 20), 1: (40, 35, 35)} if arrivals else {})


def test_gradients_that_are_announced_at_once_leave_nothing_within(tmp_path, marks):
    at_once = {name: ((5, 5), sums) for name, (_, sums) in STEP.items()}
    assert ms(timeline.overlap(written(tmp_path / "made.json", at_once))[0]) == (0, 0, 70)
    for row in timeline.overlap(marks):
        assert row["within_seconds"] == 0 and row["behind_seconds"] == row["allreduce_seconds"]


def test_of_the_recorded_steps_most_of_the_all_reduce_lies_within_backward():
    events = timeline.read(recorded.horovod_timeline())
    for row, known in zip(timeline.overlap(events), timeline.summary(events), strict=True):
        assert row["within_seconds"] + row["behind_seconds"] == pytest.approx(known["allreduce_seconds"])
        assert row["within_seconds"] > 4 * row["behind_seconds"] > 0 and row["announce_seconds"] < known["seconds"]
        own = row["ranks"][known["last"]]
        assert [own[key] for key in ("within_seconds", "behind_seconds")] == pytest.approx(
            [row["within_seconds"], row["behind_seconds"]], abs=1e-3
        )
    for items in timeline.steps(events):  # rank 0 hears of a gradient before or after a message, not meanwhile
        sums = {phase for item in items for phase in item.phases if timeline.is_reduction(phase[0])}
        heard = [when for item in items for when in item.arrivals.values()]
        assert len(heard) == 2 * 170 and not any(begin < when < end for _, begin, end in sums for when in heard)


def test_overlap_needs_a_finished_all_reduce():
    with pytest.raises(TimelineError, match="no step"):
        timeline.overlap([timeline.Collective("weights", "broadcast", begin=0.0, end=1.0)])


def test_overlapping_time_counts_once():
    assert timeline.covered([(0, 2), (1, 3), (5, 6), (5.5, 5.7)]) == 4
    assert timeline.covered([]) == 0


@pytest.mark.parametrize("every", [1, 41])
def test_a_timeline_cut_at_any_byte_is_read_as_far_as_it_goes_and_says_so(tmp_path, capsys, every):
    """Never another number, and never anything but a sentence."""
    path, stages, whole = tmp_path / "cut.json", set(), MARKS
    if every == 1:
        whole, step = tmp_path / "whole.json", old("a.grad", "b.grad").removeprefix("[\n")
        whole.write_text(f"[\n{2 * step}".rstrip(",\n") + "]")
    raw, marks = whole.read_bytes().rstrip(), timeline.read(whole)
    rows, overlaps = timeline.summary(marks), timeline.overlap(marks)
    for end in range(0, len(raw), every):
        path.write_bytes(raw[:end])
        try:
            events = timeline.read(path)
        except TimelineError as problem:
            assert "no events: the job ended before the first exchange, or another rank was asked" in str(problem)
            assert not stages, "what is longer holds no less"
            continue
        assert not events.complete and capsys.readouterr().out == f"cut.json: {timeline.CUT}.\n"
        assert all(item in marks for item in events if item.end is not None)
        try:
            found = timeline.summary(events)
        except TimelineError as problem:
            assert "so there is no step" in str(problem) and stages <= {0}
            stages.add(0)
            continue
        stages.add(len(found))
        if len(found) > 1 or found[0]["tensors"] == rows[0]["tensors"]:  # of a first step nobody knows its tensors
            assert found == rows[: len(found)] and timeline.overlap(events) == overlaps[: len(found)]
    assert stages >= set(range(len(rows)))


def test_a_picture_of_a_cut_timeline_says_so(tmp_path, marks):
    path = tmp_path / "cut.json"
    path.write_bytes(MARKS.read_bytes()[:-2000])
    cut = timelines.figure(timeline.read(path))
    assert timeline.CUT in cut.get_supxlabel() and timeline.CUT in cut.alt
    assert timeline.read(MARKS).complete and timeline.CUT not in timelines.figure(marks).alt
    assert timelines.figure(marks).get_supxlabel() == "measured"


def old(*tensors, end=""):
    """A timeline as older versions of Horovod wrote it: without the time of its start, and never closed."""
    lines = []
    for pid, name in enumerate(tensors):
        head = f'"pid": {pid}'
        lines += [
            f'{{"name": "process_name", "ph": "M", {head}, "args": {{"name": "{name}"}}}}',
            f'{{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 500, {head}}}',
            f'{{"ph": "X", "name": "0", "ts": 510, {head}, "dur": 0}}',
            f'{{"ph": "X", "name": "1", "ts": 5510, {head}, "dur": 0}}',
            f'{{"ph": "E", "ts": 5520, {head}}}',
            f'{{"ph": "B", "name": "ALLREDUCE", "ts": 5530, {head}}}',
            f'{{"ph": "B", "name": "NCCL_ALLREDUCE", "ts": 5540, {head}}}',
            f'{{"ph": "E", "ts": 6240, {head}}}',
            f'{{"ph": "E", "ts": 6250, {head}, "args": {{"dtype": "float32", "shape": "[64, 10]"}}}}',
        ]
    return "[\n" + "".join(f"{line},\n" for line in lines) + end


def test_a_timeline_without_the_time_of_its_start_is_one(tmp_path):
    path = tmp_path / "old.json"
    path.write_text(old("allreduce.gradients/dense", end='{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 72'))
    events = timeline.read(path)
    (row,) = timeline.summary(events)
    assert not events.complete and row["last"] == 1 and row["bytes"] == 2560
    assert row["waited"] == {0: pytest.approx(0.005), 1: 0} and row["allreduce_seconds"] == pytest.approx(0.0007)
    path.write_text(old("allreduce.gradients/dense").rstrip(",\n") + "]")
    assert timeline.read(path).complete


@pytest.mark.parametrize("mark", ["\n", "\t", "\x00"])
def test_a_line_break_in_the_name_of_a_tensor_is_accepted(tmp_path, mark):
    path = tmp_path / "names.json"
    path.write_text(old(f"gradients/model{mark}_1/kernel"))
    assert [item.tensor for item in timeline.read(path)] == [f"gradients/model{mark}_1/kernel"]
    assert timelines.figure(timeline.read(path)).alt


def test_a_rank_that_never_came_is_seen(tmp_path):
    events = json.loads(MARKS.read_text())
    last = max(i for i, event in enumerate(events) if event.get("ph") == "X" and event["name"] == "1")
    path = tmp_path / "died.json"
    path.write_text("[\n" + ",\n".join(map(json.dumps, events[:last])))
    missing = [item for item in timeline.read(path) if item.begin is None]
    assert missing and any(sorted(item.arrivals) == [0] for item in missing)


def test_a_compressed_timeline_gives_the_same(tmp_path, marks):
    path = tmp_path / "timeline.json.gz"
    path.write_bytes(gzip.compress(MARKS.read_bytes()))
    assert timeline.read(path) == marks


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no timeline (No such file or directory)"),
        ("", "no events: the job ended before the first exchange, or another rank was asked (rank 0 writes the"),
        ("[", "no events: the job ended before the first exchange, or another rank was asked (rank 0 writes the"),
        ("[]\n", "no events"),
        ("no JSON", "is not a timeline of Horovod"),
        ('{"version": 1, "epochs": []}', "is not a timeline of Horovod"),
        ('[{"ph": "X", "name": "step", "ts": 1, "dur": 5, "pid": 1}]', "is not a timeline of Horovod"),
        (
            '[{"ph": "M", "name": "process_name", "pid": 0, "args": {"start_time_since_epoch_in_micros": 1}},',
            "no events",
        ),
        ('[{"name": "process_name", "ph": "M", "pid": 0, "args": {"name": "dense"}},\n{"ph": "B", "na', "no events"),
        ('[{"name": "process_name", "ph": "M", "pid": [0], "args": [1]}, {"ph": "B", "args": 7}', "is not a timeline"),
        ("[1, 2, 3]", "is not a timeline of Horovod"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, content, said):
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TimelineError) as problem:
        timeline.read(path)
    assert said in str(problem.value) and "\n" not in str(problem.value)


def test_without_a_finished_all_reduce_there_is_no_step():
    with pytest.raises(TimelineError, match="no step"):
        timeline.steps([timeline.Collective("weights", "broadcast", begin=0.0, end=1.0)])


def test_the_picture_of_few_tensors_has_a_row_for_each_and_marks_for_each_rank(marks):
    figure = timelines.figure(marks)
    (axis,) = figure.axes
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert len(labels) == 6 and "gradient_000_kernel_3x3x64x64, 147.5 kB" in labels
    legend = [text.get_text() for text in axis.get_legend().get_texts()]
    assert {"all-reduce", "rank 0 announces it", "rank 1 announces it"} <= set(legend)
    assert "milliseconds" in axis.get_xlabel() and figure.get_supxlabel() == "measured"
    row = timeline.summary(marks)[-1]
    assert f"A tensor of rank 0 waited {1000 * row['waited'][0]:.1f} ms" in figure.alt


def many(arrivals):
    """A step of 60 tensors in messages of 5, like that of a large network."""
    items = []
    for number in range(60):
        begin = 0.01 * (number // 5) + 0.02
        items.append(
            timeline.Collective(
                f"gradient_{number:03d}",
                "allreduce",
                (0.001 * number, begin - 0.001),
                {0: 0.001 * number, 1: begin - 0.001} if arrivals else {},
                begin,
                begin + 0.008,
                [("MEMCPY_IN_FUSION_BUFFER", begin, begin + 0.001), ("GLOO_ALLREDUCE", begin + 0.001, begin + 0.007)],
                (1000,),
                4000,
                number // 5,
            )
        )
    return items


def test_the_legend_names_copies_only_where_they_are_long_enough_to_be_seen(marks):
    def names(items):
        return [text.get_text() for text in timelines.figure(items).axes[0].get_legend().get_texts()]

    assert "copy into and out of the buffer" in names(many(True)[:20])
    assert "copy into and out of the buffer" not in names(marks)


@pytest.mark.parametrize(
    ("arrivals", "names"),
    [
        (True, ["rank 0 has announced", "rank 1 has announced", "averaged over the ranks"]),
        (False, ["some rank has announced", "all ranks have announced", "averaged over the ranks"]),
    ],
)
def test_the_picture_of_many_tensors_has_curves_and_lanes(arrivals, names):
    figure = timelines.figure(many(arrivals), kind="recorded")
    above, below = figure.axes
    curves = {line.get_label(): line.get_ydata() for line in above.get_lines()}
    assert list(curves) == names and all(values[-1] == pytest.approx(0.24) for values in curves.values())
    assert above.get_ylabel() == "MB of gradients" and "milliseconds" in below.get_xlabel()
    assert len(below.patches) == 2 * 12  # a copy and an all-reduce for each message
    assert figure.get_supxlabel() == "recorded" and "60 tensors, 0.24 MB, messages: 12" in figure.alt
    assert hidden(figure) == []
