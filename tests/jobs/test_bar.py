"""labs.jobs.bar: what a progress bar says."""

from types import SimpleNamespace

import pytest

from labs import recorded, results
from labs.jobs import bar

HALF = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.4, "fraction": 0.375}


@pytest.fixture
def shown(monkeypatch):
    """A bar, and the list of (fraction, text) that it shows."""
    texts = []
    shown = bar.Bar("job")
    monkeypatch.setattr(shown, "_show", lambda fraction, text: texts.append((fraction, text)))
    return shown, texts


def test_bar_tells_epoch_step_rate_and_time_left(shown):
    shown, texts = shown
    shown.update({}, 2.0, "loading <data>")
    shown.update(HALF, 10.0)
    shown.update(HALF | {"fraction": 0.5}, 20.0)  # an eighth in 10 s: HALF of it takes 40 s
    shown.close(SimpleNamespace(state="finished", records=[]))
    assert texts[0] == (0.0, "loading <data> (2 s)")
    assert texts[1] == (0.375, "epoch 2 of 4, step 3 of 6, 90 images/s")
    assert texts[2] == (0.5, "epoch 2 of 4, step 3 of 6, 90 images/s, 40 s left")
    assert texts[3] == (1.0, "finished")
    line = shown._line(0.5, "loading <data>")
    assert 'value="0.500"' in line and "aria-label" in line and "&lt;data&gt;" in line


def test_next_training_of_a_batch_script_starts_at_0_again(shown):
    shown, texts = shown
    shown.update(HALF | {"fraction": 0.9, "workers": 1}, 10.0)
    shown.update(HALF | {"fraction": 0.1, "workers": 2}, 20.0)
    shown.update(HALF | {"fraction": 0.2, "workers": 2}, 30.0)
    shown.close(SimpleNamespace(state="failed", records=[]))
    assert texts[1] == (0.1, "2 workers, epoch 2 of 4, step 3 of 6, 90 images/s")
    assert texts[2] == (0.2, "2 workers, epoch 2 of 4, step 3 of 6, 90 images/s, 80 s left")
    assert texts[3] == (0.0, "failed")


def test_epoch_that_traces_has_no_rate(shown):
    shown, texts = shown
    shown.update(HALF | {"images_per_second": None}, 10.0)
    shown.update(HALF | {"images_per_second": None, "fraction": 0.5}, 20.0)
    assert [text for _, text in texts] == ["epoch 2 of 4, step 3 of 6", "epoch 2 of 4, step 3 of 6, 40 s left"]


def test_the_last_line_has_the_records_figure_and_not_the_last_one_seen(shown, tmp_path):
    shown, texts = shown
    records = [file.with_suffix(".json") for file in recorded.laptop()]
    runs = results.load(records)
    assert [run.workers for run in runs] == [1, 2]
    rates = [f"{run.images_per_second.value:,.0f} images/s" for run in runs]
    shown.update(HALF, 10.0)
    one, two = (SimpleNamespace(state="finished", records=[record]) for record in records)
    shown.close(one)
    shown.close(SimpleNamespace(state="finished", jobs=[one, two]))
    shown.close(SimpleNamespace(state="failed", records=records))
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    shown.close(SimpleNamespace(state="finished", records=[broken]))
    assert [text for _, text in texts[1:]] == [
        f"finished, {rates[0]}",
        f"finished, 1 worker: {rates[0]}, 2 workers: {rates[1]}",
        "failed",
        "finished",
    ]
