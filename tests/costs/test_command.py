"""`labs predict`: options, text and JSON, exit by sentence; from a machine, from runs, from both."""

import json

import pytest
from simulated_study import facts as made_up

from labs import cli, recorded
from labs.costs import CostError, command
from labs.errors import LabsError
from labs.models import counts


@pytest.fixture(autouse=True)
def no_keras(monkeypatch):
    """Facts from nowhere: these tests build no network."""

    def of(name, image_size=224, classes=1000):
        if name == "Nothing":
            raise counts.FactsError("No network is called 'Nothing'.")
        return made_up(name, image_size=image_size)

    monkeypatch.setattr(counts, "of", of)


def parse(*words):
    return cli.LABS.parser().parse_args(["predict", *(str(word) for word in words)])


def run(capsys, *words):
    assert command.run(parse(*words)) == 0
    return capsys.readouterr().out


RECORDS = [path.with_suffix(".json") for path in recorded.laptop_horovod()]
MACHINE = ("--model", "ResNet101", "--workers", 512, "--local_batch", 64, "--machine", "p100-ethernet25")


def test_json_of_a_machine(capsys):
    row = json.loads(run(capsys, *MACHINE, "--json"))
    assert row["kind"] == "predicted" and row["model"] == "ResNet101" and row["workers"] == 512
    assert row["local_batch"] == 64 and row["global_batch"] == 512 * 64 and row["image_size"] == 224
    for key in ("step_seconds", "images_per_second", "speedup", "efficiency", "largest_batch"):
        low, high = row[f"{key}_interval"]
        assert low <= row[key] <= high, key
    assert row["notes"] and row["parameters"]["overlap"]["interval"] == [0.0, 1.0]


def test_text_of_a_machine(capsys):
    out = run(capsys, *MACHINE, "--images", 1281167)
    assert out.startswith("ResNet101 on 512 workers, batch 64 each, float32, 224 pixels; 128 servers")
    for word in ("speedup", "efficiency", "epoch", "largest batch", "all-reduce, exposed", "Note: central values are"):
        assert word in out
    assert "nan" not in out and "None" not in out


def test_a_machine_by_path(capsys, tmp_path):
    text = '[device]\nbase = "P100"\n[node]\ndevices = 4\nbandwidth = "10 GB/s"\n[network]\nbandwidth = "25 Gbit/s"\n'
    (tmp_path / "my.toml").write_text(text)
    row = json.loads(run(capsys, "--model", "VGG16", "--workers", 8, "--machine", tmp_path / "my.toml", "--json"))
    assert row["machine"] == "my" and row["local_batch"] == 64 and 0 < row["efficiency"] < 1


def test_options_reach_the_model(capsys):
    def row(*more):
        words = ("--model", "ResNet50", "--workers", 16, "--machine", "v100-ethernet25", "--json")
        return json.loads(run(capsys, *words, *more))

    plain = row()
    assert row("--precision", "float16")["step_seconds"] < plain["step_seconds"]
    assert row("--compression", "float16")["breakdown_seconds"]["all_reduce"] < plain["breakdown_seconds"]["all_reduce"]
    assert row("--accumulation", 4)["efficiency"] > plain["efficiency"]
    assert row("--accumulation", 4)["global_batch"] == 4 * plain["global_batch"]
    assert row("--optimizer_slots", 2)["largest_batch"] < plain["largest_batch"]
    assert row("--image_size", 64)["image_size"] == 64
    assert row("--local_batch", 128)["images_per_second"] > plain["images_per_second"]
    inception = ("--model", "InceptionV3", "--workers", 1, "--machine", "cte-power", "--json")
    assert json.loads(run(capsys, *inception))["image_size"] == 299
    known = row("--one_worker", 100)
    assert known["images_per_second_per_worker"] / known["efficiency"] == pytest.approx(100)


def test_from_records(capsys):
    words = ("--model", "ResNet50V2", "--workers", 2, "--records", *RECORDS, "--json")
    row = json.loads(run(capsys, *words))
    assert row["local_batch"] == 64 and row["image_size"] == 32 and row["largest_batch"] is None
    assert row["machine"] == "AMD EPYC" and row["images_per_second"] == pytest.approx(119, rel=0.05)
    assert any("cannot be separated" in note for note in row["notes"])
    there = json.loads(run(capsys, *words, "--machine", "laptop"))
    assert there["largest_batch"] > 0 and any("another machine" in note for note in there["notes"])


def test_from_a_log_alone(capsys):
    sizes = ("--image_size", 128, "--images", 50000)
    words = ("--model", "ResNet50V2", "--workers", 8, "--records", recorded.CTE_POWER, *sizes, "--json")
    row = json.loads(run(capsys, *words))
    assert row["local_batch"] == 256 and row["epoch_seconds"] == pytest.approx(6.2, rel=0.1)
    assert any("extrapolation: 8 workers" in note for note in row["notes"])


def test_records_of_another_network_scale_its_computation(capsys):
    out = run(capsys, "--model", "VGG16", "--workers", 2, "--records", *RECORDS)
    assert "VGG16 at 32 pixels was not measured" in out


def test_benchmark_and_files_that_are_no_runs(capsys, tmp_path):
    for file in RECORDS:
        (tmp_path / file.name).write_text(file.read_text())
    (tmp_path / "table.json").write_text("[]")
    (tmp_path / "broken.out").write_text("nothing\n")
    bench = tmp_path / "bench.txt"
    links = {
        "latency": {"value": 1e-4, "unit": "s", "interval": [5e-5, 2e-4]},
        "bandwidth": {"value": 3e8, "unit": "bytes/s", "interval": None},
        "ranks": 2,
    }
    bench.write_text(json.dumps(links))
    words = ("--model", "ResNet50V2", "--workers", 2, "--records", tmp_path, "--json")
    row = json.loads(run(capsys, *words, "--benchmark", bench))
    assert row["parameters"]["bandwidth_inside"]["value"] == 3e8 and "overlap" in row["parameters"]
    (left_out,) = (note for note in row["notes"] if note.startswith("left out: "))  # table.json is no run's
    assert "broken.out" in left_out
    bench.write_text("{")
    with pytest.raises(CostError, match="cannot be read as JSON of `labs allreduce --json`"):
        command.run(parse(*words, "--benchmark", bench))


WRONG = [
    (("--workers", 4), "Give --machine FILE, or --records DIR"),
    (("--workers", 0, "--machine", "cte-power"), "argument --workers: 0 is not a whole"),
    (("--workers", 4, "--machine", "nowhere"), "no such machine file"),
    (("--workers", 4, "--machine", "cte-power", "--local_batch", 0), "argument --local_batch: 0 is not a whole"),
    (("--workers", 4, "--machine", "cte-power", "--local_batch", -8), "argument --local_batch: -8 is not a whole"),
    (("--workers", 4, "--machine", "cte-power", "--precision", "int8"), "has no int8"),
    (("--workers", 4, "--machine", "cte-power", "--one_worker", "nan"), "nan"),
    (("--workers", 4, "--machine", "cte-power", "--benchmark", "x"), "--benchmark needs --records"),
    (("--workers", 4, "--records", "nowhere"), "nowhere: no such file or folder"),
    (("--workers", 4, "--records", *RECORDS, "--one_worker", 3), "both say what one worker does"),
    (("--workers", 4, "--records", *RECORDS, "--benchmark", "no.json"), "no.json: cannot be read"),
]


def test_wrong_use(capsys):
    for words, says in WRONG:
        with pytest.raises((LabsError, SystemExit)) as caught:
            command.run(parse("--model", "ResNet50", *words))
        said = capsys.readouterr().err.strip() or str(caught.value)
        assert says in said and "\n" not in said, words
        assert caught.value.code == 2


def test_an_unknown_network_is_the_factss_business():
    with pytest.raises(counts.FactsError, match="Nothing"):
        command.run(parse("--model", "Nothing", "--workers", 2, "--machine", "cte-power"))
