"""What the notebooks say of the recorded GPU is what was measured there."""

import re

import pytest
from tree import ROOT

from labs import costs, recorded
from labs.models import counts
from lessons import on_gpu


def text(name):
    (source,) = (ROOT / "solutions").glob(f"{name}_*.py")
    return " ".join(re.sub(r"(?m)^# ?", "", source.read_text(encoding="utf-8")).split())


def test_four_images_take_as_long_as_one_and_many_take_longer():
    figure = on_gpu.batches()
    step = {int(size): float(ms) for size, ms in re.findall(r"(\d+): ([\d.]+) ms", figure.alt)}
    assert sorted(step) == [1, 4, 16, 64, 128, 256, 512]
    assert step[4] < 1.1 * step[1] and step[64] < 3 * step[16]
    assert all(1.8 < step[2 * size] / step[size] < 2 for size in (128, 256))
    assert "twice as large takes almost twice the time only from about 128 images on" in text("04")


def test_the_ratio_of_the_networks_is_closer_to_the_activations_than_to_the_multiply_adds():
    small, large = (counts.of(name, 224, 10) for name in ("ResNet50V2", "ResNet152V2"))
    found = recorded.h200()["turns"]["all"]["ratios"]
    ratio = next(row["ratio"] for row in found if row["of"] == "ResNet152V2_float32 / ResNet50V2_float32")
    adds, kept = large.multiply_adds / small.multiply_adds, large.activation_bytes / small.activation_bytes
    assert abs(ratio - kept) < abs(ratio - adds) / 4
    sent = large.gradient_bytes / small.gradient_bytes
    assert f"the {adds:.2f} of the multiply-adds" in text("10")
    here = [counts.of(name, 32, 10).activation_bytes for name in ("ResNet50V2", "ResNet152V2")]
    factors = (
        f"({kept:.2f} with images of 224x224, {here[1] / here[0]:.2f} with 32x32) and of gradients ({sent:.2f} with"
    )
    assert f"activations {factors} both)" in text("10")
    assert f"{ratio:.4g} (" in on_gpu.networks()


def test_a_busy_gpu_computes_a_fifth_of_what_it_could():
    assert "utilisation 100%" in on_gpu.utilisation() and on_gpu.utilisation().endswith("19%")


def test_a_fetch_costs_the_more_the_shorter_the_step():
    rows = on_gpu.fetching()
    ratios = [float(row["with / without"].split()[0]) for row in rows]
    assert min(ratios[:2]) > max(ratios[2:]) > 1
    assert "A fetch lengthens a short step by a larger share than a long one" in text("24")
    assert all(row["with a fetch (ms)"] > row["step without a fetch (ms)"] for row in rows)


def test_without_tf32_a_step_takes_more_than_three_times_as_long():
    exact, usual, *half = on_gpu.precisions()
    assert exact["step (ms)"] > 3 * usual["step (ms)"] and "more than three times" in text("25")
    assert all(row["step (ms)"] < usual["step (ms)"] for row in half)


def test_gpu_and_cpu_differ_as_two_orders_on_the_gpu_do():
    found = recorded.h200()["same_steps"]["float32"]
    assert 0.5 < found["gpu_from_cpu"] / found["orders_on_gpu"] < 2
    assert found["gpu_exact_from_cpu"] < found["gpu_from_cpu"] / 100
    assert len(on_gpu.same_steps().splitlines()) == 5


@pytest.mark.parametrize(("model", "precision"), [("ResNet50V2", "float32"), ("ResNet152V2", "float16")])
def test_predict_knows_the_rates_of_the_gpu(tmp_path, model, precision):
    path = tmp_path / "gpu.toml"
    path.write_text('name = "one"\n[device]\nbase = "H200"\n[node]\ndevices = 1\nbandwidth = 1e9\n')
    case = f"{model} {'mixed_' * (precision == 'float16')}{precision}"
    measured = recorded.h200()["steps"][case]["step_seconds"]
    found = costs.predict_from_machine(
        model, counts.of(model, 224, 10), costs.load_machine(path), 1, 128, precision=precision
    )
    assert found.quantities["step_seconds"].value == pytest.approx(measured, rel=0.02)
