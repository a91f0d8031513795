"""What the notebooks say of the recorded GPU is what was measured there."""

import re

import pytest
from tree import ROOT

from labs import recorded
from lessons import counts, on_gpu


def text(name):
    (source,) = (ROOT / "solutions").glob(f"{name}_*.py")
    return " ".join(re.sub(r"(?m)^# ?", "", source.read_text(encoding="utf-8")).split())


def test_four_images_take_as_long_as_one_and_many_take_longer():
    step = {int(size): float(ms) for size, ms in re.findall(r"(\d+): ([\d.]+) ms", on_gpu.batches().alt)}
    assert sorted(step) == [1, 4, 16, 64, 128, 256, 512]
    assert step[4] < 1.1 * step[1] and step[64] < 3 * step[16]
    assert all(1.8 < step[2 * size] / step[size] < 2 for size in (128, 256))
    assert "Only from about 128 images on does a batch twice as large take almost twice the time" in text("04")


def test_the_ratio_of_the_networks_is_closer_to_the_activations_than_to_the_multiply_adds():
    small, large = (counts.of(name, 224, 10) for name in ("ResNet50V2", "ResNet152V2"))
    found = recorded.h200()["turns"]["all"]["ratios"]
    ratio = next(row["ratio"] for row in found if row["of"] == "ResNet152V2_float32 / ResNet50V2_float32")
    adds, kept = large.multiply_adds / small.multiply_adds, large.activation_bytes / small.activation_bytes
    assert abs(ratio - kept) < abs(ratio - adds) / 4 and f"{ratio:.4g} (" in on_gpu.networks()
    steps = on_gpu.step_seconds()  # between the ratios of bytes and of tensors: so a longer latency turns the order
    assert f"computes for {steps['ResNet152V2'] / steps['ResNet50V2']:.3g} times as long" in text("10")
    assert large.gradient_bytes / small.gradient_bytes < ratio < large.tensors / small.tensors
    sent = large.gradient_bytes / small.gradient_bytes
    factors = f"activations ({kept:.2f} with these images) and of gradients ({sent:.2f})"
    assert f"the {adds:.2f} of the multiply-adds" in text("10") and factors in text("10")


def test_a_busy_gpu_a_fetch_and_precisions_are_as_the_texts_say():
    assert "utilisation 100%" in on_gpu.utilisation() and on_gpu.utilisation().endswith("19%")
    rows = on_gpu.fetching()
    ratios = [float(row["with / without"].split()[0]) for row in rows]
    assert min(ratios[:2]) > max(ratios[2:]) > 1
    assert "A fetch lengthens a short step by a larger share than a long one" in text("24")
    exact, usual, *half = on_gpu.precisions()
    assert exact["step (ms)"] > 3 * usual["step (ms)"] and "more than three times" in text("25")
    assert all(row["step (ms)"] < usual["step (ms)"] for row in half)
    rounds = recorded.h200()["precision"]["ResNet50V2"]["seconds"]["float32"][1:]  # most were slower in the first
    assert usual["step (ms)"] == pytest.approx(1e3 * sum(rounds) / len(rounds))
    times = [float(row["times as fast as with TF32"].split()[0]) for row in (exact, *half)]
    assert times[0] < 1 / 3 and min(times[1:]) > 1
    found = recorded.h200()["same_steps"]["float32"]
    assert 0.5 < found["gpu_from_cpu"] / found["orders_on_gpu"] < 2
    assert found["gpu_exact_from_cpu"] < found["gpu_from_cpu"] / 100 and len(on_gpu.same_steps().splitlines()) == 5
