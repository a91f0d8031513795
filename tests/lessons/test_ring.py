"""The student's ring among real processes."""

import json
from types import SimpleNamespace

from answers.averages_and_rings import STYLES
from making import edited

from lessons import reduce
from lessons.averages_and_rings import ring

(in_place,), (reduce_scatter,) = edited(*STYLES[0]), edited("averages.16")
(all_gather,) = edited("averages.17")


def replaces(worker, K, chunks, exchange):
    for step in range(K - 1):
        chunks[(worker - step - 1) % K] = exchange(chunks[(worker - step) % K])


def fails(worker, K, chunks, exchange):
    if worker == 1:
        raise ZeroDivisionError("this worker cannot go on")
    return exchange(chunks[0])


def test_right_functions_sum_among_processes_bytes_are_counted_and_a_wrong_sum_is_seen():
    for workers in (2, 3):
        found = ring.measure(in_place, all_gather, workers=workers, numbers=10, rounds=2)
        assert found["sums"] == {"ring": True, "server": True}
        steps = reduce.ring([[0.0] * 10] * workers)
        sent = [sum(4 * send.size for step in steps for send in step.sends if send.sender == w) for w in range(workers)]
        assert found["bytes"] == {"ring": sent, "server": [40 * (workers - 1)] + [40] * (workers - 1)}
        assert [len(times) for times in found["seconds"].values()] == [1, 1] and len(found["others"]) == 1
    found = ring.measure(replaces, all_gather, workers=3, numbers=7, rounds=1)
    assert found["sums"] == {"ring": False, "server": True}


def test_busy_rounds_are_left_out_as_in_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    seconds = {"ring": [1.0, 9.0, 1.0, 1.0], "server": [2.0, 2.0, 2.0, 2.0]}

    def done(*_, name):
        out = tmp_path / f"{name}.out"
        out.write_text(json.dumps({"seconds": seconds, "others": [0, 0.9, 0, None]}))
        return SimpleNamespace(state="finished", out=out)

    monkeypatch.setattr(ring.jobs, "run", done)
    found = ring.run(in_place, all_gather)
    assert found["seconds"] == {"ring": [1.0] * 3, "server": [2.0] * 3}
    assert "Mind that other programs took over 20% of the cores in 1 of 4" in capsys.readouterr().out


def test_functions_go_along_as_text_into_a_job_and_one_that_fails_ends_it_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    found = ring.run(reduce_scatter, all_gather, workers=2, numbers=100, rounds=1)
    assert found["sums"]["ring"] and "def reduce_scatter" in (tmp_path / "ring_functions.py").read_text()
    assert ring.run(fails, all_gather, workers=2, numbers=100, rounds=1) is None
    error = (tmp_path / "ring.err").read_text()
    assert "this worker cannot go on" in error and "A worker has failed" in error
