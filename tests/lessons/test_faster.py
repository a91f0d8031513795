"""Notebook 24: its recorded runs, its pictures, and the small programs that it measures."""

import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from legends import hidden

from labs import recorded, results
from labs.results import intervals, watched
from labs.results.run import Epoch, Run
from labs.show.figure import png
from lessons.faster_steps import by_hand, feeding, limited, pictures, recompute
from lessons.faster_steps import watched as show_watched
from lessons.memory_and_exchange import pictures as pictures_10b

ROOT = Path(__file__).parents[2]


def program(module, *arguments, folder, env=None):
    """The last line that a program of the lesson prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LABS_RUNS": str(folder), **(env or {})}
    command = [sys.executable, "-m", f"lessons.faster_steps.{module}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def traces():
    return {case: [watched.read(file) for file in files] for case, files in recorded.traces().items()}


def test_six_traces_were_recorded_each_of_its_own_limit(traces):
    assert "".join(traces) == limited.CASES and len(limited.LIMITS) == 6
    for case, ranks in traces.items():
        setting = limited.SETTINGS[case]
        assert len(ranks) == (setting.ranks or 1) and {rank.kind for rank in ranks} == {"recorded"}
        assert {rank.about["limit"] for rank in ranks} == {setting.limit}
        assert all(rank.seconds > 4 and len(rank.samples) > 15 for rank in ranks)


def test_the_traces_show_what_limits_them(traces):
    def largest(case, rank=0):
        shares = traces[case][rank].shares()
        return max(shares, key=shares.get)

    assert [largest(case) for case in "ABCD"] == ["input", "exchange", "validation", "computation"]
    assert traces["E"][0].shares()["exchange"] > 0.5 > traces["E"][0].mean("cores")
    done = {
        case: ranks[0].images_per_second
        * ranks[0].about["operations_of_an_image"]
        / ranks[0].about["most_operations_per_second"]
        for case, ranks in traces.items()
    }
    assert max(done, key=done.get) == "D" and done["F"] < 0.5 * done["D"]
    assert min(rank.mean("cores") for case in "BDF" for rank in traces[case]) > 0.8  # busy, with or without progress


def test_picture_of_a_trace_says_its_numbers_and_tells_no_phase_in_the_quiz(traces):
    figure, quiz = show_watched.figure(traces["B"], title="Run B"), show_watched.several(traces)
    assert "exchange" in figure.alt and not any(word in quiz.alt for word in ("exchange", "computation", "input"))
    for made in (figure, quiz):
        assert "Rank 1, mean:" in made.alt
        assert made.get_supxlabel() == "recorded" and png(made).startswith(b"\x89PNG")
    assert all(axis.get_xlabel() == "seconds" and axis.get_ylabel() for axis in figure.axes if axis.axison)
    assert all(axis.get_ylabel() for axis in quiz.axes) and quiz.axes[-1].get_xlabel() == "seconds"
    of_faults = {axis.get_ylim() for axis in quiz.axes if "faults" in axis.get_ylabel()}
    assert len(quiz.axes) == 4 * len(traces) and len(of_faults) == 1  # few faults look like few beside many
    assert hidden(figure) == [] and hidden(quiz) == []
    progress = [axis for axis in figure.axes if axis.axison][3]
    for line in progress.lines:  # images so far: a sample holds few batches, so their rate would jump
        assert (np.diff(line.get_ydata()) >= 0).all()


def test_the_legend_of_a_trace_names_phases_that_occur_only(traces):
    (rank,) = traces["D"]
    figure = show_watched.figure([rank])
    named = {text.get_text() for legend in figure.legends for text in legend.texts}
    occurs = {phase for phase, share in rank.shares().items() if share >= show_watched.SEEN}
    assert named == occurs and "exchange" not in named, "a single rank exchanges nothing"


@pytest.mark.parametrize("name", ("slow", "faster"))
def test_no_thread_tunes_the_pipelines_that_are_compared(name):
    """The beginning of an epoch would wait for it, up to a second and at random: equal scripts differed by 2."""
    pipeline = feeding.as_written(tf.data.Dataset.range(3).map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE))
    assert pipeline.options().autotune.enabled is False and [*pipeline.as_numpy_iterator()] == [1, 2, 3]
    script = (ROOT / f"solutions/scripts/{name}.py").read_text(encoding="utf-8")
    assert "\n### END SOLUTION\ntrain = feeding.as_written(train)" in script or name == "slow"
    assert script.index("feeding.as_written(train)") < script.index("model.fit(train,")


def test_recorded_ladder_is_faster_at_equal_accuracy():
    runs = results.load(recorded.faster().values())
    assert [run.kind for run in runs] == ["recorded"] * len(runs) and len(runs) >= 3
    assert [run.command[0] for run in runs[:2]] == ["scripts/slow.py", "scripts/faster.py"]
    assert all(run.epochs[-1].metrics["val_accuracy"] > 0.8 for run in runs)


@pytest.mark.parametrize("mark", ("", "[0] ", "[1,0]<stdout>:"))
def test_what_a_comparison_printed_is_read_with_and_without_the_marks_of_a_launcher(mark):
    lines = ["trained weights identical on all 2 ranks: True", "largest difference to one process: 4.5e-08"]
    lines += ["largest difference of a variable that is not trained: nan", "largest change: 1.2e-01", "images/s: 20"]
    wanted = {"alike": "True", "apart": "4.5e-08", "fixed": "nan", "moved": "1.2e-01"}
    for end in ("\n", f"{mark}\n"):
        assert by_hand.told("".join(f"{mark}{line}{end}" for line in lines)) == wanted


def labels_apart(figure):
    """Whether no two of its labels lie over each other, as it is drawn."""
    png(figure)
    texts = [text for axis in figure.axes for text in (*axis.get_yticklabels(), *axis.texts) if text.get_text()]
    places = [text.get_window_extent() for text in texts if text.get_visible()]
    return len(places) > 3 and not any(one.overlaps(other) for one, other in combinations(places, 2))


def test_ladder_and_waits_say_their_intervals():
    rungs = {"as given": (intervals.Estimate(1.02, (0.98, 1.06)), 105.0, 0.9)}
    figure = pictures.ladder(rungs | {"fed": (intervals.Estimate(2.9, (2.7, 3.12)), 305.0, 0.91)})
    assert (
        "fed: 2.90 times as fast as given (2.70 to 3.12), 305 images/s in these minutes, accuracy 0.910" in figure.alt
    )
    assert figure.axes[0].get_xlabel().endswith("within rounds") and figure.get_supxlabel() == "measured"
    figure = pictures.ladder(rungs | {"fed": (intervals.Estimate(2.9, (0.3, 40.0)), 305.0, 0.91)})
    longest = max(bar.get_width() for bar in figure.axes[0].patches)
    low, high = figure.axes[1].get_xlim()
    assert figure.axes[0].get_xlim()[1] < 1.5 * longest, "a long whisker leaves the bars their size"
    assert 0.8 < low < 0.9 and 0.91 < high < 1, "accuracies that differ little lie apart"
    assert labels_apart(figure)
    for kind, why in (("recorded", "not in turns"), ("measured", "too few rounds")):
        figure = pictures.ladder(rungs | {"fed": (intervals.Estimate(2.9), 305.0, 0.91)}, kind)
        assert figure.get_supxlabel() == f"{kind}: {why}, so without an interval"
    assert png(figure).startswith(b"\x89PNG")
    figure = pictures.waits({"starving": [(0.03, 0.01), (0.032, 0.01)], "fed": [(0.0, 0.01), (0.0, 0.011)]})
    assert "starving: waiting 31 ms, computing 10 ms (step" in figure.alt and png(figure).startswith(b"\x89PNG")
    rows = [{"mode": "none", "block": None, "batch": 8, "peak_bytes": 2**28}]
    figure = pictures_10b.recompute([*rows, {**rows[0], "mode": "blocks", "block": 6, "peak_bytes": 2**27}])
    assert "batch 8: kept 256 MiB, blocks of 6 128 MiB." in figure.alt
    assert figure.axes[0].get_xlabel() == "peak memory of a step (MiB)"


def test_a_change_is_compared_within_rounds_and_images_are_counted():
    def run(seconds, images, others=0.0, study="a"):
        epochs = [Epoch(s, images=images, round=n or None, others=others) for n, s in enumerate([9.0, *seconds])]
        return Run("x.json", study=study, repeats=[epochs])

    given, faster = run([4.0, 8.0, 4.0], 96), run([2.0, 4.0, 2.0], 48)  # the second round is slow for both
    ratio, note = pictures.gain(faster, given)
    assert ratio.value == pytest.approx(1) and ratio.interval == pytest.approx((1, 1)) and note is None
    assert "busy machine" in pictures.gain(run([2.0, 4.0, 2.0], 96, others=0.5), given)[1]
    ratio, note = pictures.gain(run([2.0, 2.0, 2.0], 96, study="b"), given)
    assert ratio.interval is None and ratio.value == pytest.approx(16 / 6) and "did not take turns" in note


@pytest.mark.slow
@pytest.mark.more("three trainings of ResNet50V2, whose memory is compared")
def test_blocks_recompute_the_same_loss_with_less_memory(cold, tmp_path):
    def run(mode, *more):
        options = ["--batch", 8, "--steps", 1, *more]
        return json.loads(program("recompute", mode, *options, folder=tmp_path, env=recompute.QUIET))

    kept, layers, blocks = run("none"), run("layers"), run("blocks", "--block", 6, "--rounds", 2)
    assert kept["seconds"] == kept["kept_seconds"] == []
    assert [len(blocks[key]) for key in ("seconds", "kept_seconds")] == [2, 2]
    assert kept["loss"] == pytest.approx(layers["loss"], rel=1e-4) == pytest.approx(blocks["loss"], rel=1e-4)
    assert blocks["peak_bytes"] < 0.8 * kept["peak_bytes"] and layers["peak_bytes"] > 0.8 * kept["peak_bytes"]


@pytest.mark.slow
def test_precisions_store_what_keras_says(tmp_path):
    found = json.loads(program("precision", "--rounds", 2, "--steps", 1, "--train", 1, folder=tmp_path))
    types = {policy: list(each["stored"].values()) for policy, each in found.items()}
    assert types == {
        "float32": ["float32"] * 4,
        "mixed_bfloat16": ["float32", "bfloat16", "float32", "float32"],
        "mixed_float16": ["float32", "float16", "float32", "float32"],
    }
    sizes = [each["activation_bytes"] for each in found.values()]
    assert sizes[1] == sizes[2] and 0.5 * sizes[0] <= sizes[1] < 0.51 * sizes[0]


@pytest.mark.slow
@pytest.mark.parametrize("case", ("A", "C"))
def test_a_limited_training_leaves_samples_and_its_remedy_takes_the_phase_away(case, tmp_path):
    phase = limited.SETTINGS[case].limit
    remedy = {"A": "feed", "C": "validate less"}[case]
    shares = []
    for more in ([], ["--remedy", remedy]):
        program("limited", case, "--seconds", 2, *more, folder=tmp_path)
        (found,) = watched.ranks(tmp_path / f"limited_{case}")
        shares.append(found.shares().get(phase, 0.0))
    assert shares[1] < 0.5 * shares[0]
