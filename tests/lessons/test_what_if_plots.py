"""The picture up to 4096 workers: what it says is the model's, and the notebook's two questions have their answers."""

import pytest

from labs import costs
from labs.lessons.nb08 import pictures
from labs.show import plots, widgets


def test_it_is_the_cost_model():
    """As `labs predict` tells it for the same machine, but for the rate of one worker."""
    found = pictures.steps("ResNet50V2", batch=64)
    machine = pictures.machine()
    facts = pictures.networks()["ResNet50V2"]
    told = costs.predict("ResNet50V2", facts, machine, 64, 64, facts_of=lambda name, size: facts, rate=405.0)
    assert found[1].computation == pytest.approx(64 / 405, rel=0.1)  # V2 does not cost the same as what was measured
    assert pictures.efficiencies("ResNet50V2", batch=64)[64] == pytest.approx(told.efficiency.value, abs=0.05)
    assert list(found) == [2**k for k in range(13)]


@pytest.mark.parametrize("network", pictures.NAMES)
@pytest.mark.parametrize(
    "name, worse, better",
    [
        ("batch", 16, 64),
        ("bandwidth", 10, 100),
        ("latency", 100, 2),
        ("fusion", 0, 128),
        ("accumulation", 1, 4),
        ("precision", "float16", "float32"),
    ],
)
def test_each_control_moves_the_efficiency_its_own_way(network, name, worse, better):
    low, high = (pictures.efficiencies(network, **{name: value})[1024] for value in (worse, better))
    assert low < high


def test_efficiency_is_1_alone_and_never_more():
    for network in pictures.NAMES:
        values = pictures.efficiencies(network, batch=32, bandwidth=10)
        assert values[1] == 1.0 and max(values.values()) <= 1.0


def test_first_below():
    values = pictures.efficiencies("ResNet50V2", bandwidth=10)
    first = pictures.first_below("ResNet50V2", bandwidth=10)
    assert values[first] < 0.8 <= values[first // 2]
    assert pictures.first_below("ResNet50V2", limit=0.0) is None


def test_answers_of_the_notebook():
    """08.22: at each network's own largest batch and 10 Gbit/s the smaller one gets further, at an equal batch not so.
    08.23: without fusion the one with more tensors falls behind."""
    below = pictures.first_below
    own = below("ResNet50V2", batch=128, bandwidth=10), below("ResNet152V2", batch=64, bandwidth=10)
    equal = below("ResNet50V2", batch=64, bandwidth=10), below("ResNet152V2", batch=64, bandwidth=10)
    assert None not in own and own[0] > own[1] and equal[0] <= equal[1]
    fits = {name: pictures.fits(name) for name in pictures.NAMES}
    assert 128 <= fits["ResNet50V2"] < 256 and 64 <= fits["ResNet152V2"] < 128  # the powers of two in the text
    fused = [pictures.efficiencies(name)[64] for name in pictures.NAMES]
    alone = [pictures.efficiencies(name, fusion=0)[64] for name in pictures.NAMES]
    assert fused[1] > fused[0] and alone[1] < alone[0]
    assert [len(pictures.networks()[name].tensor_bytes) for name in pictures.NAMES] == [174, 514]


def test_float16_computes_faster_at_a_lower_efficiency():
    slow, fast = (pictures.steps("ResNet152V2", precision=p)[64] for p in ("float32", "float16"))
    assert fast.step < slow.step and fast.computation / fast.step < slow.computation / slow.step


def test_the_picture_says_what_it_draws():
    figure = pictures.scaling("ResNet50V2", batch=128, bandwidth=10)
    first = pictures.first_below("ResNet50V2", batch=128, bandwidth=10)
    assert f"ResNet50V2: below 0.8 from {first}" in figure.alt and "Predicted" in figure.alt
    assert f"(about {pictures.fits('ResNet152V2')} images fit)" in figure.alt
    lines = {len(line.get_xdata()): line for line in figure.axes[0].get_lines()}
    assert list(lines[13].get_ydata()) == list(pictures.efficiencies("ResNet152V2", batch=128, bandwidth=10).values())
    assert lines[13].get_linestyle() == ":"  # batch 128 of ResNet152V2 does not fit
    assert figure.axes[1].get_title().startswith("ResNet50V2") and plots.png(figure)[:4] == b"\x89PNG"
    assert figure._supxlabel.get_text() == "predicted"


def test_as_a_widget_it_begins_at_its_defaults():
    box = widgets.explore(
        pictures.scaling,
        network=list(pictures.NAMES),
        batch=[8, 16, 32, 64, 128, 256],
        fusion=[0, 8, 128],
        accumulation=(1, 8),
    )
    assert [child.value for child in box.children[:-1]] == ["ResNet152V2", 64, 128, 1]
    assert "<img" in box.children[-1].value


def test_another_network_is_refused():
    with pytest.raises(costs.CostError, match="not in this picture"):
        pictures.steps("VGG16")
