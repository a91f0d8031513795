"""The student's ring among real processes."""

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


def test_functions_go_into_a_job_whose_busy_rounds_are_left_out_and_one_that_fails_ends_it_with_its_line(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(ring.metrics, "undisturbed", lambda others: ([len(others) - 1], "one round was quiet"))
    found = ring.run(reduce_scatter, all_gather, workers=2, numbers=100, rounds=4)
    assert found["sums"]["ring"] and [len(times) for times in found["seconds"].values()] == [1, 1]
    assert "Mind that one round was quiet." in capsys.readouterr().out
    assert ring.run(fails, all_gather, workers=2, numbers=100, rounds=1) is None
    error = (tmp_path / "ring.err").read_text()
    assert "this worker cannot go on" in error and "A worker has failed" in error
