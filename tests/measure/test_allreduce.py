"""The all-reduce benchmark: fits known links, runs on real ranks, refuses what it cannot measure."""

import json
import sys
from itertools import product

import numpy as np
import pytest

from labs import cli, jobs
from labs.costs import fit as scaling_fit
from labs.costs.parameter import CostError, Parameter
from labs.measure import allreduce
from labs.simulate.reduce import ring_seconds


def test_fit_recovers_a_ring():
    for ranks, (latency, bandwidth) in product((2, 4, 16), ((5e-4, 4e8), (1e-5, 1e10), (2e-6, 1e11))):
        seconds = [ring_seconds(ranks, size, latency, bandwidth) for size in allreduce.SIZES]
        found = allreduce.fit(ranks, list(allreduce.SIZES), seconds)
        assert found[0].value == pytest.approx(latency) and found[1].value == pytest.approx(bandwidth)
        assert found[0].unit == "s" and found[1].unit == "bytes/s" and found[2] < 1e-6


def test_intervals_cover_the_truth():
    random, held = np.random.default_rng(0), np.zeros(2)
    exact = np.array([ring_seconds(4, size, 2e-5, 5e9) for size in allreduce.SIZES])
    for _ in range(500):
        latency, bandwidth, _ = allreduce.fit(4, list(allreduce.SIZES), list(exact * np.exp(random.normal(0, 0.1, 9))))
        held += [
            latency.interval[0] <= 2e-5 <= latency.interval[1],
            bandwidth.interval[0] <= 5e9 <= bandwidth.interval[1],
        ]
        assert bandwidth.interval[0] < bandwidth.value < bandwidth.interval[1]
    assert np.all((held / 500 > 0.91) & (held / 500 < 0.99)), held / 500


def test_messages_of_one_size_tell_no_latency():
    with pytest.raises(CostError, match="one size cannot tell latency and bandwidth apart"):
        allreduce.fit(2, [1024, 1024], [1e-3, 1e-3])


def test_row_holds_the_median_and_its_interval():
    samples = [float(k) for k in range(15, 0, -1)]
    row = allreduce.row(4, 8, samples)
    assert row["seconds"] == 8 and row["samples"] == 15 and row["bytes_per_second"] == 2 * 3 / 4 * 8 / 8
    assert row["interval"] == [4.0, 12.0]  # order statistics 4 and 12 of 15: tables of the sign test
    random = np.random.default_rng(1)
    held = [
        low <= np.log(2) <= high
        for low, high in (allreduce.row(2, 8, list(random.exponential(1, 15)))["interval"] for _ in range(1000))
    ]
    assert 0.94 < np.mean(held) < 0.99


@pytest.fixture(scope="module")
def measured(tmp_path_factory, needs_horovod):
    runs = tmp_path_factory.mktemp("runs")
    return allreduce.measure(2, sizes=(2**10, 2**16, 2**20, 2**24), repeats=7, runs=runs), runs


def test_two_real_ranks(measured):
    result, runs = measured
    assert result["kind"] == "measured" and result["ranks"] == 2 and result["launcher"] == "horovodrun"
    assert [row["bytes"] for row in result["rows"]] == [2**10, 2**16, 2**20, 2**24]
    for row in result["rows"]:
        assert row["samples"] == 7 and row["interval"][0] <= row["seconds"] <= row["interval"][1]
        assert row["bytes_per_second"] == pytest.approx(row["bytes"] / row["seconds"])
    assert result["latency"]["value"] >= 0 and result["bandwidth"]["value"] > 0
    assert result["latency"]["unit"] == "s" and result["bandwidth"]["interval"][0] < result["bandwidth"]["value"]
    assert result["versions"]["horovod"] and result["machine"]["cores"] >= 1
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert {"allreduce.out", "allreduce.err", "allreduce_times.json"} <= {path.name for path in runs.iterdir()}


def test_table(measured):
    text = allreduce.table(measured[0])
    assert "All-reduce among 2 ranks (horovodrun), measured" in text and "16777216" in text
    assert "us a message" in text and "MB/s of each rank's link" in text


def test_the_cost_model_takes_the_result(measured):
    from costs.simulated_study import Truth, facts

    net = facts()
    rows = [Truth().observe(net, 1, batch) for batch in (32, 64, 128)]
    found = scaling_fit(rows, lambda *_: net, measured[0])
    assert found.links["bandwidth_inside"].value == measured[0]["bandwidth"]["value"]
    assert isinstance(found.links["latency_inside"], Parameter) and found.workers == 2


def test_a_rank_sends_as_many_bytes_as_the_table_says(monkeypatch, tmp_path):
    import types

    sent = {}

    def allreduce_of_two(tensor, op=None, name=None, ignore_name_scope=False):
        sent[name] = 4 * int(np.prod(tensor.shape))
        return 2 * tensor

    rank = {"init": lambda: None, "Sum": "sum", "allreduce": allreduce_of_two, "size": lambda: 2, "rank": lambda: 0}
    rank |= {"local_rank": lambda: 0, "local_size": lambda: 2}
    monkeypatch.setitem(sys.modules, "horovod", types.ModuleType("horovod"))
    monkeypatch.setitem(sys.modules, "horovod.tensorflow", types.SimpleNamespace(**rank))
    monkeypatch.setattr(sys.modules["horovod"], "tensorflow", sys.modules["horovod.tensorflow"], raising=False)
    monkeypatch.setattr(allreduce.devices, "pin", lambda *_: None)
    allreduce._rank(tmp_path / "times.json", 1, 0, 1024, 4096, 2**20)
    assert {name: n for name, n in sent.items() if name != "together"} == {f"bytes_{n}": n for n in (1024, 4096, 2**20)}


def test_wrong_use():
    for options, says in (
        ({"ranks": 1}, "1 rank has nobody to exchange with"),
        ({"sizes": (1024, 2048)}, "need 3 different whole numbers"),
        ({"sizes": (1024, 1024, 1024)}, "need 3 different"),
        ({"sizes": (1, 2, 3)}, "each 4 or more"),
        ({"sizes": (1024.5, 2048, 4096)}, "whole numbers"),
        ({"repeats": 3}, "repeats is 3"),
        ({"repeats": True}, "repeats is True"),
        ({"repeats": 8.5}, "repeats is 8.5"),
    ):
        with pytest.raises(allreduce.AllReduceError) as caught:
            allreduce.measure(**options)
        assert says in str(caught.value) and "\n" not in str(caught.value)


def test_too_few_ranks_is_the_launchers_business():
    from labs.jobs.launch import LaunchError

    with pytest.raises(LaunchError, match="0 ranks"):
        allreduce.measure(0)


def test_a_job_that_fails_says_so(monkeypatch, tmp_path):
    (tmp_path / "fails.py").write_text("raise OSError('a broken link')")
    start = jobs.start
    monkeypatch.setattr(jobs, "start", lambda *_, name, runs, **__: start(tmp_path / "fails.py", name=name, runs=runs))
    with pytest.raises(allreduce.NotMeasuredError, match="The all-reduce was not measured.*a broken link"):
        allreduce.measure(2, runs=tmp_path)


def test_times_that_do_not_grow_with_the_message_say_so(monkeypatch, tmp_path):
    found = {"seconds": {2**10: [0.02] * 6, 2**20: [0.01] * 6, 2**22: [0.01] * 6}}
    found |= {"machine": {"gpus": []}, "versions": {}}
    text = f"import pathlib; pathlib.Path('allreduce_times.json').write_text({json.dumps(found)!r})"
    (tmp_path / "times.py").write_text(f"import os; os.chdir({str(tmp_path)!r}); {text}")
    start = jobs.start
    monkeypatch.setattr(jobs, "start", lambda *_, name, runs, **__: start(tmp_path / "times.py", name=name, runs=runs))
    with pytest.raises(allreduce.NotMeasuredError, match="Large messages took no longer than small ones") as caught:
        allreduce.measure(2, runs=tmp_path)
    assert "\n" not in str(caught.value)


def test_command(monkeypatch, capsys):
    asked = {}

    def measure(ranks, **options):
        asked.update(options, ranks=ranks)
        rows = [allreduce.row(2, 1024, [1e-3] * 8)]
        links = {name: {"value": 1e-3, "unit": "", "interval": None} for name in ("latency", "bandwidth")}
        return {"kind": "measured", "ranks": 2, "launcher": "mpiexec", "rows": rows, "notes": ["busy"], **links}

    monkeypatch.setattr(allreduce, "measure", measure)
    parser = cli.LABS.parser()
    words = "allreduce --ranks 3 --launcher mpiexec --repeats 9".split()
    assert allreduce.run(parser.parse_args(words)) == 0
    assert asked == {"ranks": 3, "launcher": "mpiexec", "repeats": 9, "runs": None, "show": True}
    assert "Note: busy." in capsys.readouterr().out
    assert allreduce.run(parser.parse_args(["allreduce", "--json"])) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["bytes"] == 1024
