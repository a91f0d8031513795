"""The all-reduce benchmark: fits known links, runs on real ranks, refuses what it cannot measure."""

import json
import types
from itertools import product

import numpy as np
import pytest

import labs
from labs import cli, jobs
from labs.errors import LabsError, UseError
from labs.measure import allreduce
from lessons.reduce import ring_seconds


def test_fit_recovers_a_ring_and_its_intervals_cover_it():
    sizes = list(allreduce.SIZES)
    for ranks, (latency, bandwidth) in product((2, 4, 16), ((5e-4, 4e8), (1e-5, 1e10), (2e-6, 1e11))):
        found = allreduce.fit(ranks, sizes, [ring_seconds(ranks, size, latency, bandwidth) for size in sizes])
        assert found[0]["value"] == pytest.approx(latency) and found[1]["value"] == pytest.approx(bandwidth)
        assert (found[0]["unit"], found[1]["unit"]) == ("s", "bytes/s") and found[2] < 1e-6
    random, held = np.random.default_rng(0), np.zeros(2)
    exact = np.array([ring_seconds(4, size, 2e-5, 5e9) for size in sizes])
    for _ in range(500):
        *links, worst = allreduce.fit(4, sizes, list(exact * np.exp(random.normal(0, 0.1, 9))))
        ends = [link["interval"] for link in links]
        held += [low <= true <= high for (low, high), true in zip(ends, (2e-5, 5e9), strict=True)]
        assert worst > 0.01
    assert np.all((held / 500 > 0.91) & (held / 500 < 0.99)), held / 500


def test_row_holds_the_median_and_its_interval():
    row = allreduce.row(4, 8, [float(k) for k in range(15, 0, -1)])
    assert row["seconds"] == 8 and row["samples"] == 15 and row["bytes_per_second"] == 2 * 3 / 4 * 8 / 8
    assert row["interval"] == [4.0, 12.0]  # order statistics 4 and 12 of 15: tables of the sign test


@pytest.mark.more("real ranks over MPI")
def test_two_real_ranks(tmp_path, needs_horovod):
    result = allreduce.measure(2, sizes=(2**10, 2**16, 2**20, 2**24), repeats=7, runs=tmp_path)
    assert (result["kind"], result["ranks"], result["launcher"]) == ("measured", 2, "horovodrun")
    assert [row["bytes"] for row in result["rows"]] == [2**10, 2**16, 2**20, 2**24]
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert f"bandwidth: {result['bandwidth']['value'] / 1e6:.4g}" in allreduce.table(result)


def test_a_rank_sends_as_many_bytes_as_the_table_says(monkeypatch, tmp_path):
    sent = {}

    def allreduce_of_two(tensor, op=None, name=None):
        sent[name] = 4 * int(np.prod(tensor.shape))
        return 2 * tensor

    rank = {"init": lambda: None, "Sum": "sum", "allreduce": allreduce_of_two, "size": lambda: 2, "rank": lambda: 0}
    hvd = types.SimpleNamespace(**rank, local_rank=lambda: 0, local_size=lambda: 2)
    monkeypatch.setattr(labs, "hvd", hvd, raising=False)
    monkeypatch.setattr(allreduce.devices, "pin", lambda *_: None)
    allreduce._rank(tmp_path / "times.json", 3, 0, 1024, 4096, 2**20)
    assert {name: n for name, n in sent.items() if name != "together"} == {f"bytes_{n}": n for n in (1024, 4096, 2**20)}
    found = json.loads((tmp_path / "times.json").read_text())["seconds"]
    assert {size: len(seconds) for size, seconds in found.items()} == {"1024": 3, "4096": 3, "1048576": 3}


def test_wrong_use():
    for options, says in (
        ({"ranks": 1}, "ranks is 1: .* at least 2"),
        ({"sizes": (1024, 2048, 2048)}, "need 3 different ones"),
        ({"sizes": (1, 2, 3)}, "is 1: .* at least 4"),
        ({"repeats": 5}, "repeats is 5: .* at least 6"),
    ):
        with pytest.raises(UseError, match=says):
            allreduce.measure(**options)


def test_what_was_not_measured_says_so_and_what_was_is_told(monkeypatch, tmp_path, capsys):
    start, program = jobs.start, tmp_path / "times.py"
    monkeypatch.setattr(jobs, "start", lambda *_, name, runs, **__: start(program, name=name, runs=runs))
    program.write_text("raise OSError('a broken link')")
    with pytest.raises(LabsError, match="The all-reduce was not measured.*a broken link"):
        allreduce.measure(2, runs=tmp_path)
    for ranks, *seconds in ((2, 0.02, 0.01, 0.01), (99, 0.01, 0.01, 1.0)):
        times = {2**k: [each] * 6 for k, each in zip((10, 20, 22), seconds, strict=True)}
        text = json.dumps({"seconds": times, "machine": {"gpus": []}, "versions": {}})
        program.write_text(f"open({str(tmp_path / 'allreduce_times.json')!r}, 'w').write({text!r})")
        words = ["allreduce", "--ranks", str(ranks), "--out", str(tmp_path)]
        code = cli.main(words)
        said, error = capsys.readouterr()
        if ranks == 2:
            assert code == 1 and "Large messages took no longer than small ones" in error and error.count("\n") == 1
        else:
            assert code == 0 and "Note: oversubscribed: more ranks (99) than cores" in said
            assert "the ring's formula misses a message's time by up to" in said
