"""Machine files: those of the kit are complete and sourced, wrong ones are refused by name."""

import re
import tomllib
from pathlib import Path

import pytest
from simulated_study import facts

from labs.costs import MachineError, load_machine, predict_from_machine
from labs.costs.anchor import CARRIED, anchored, family
from labs.costs.computation import values
from labs.costs.machine import HERE, names, scale

FILES = [path for path in sorted(HERE.rglob("*.toml")) if path.stem != "template"]
GOOD = """
[device]
memory = "16 GB"
memory_bandwidth = "900 GB/s"
[device.float32]
peak = "15.7 TFLOP/s"
[node]
devices = 4
bandwidth = "50 GB/s"
[network]
bandwidth = "25 Gbit/s"
"""


def write(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_the_kit_has_the_machines_of_the_course():
    assert {"laptop", "cte-power", "juwels-booster", "marenostrum5", "v100-ethernet25"} <= set(names())
    assert "template" not in names()


def test_machines_load_and_predict():
    network = facts(image_size=224)
    for machine in map(load_machine, names()):
        assert machine.name and machine.about and machine.parameters["bandwidth_inside"].value > 1e8
        for precision in machine.precisions:
            found = predict_from_machine("Net", network, machine, machine.devices, 32, precision=precision)
            assert 0.2 < found.efficiency.value <= 1 and found.largest_batch.value > 0, machine.name


def test_the_template_is_a_valid_machine():
    machine = load_machine(HERE / "template.toml")
    assert machine.devices == 4 and machine.measured[0].images_per_second == 400 and not machine.notes


def test_every_number_names_its_source():
    """Each value of the kit's machines is a table with a source; only counts and choices go without."""

    def bare(table, where):
        for key, value in table.items():
            if isinstance(value, dict) and "value" not in value:
                yield from bare(value, f"{where}{key}.")
            elif isinstance(value, dict):
                if not value.get("source"):
                    yield where + key
            elif key not in ("name", "about", "base", "devices", "algorithm", "measured", "computed"):
                yield where + key

    for path in FILES:
        found = tomllib.loads(path.read_text())
        assert list(bare(found, f"{path.stem}: ")) == []
        assert all(row["source"] for kind in ("measured", "computed") for row in found.get(kind, []))


def test_values_come_with_units():
    machine = load_machine("p100-ethernet25")
    assert machine.device.memory.value == 16e9 and machine.parameters["cycle"].value == pytest.approx(0.005)
    assert machine.parameters["fusion_threshold"].value == 64 * 2**20
    assert machine.computes("float32")["peak"].value == 10.6e12
    assert machine.parameters["bandwidth_between"].interval == (2.2e9, 3.05e9)


def test_units():
    bytes_a_second = {"GB/s": 1e9, "Gbit/s": 1.25e8, "": 1}
    size, time, rate = {"MiB": 2**20, "B": 1, "kB": 1e3}, {"us": 1e-6, "ms": 1e-3, "": 1}, {"TFLOP/s": 1e12}
    for unit, factors in (("bytes/s", bytes_a_second), ("bytes", size), ("s", time), ("FLOP/s", rate)):
        assert {text: scale(text, unit) for text in factors} == pytest.approx(factors), unit


def test_a_short_file_is_enough_and_says_what_is_usual(tmp_path):
    machine = load_machine(write(tmp_path, GOOD))
    assert machine.name == "mine" and machine.parameters["bandwidth_between"].value == 25e9 / 8
    assert len(machine.notes) == 1 and "device.float32.share 1.6" in machine.notes[0]
    assert "node.latency 1e-05 s" in machine.notes[0]
    numbers = GOOD.replace('"16 GB"', "16e9").replace('"25 Gbit/s"', "3.125e9")
    assert load_machine(write(tmp_path, numbers)).parameters == machine.parameters


def test_a_base_is_taken_over_and_overridden(tmp_path):
    text = '[device]\nbase = "V100"\nmemory = "32 GB"\n[node]\ndevices = 1\n[network]\nbandwidth = 1e9\n'
    machine = load_machine(write(tmp_path, text))
    assert machine.device.memory.value == 32e9 and machine.computes("float16")["peak"].value == 125e12
    assert any(row.model == "ResNet152" for row in machine.measured)


def test_without_network_only_one_node(tmp_path):
    machine = load_machine(write(tmp_path, GOOD.split("[network]")[0]))
    assert not machine.network
    assert predict_from_machine("Net", facts(image_size=224), machine, 4, 32).efficiency.value < 1
    with pytest.raises(MachineError, match="no network, and the most workers on one of its nodes are 4, so 5 workers"):
        predict_from_machine("Net", facts(image_size=224), machine, 5, 32)


# what is replaced in GOOD, by what, words of the sentence
MISTAKES = [
    ("[device]", "[devise]", "devise is not known; did you mean device?"),
    ("memory =", "memori =", "device.memori is not known; did you mean memory?"),
    ('bandwidth = "50', 'bandwith = "50', "node.bandwith is not known; did you mean bandwidth?"),
    ('memory = "16 GB"', "", "device.memory is missing. labs/machines/template.toml explains every key."),
    ('peak = "15.7 TFLOP/s"', "", "device.float32.peak is missing."),
    ('"16 GB"', '"16 GB/s"', "device.memory is '16 GB/s': it must be a number with a unit of bytes."),
    ('"16 GB"', '"much"', "device.memory is 'much'"),
    ('"16 GB"', "true", "device.memory is True: it must be bytes from"),
    ('"16 GB"', "nan", "device.memory is nan"),
    ('"16 GB"', "-1", "device.memory is -1"),
    ('"25 Gbit/s"', "25", "network.bandwidth is 25: it must be bytes/s from 1e+06"),
    ('"15.7 TFLOP/s"', "15.7", "device.float32.peak is 15.7: it must be FLOP/s"),
    ("devices = 4", "devices = 0", "node.devices must be greater than 0, not 0."),
    ("devices = 4", "devices = true", "node.devices must be a whole number, not True."),
    ("devices = 4", "", "node.devices is missing"),
    ('bandwidth = "50 GB/s"', "", "node.bandwidth is missing: bytes/s of one worker's link are needed."),
    (
        "[network]",
        '[network]\nalgorithm = "star"',
        "network.algorithm must be 'two-level', 'ring' or 'tree', not 'star'.",
    ),
    ("[device.float32]", "[device.float8]", "device.float8 is not known; did you mean float"),
    ('[device.float32]\npeak = "15.7 TFLOP/s"', "", "device.float32 is missing: a device needs its peak"),
    ("[device.float32]\npeak =", "float32 =", "device.float32 must be a section with keys, not '15.7 TFLOP/s'."),
    (
        '"50 GB/s"',
        '{ value = "50 GB/s", range = ["60 GB/s", "70 GB/s"] }',
        "node.bandwidth.range does not hold the value",
    ),
    ('"50 GB/s"', '{ value = "50 GB/s", range = 3 }', "node.bandwidth.range must be [low, high]."),
    ('"50 GB/s"', '{ value = "50 GB/s", sauce = "x" }', "node.bandwidth.sauce is not known; did you mean source?"),
    ("[node]", "[software]\noverlap = 2\n[node]", "software.overlap is 2: it must be a number from 0 to 1"),
    ("[node]", "[software]\nspread = -0.1\n[node]", "software.spread is -0.1"),
    ("[device]", '[device]\nbase = "B200"', "device.base is 'B200': it must be one of A100, H100, H200, P100, V100"),
    ("[node]", '[[measured]]\nmodel = "X"\nbatch = 1\n[node]', "measured[1].images_per_second is missing"),
    ("[node]", "[[measured]]\nbatch = 1\nimages_per_second = 2\n[node]", "measured[1].model is missing"),
    ("[node]", '[[measured]]\nmodel = "X"\nbatch = 0\n[node]', "measured[1].batch must be greater than 0, not 0."),
    ("[device]", "[device", "cannot be read: "),
    ('[node]\ndevices = 4\nbandwidth = "50 GB/s"', "", "node is missing"),
    (
        '[node]\ndevices = 4\nbandwidth = "50 GB/s"\n[network]',
        "[node]\ndevices = 1\n[netwerk]",
        "did you mean network?",
    ),
]


def test_a_mistake_is_one_line_that_names_file_and_key(tmp_path):
    for old, new, says in MISTAKES:
        assert old in GOOD
        path = write(tmp_path, GOOD.replace(old, new, 1))
        with pytest.raises(MachineError) as caught:
            load_machine(path)
        said = str(caught.value)
        assert says in said and str(path) in said and "\n" not in said, said


def test_workers_need_a_link(tmp_path):
    alone = GOOD.replace("devices = 4", "devices = 1").replace('bandwidth = "50 GB/s"\n', "")
    assert load_machine(write(tmp_path, alone)).parameters["bandwidth_inside"].value == 25e9 / 8
    with pytest.raises(MachineError, match="network is missing: with one worker in a node"):
        load_machine(write(tmp_path, alone.split("[network]")[0]))


def test_no_such_machine(tmp_path):
    for missing in ("cte-pover", tmp_path / "none.toml", tmp_path):
        with pytest.raises(MachineError, match="no such machine file. The kit has cte-power, .*template.toml"):
            load_machine(missing)


# Anchors


def test_family():
    assert family("50Net") == ""  # of its own, and no error
    found = [family(name) for name in ("ResNet50", "ResNet152V2", "VGG16", "InceptionV3", "MobileNetV2", "Xception")]
    assert found == ["ResNet", "ResNet", "VGG", "Inception", "MobileNet", "Xception"]


def corrected(tmp_path, model, rows, batch=64, **options):
    lines = "".join(f'[[measured]]\nmodel = "{m}"\nbatch = {b}\nimages_per_second = {r}\n' for m, b, r in rows)
    machine = load_machine(write(tmp_path, GOOD + lines))
    table = {"Net50": facts(image_size=224), "Net101": facts(multiply_adds=8e9), "Net152": facts(multiply_adds=12e9)}
    line, notes = anchored(model, table[model], machine, "float32", batch, 224, lambda n, size: table[n], **options)
    return line, line.seconds(batch, values(line.parameters)), notes


def test_a_measured_rate_of_the_network_itself_is_met(tmp_path):
    rows = [("Net50", 64, 320), ("Net50", 32, 100), ("Net152", 64, 10)]
    line, seconds, notes = corrected(tmp_path, "Net50", rows)
    assert seconds == pytest.approx(64 / 320)
    assert corrected(tmp_path, "Net50", rows, batch=32)[1] == pytest.approx(32 / 100)
    low, high = line.parameters["correction"].interval
    assert high / low == pytest.approx((1 + CARRIED) ** 2)
    assert "anchored to Net50 in float32 on one worker: 100 images/s at batch 32 (measured), 320 images/s" in notes[0]


def test_a_rate_that_was_computed_is_not_called_measured():
    machine = load_machine("dgx-a100")
    assert machine.rates and not machine.measured
    assert all(re.search(r"\d x [\d.]+ h / ", row.source) for row in machine.computed)
    _, notes = anchored(
        "Net50",
        facts(image_size=224),
        machine.model_copy(update={"computed": [machine.computed[0].model_copy(update={"model": "Net50"})]}),
        "float32",
        64,
        224,
        lambda *_: facts(),
    )
    assert "images/s at batch 256 (computed)" in notes[0] and "measured" not in notes[0]


def test_between_measured_batches_the_correction_is_between_theirs_and_outside_it_stays(tmp_path):
    rows = [("Net50", 16, 100), ("Net50", 64, 320)]
    found = [
        corrected(tmp_path, "Net50", rows, batch=batch)[0].parameters["correction"].value
        for batch in (8, 16, 32, 64, 128)
    ]
    assert found[0] == found[1] and found[3] == found[4] and found[2] == pytest.approx((found[1] + found[3]) / 2)


def test_rates_that_contradict_each_other_are_averaged(tmp_path):
    """A larger batch was slower: no jump between batches, but one correction for all."""
    rows = [("Net50", 64, 400), ("Net50", 128, 360)]
    found = [corrected(tmp_path, "Net50", rows, batch=b)[0].parameters["correction"].value for b in (64, 128)]
    single = [corrected(tmp_path, "Net50", [row], batch=row[1])[0].parameters["correction"].value for row in rows]
    assert found[0] == found[1] == pytest.approx((single[0] * single[1]) ** 0.5)


def test_the_closest_of_the_family_comes_next(tmp_path):
    line, _, notes = corrected(tmp_path, "Net101", [("Net50", 64, 320), ("Net152", 64, 90)])
    assert "anchored to Net152" in notes[0]
    _, theirs, _ = corrected(tmp_path, "Net152", [("Net152", 64, 90)])
    assert theirs == pytest.approx(64 / 90)
    low, high = line.parameters["correction"].interval
    assert high / low == pytest.approx((1 + CARRIED) ** 2)


def test_without_any_rate_the_interval_is_wide(tmp_path):
    line, _, notes = corrected(tmp_path, "Net50", [("Other16", 64, 3)])
    low, high = line.parameters["correction"].interval
    assert line.parameters["correction"].value == 1 and high / low == pytest.approx(1.35**2)
    assert "+- 35 %" in notes[0]


def test_a_rate_that_is_given_goes_before_all(tmp_path):
    _, seconds, notes = corrected(tmp_path, "Net50", [("Net50", 64, 320)], rate=100)
    assert seconds == pytest.approx(0.64) and notes == []


def test_no_file_names_a_host_or_a_path():
    for path in Path(HERE).rglob("*.*"):
        assert not re.search(r"/(home|work|tmp)/", path.read_text()), path
