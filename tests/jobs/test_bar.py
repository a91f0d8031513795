"""labs.jobs.bar: what a progress bar says."""

from types import SimpleNamespace

from labs import recorded, results
from labs.jobs import bar

HALF = {
    "epochs_done": 1,
    "epochs": 4,
    "step": 3,
    "steps": 6,
    "images_per_second": 90.4,
    "fraction": 0.375,
    "workers": 2,
}


def test_bar_tells_epoch_step_rate_and_time_left_and_the_records_rate(monkeypatch):
    texts, shown = [], bar.Bar("job")
    monkeypatch.setattr(shown, "_show", lambda fraction, text, end="": texts.append((fraction, text)))
    records = [file.with_suffix(".json") for file in recorded.laptop()]
    rates = [f"{run.images_per_second.value:,.0f} images/s" for run in results.load(records)]
    where = "2 workers, epoch 2 of 4, step 3 of 6"
    for progress, seconds, text in (
        ({}, 2.0, "loading <data> (2 s)"),
        (HALF, 10.0, f"{where}, 90 images/s"),
        (HALF | {"fraction": 0.5}, 20.0, f"{where}, 90 images/s, 40 s left"),  # an eighth took 10 s
        (HALF | {"images_per_second": None, "fraction": 0.75}, 20.0, f"{where}, 7 s left"),  # it traces
        # The next training of a batch script starts at 0 again.
        (HALF | {"fraction": 0.1}, 30.0, f"{where}, 90 images/s"),
        (HALF | {"fraction": 0.2}, 40.0, f"{where}, 90 images/s, 80 s left"),
    ):
        shown.update(progress, seconds, "loading <data>")
        assert texts[-1] == (progress.get("fraction", 0.0), text)
    one, two = (SimpleNamespace(state="finished", records=[record]) for record in records)
    shown.close(SimpleNamespace(state="finished", jobs=[one, two]))
    assert texts[-1] == (1.0, f"finished, {records[0].stem}: {rates[0]}, {records[1].stem}: {rates[1]}")
    shown.close(SimpleNamespace(state="failed", records=records))
    assert texts[-1] == (0.0, "failed")
    line = shown._html(0.5, "loading <data>").data
    assert 'value="0.500"' in line and "aria-label" in line and "&lt;data&gt;" in line
