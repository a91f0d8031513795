"""Notebook 24: its recorded runs, its pictures, and the small programs that it measures."""

import numpy as np
import pytest
import tensorflow as tf
from epochs import numbered
from figures import sound
from tree import ROOT

from labs import recorded
from labs.errors import UseError
from labs.results.run import Epoch, Run
from lessons.faster_steps import by_hand, feeding, limited, pictures, profile, recompute, samples
from lessons.faster_steps import watched as show_watched


@pytest.fixture(scope="module")
def traces():
    return {case: [samples.read(file) for file in files] for case, files in recorded.traces().items()}


def test_six_traces_were_recorded_that_show_what_limits_them(traces):
    assert list(traces) == list(limited.SETTINGS)
    first, done = {case: ranks[0] for case, ranks in traces.items()}, {}
    for case, ranks in traces.items():
        setting = limited.SETTINGS[case]
        assert len(ranks) == (setting.ranks or 1)
        assert {(rank.kind, rank.about["limit"]) for rank in ranks} == {("recorded", setting.limit)}
        about = first[case].about
        done[case] = first[case].images_per_second * about["operations_of_an_image"]
        done[case] /= about["most_operations_per_second"]
    largest = [max(shares, key=shares.get) for shares in (first[case].shares() for case in "ABCD")]
    assert largest == ["input", "exchange", "validation", "computation"]
    assert first["E"].shares()["exchange"] > 0.5 > first["E"].mean("cores")
    assert max(done, key=done.get) == "D" and done["F"] < 0.5 * done["D"]
    assert min(rank.mean("cores") for case in "BDF" for rank in traces[case]) > 0.8  # busy, with or without progress


def test_picture_of_a_trace_says_its_numbers_and_tells_no_phase_in_the_quiz(traces):
    sound(show_watched.figure(traces["B"], title="Run B"), "recorded", "exchange", "Rank 1, mean:")
    quiz = sound(show_watched.several(traces), "recorded", "Rank 1, mean:")
    assert not any(word in quiz.alt for word in ("exchange", "computation", "input"))


def test_no_thread_tunes_the_pipelines_that_are_compared():
    """The beginning of an epoch would wait for it, up to a second and at random: equal scripts differed by 2."""
    pipeline = feeding.as_written(tf.data.Dataset.range(3).map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE))
    assert pipeline.options().autotune.enabled is False and [*pipeline.as_numpy_iterator()] == [1, 2, 3]
    for name in ("slow", "faster"):
        script = (ROOT / f"solutions/scripts/{name}.py").read_text(encoding="utf-8")
        assert script.index("feeding.as_written(train)") < script.index("model.fit(train,")


def test_what_a_comparison_printed_is_read_behind_the_marks_of_a_launcher():
    lines = ["trained weights identical on all 2 ranks: True", "largest difference from one process: 4.5e-08"]
    lines += ["largest difference of a variable that is not trained: nan", "largest change: 1.2e-01", "images/s: 20"]
    wanted = {"alike": "True", "apart": "4.5e-08", "fixed": "nan", "moved": "1.2e-01"}
    assert by_hand.told("".join(f"[1,0]<stdout>:{line}[1,0]<stdout>:\n" for line in lines)) == wanted


def test_waits_say_their_intervals():
    rounds = {"starving": [(0.03, 0.01), (0.032, 0.01)], "fed": [(1e-4, 0.01), (2e-4, 0.011)]}
    sound(pictures.waits(rounds), "measured", "starving: waiting for the batch 31 ms [", "whole step 41 ms [")


def test_a_change_is_compared_within_rounds_and_images_are_counted():
    def run(seconds, images, study="a"):
        epochs = [Epoch(seconds=s, images=images, round=n or None) for n, s in enumerate([9.0, *seconds])]
        return Run(source="x.json", study=study, epochs=numbered(epochs))

    given, faster = run([4.0, 8.0, 4.0], 96), run([2.0, 4.0, 2.0], 48)  # the second round is slow for both
    ratio, note = pictures.gain(faster, given)
    assert ratio.value == pytest.approx(1) and ratio.interval == pytest.approx((1, 1)) and note is None
    ratio, note = pictures.gain(run([2.0, 2.0, 2.0], 96, study="b"), given)
    assert ratio.interval is None and ratio.value == pytest.approx(16 / 6) and "did not take turns" in note


def test_profile_of_a_fit_names_its_convolutions_and_no_profile_is_told(tmp_path):
    with pytest.raises(UseError, match="No profile below"):
        profile.operations(tmp_path)
    model = feeding.network()
    model.compile("sgd", "sparse_categorical_crossentropy", jit_compile=False)
    with tf.profiler.experimental.Profile(str(tmp_path)):
        model.fit(np.zeros((64, 32, 32, 3)), np.zeros(64), batch_size=8, verbose=0)
    rows = profile.operations(tmp_path)
    assert len([row for row in rows if "Conv2D" in row["operation"]]) >= 2
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds, reverse=True) and "Dataset" not in {row["operation"] for row in rows}


@pytest.mark.more("three trainings of ResNet50V2, whose memory is compared")
def test_blocks_recompute_the_same_loss_with_less_memory(cold):
    small = {"batch": 8, "steps": 1}
    kept, layers = (recompute.measure(mode, **small) for mode in ("none", "layers"))
    blocks = recompute.measure("blocks", rounds=2, **small)
    assert [len(blocks[key]) for key in ("seconds", "kept_seconds")] == [2, 2]
    assert kept["loss"] == pytest.approx(layers["loss"], rel=1e-4) == pytest.approx(blocks["loss"], rel=1e-4)
    assert blocks["peak_bytes"] < 0.8 * kept["peak_bytes"] and layers["peak_bytes"] > 0.8 * kept["peak_bytes"]


@pytest.mark.more("real trainings of notebooks 20 to 34")
@pytest.mark.parametrize(("case", "remedy"), [("A", "feed"), ("C", "validate less")])
def test_a_limited_training_leaves_samples_and_its_remedy_takes_the_phase_away(case, remedy, tmp_path):
    shares = []
    for change in (None, remedy):
        job = limited.start(case, change, seconds=2, runs=tmp_path).wait(show=False)
        (found,) = samples.ranks(tmp_path / job.name)
        shares.append(found.shares().get(limited.SETTINGS[case].limit, 0.0))
    assert shares[1] < 0.5 * shares[0]
