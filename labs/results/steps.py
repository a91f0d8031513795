"""Single steps of a run, as its record keeps them: in time, their distribution, what waiting alone would make of it."""

import numpy as np

from labs.results.run import Run


def over_time(run: Run, most: int = 60) -> np.ndarray:
    """(place, lowest, median, highest) of the steps of all epochs, four arrays; times in seconds.

    place: the epoch, from 0 (warm-up), or the round where trainings took turns, and the share of its steps done. Where
    an epoch has more than `most` steps, neighbours are put together; of a step alone, all three times are equal.
    """
    rows = []
    for repeat in run.repeats:
        for number, epoch in enumerate(repeat):
            groups = np.array_split(epoch.step_seconds, min(most, len(epoch.step_seconds)) or 1)
            begin = number if epoch.round is None else epoch.round
            for place, group in enumerate(groups):
                if len(group):
                    rows.append((begin + (place + 0.5) / len(groups), min(group), np.median(group), max(group)))
    return np.array(rows).reshape(-1, 4).T


def distribution(run: Run, workers: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The empirical distribution of the steady steps of a run.

    Returns (seconds, ascending; the share of the steps that take so long or less).
    workers: of the slowest of so many, each of which takes its step from the same epoch, whatever the others take:
    within an epoch the share to the power of `workers` (the distribution of a maximum of independent values). So that
    is what waiting alone would make of the steps of one worker. Empty arrays for a run without steady steps.
    """
    epochs = [np.sort(epoch.step_seconds) for repeat in run.steady for epoch in repeat if epoch.step_seconds]
    if not epochs:
        return np.array([]), np.array([])
    seconds = np.concatenate(epochs)
    weights = [np.diff((np.arange(len(e) + 1) / len(e)) ** workers) * len(e) for e in epochs]
    order = np.argsort(seconds, kind="stable")
    return seconds[order], np.cumsum(np.concatenate(weights)[order]) / len(seconds)


def quantile(seconds: np.ndarray, shares: np.ndarray, share: float = 0.5) -> float:
    """The seconds at or below which `share` of the steps lie.

    Of what `distribution` gave; half way to the next step where it is exactly that share, as a median is of an even
    number of steps.
    """
    at, after = (min(np.searchsorted(shares, each), len(seconds) - 1) for each in (share - 1e-12, share + 1e-12))
    return float(seconds[at] + seconds[after]) / 2
