"""Who reads what: lessons.sharding, counted."""

import numpy as np

from lessons import sharding

LABELS = np.repeat(np.arange(10), 48)  # sorted by class, as an image folder is


def test_own_seeds_leave_the_share_unseen_that_the_formula_says():
    n, random = 5000, np.random.default_rng(1)
    for workers in (2, 3, 8):
        reads = ([random.permutation(n)[rank::workers] for rank in range(workers)] for _ in range(10))
        unseen = [len(sharding.coverage(shares, n).unseen) / n for shares in reads]
        assert abs(np.mean(unseen) - (1 - 1 / workers) ** workers) < 0.01  # as notebook 07 says


def test_coverage_names_unseen_repeated_and_foreign_numbers():
    found = sharding.coverage([[0, 1, 1], [2, 7, -1]], 5)
    assert found.unseen.tolist() == [3, 4] and found.repeated.tolist() == [1]
    assert found.foreign.tolist() == [-1, 7] and not found.right
    text = sharding.sentence(found, 5)
    assert "1 of 5 samples are read more than once (1)" in text and "2 of 5 samples are never read (3, 4)" in text
    assert "-1, 7 is no sample" in text and sharding.some(range(9)) == "0, 1, 2, 3, ..."
    assert sharding.sentence(sharding.coverage([[1, 0], [2]], 3), 3) == "All 3 samples are read, each once."


def test_class_counts_hold_every_sample_once_also_in_a_smaller_last_batch():
    counts = sharding.class_counts([np.arange(0, 480, 2), np.arange(1, 479, 2)], LABELS, 32, 10)
    assert counts.shape == (2, 8, 10) and counts.sum((1, 2)).tolist() == [240, 239]
    assert counts[1, -1].sum() == 15 and counts[0, 0].tolist() == [24, 8] + [0] * 8
