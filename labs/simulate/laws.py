"""Speedup, efficiency, and the two laws that say how far they can go."""

from labs.simulate.given import number, whole


def speedup(seconds_1, seconds_p):
    """S(p) = T(1) / T(p), from two times in seconds, both above 0."""
    return number("seconds_1", seconds_1, above=True) / number("seconds_p", seconds_p, above=True)


def efficiency(speedup, workers):
    """E(p) = S(p) / p: the share of the ideal speedup."""
    return number("speedup", speedup) / whole("workers", workers)


def amdahl(workers, serial):
    """Speedup of a fixed problem (strong scaling): 1 / (s + (1 - s) / p).

    serial: share s of the time on one worker that no second worker shortens, from 0 to 1.
    Source: G. Amdahl, AFIPS 1967. For many workers it tends to 1 / s.
    """
    workers, serial = whole("workers", workers), number("serial", serial, most=1)
    return 1 / (serial + (1 - serial) / workers)


def gustafson(workers, serial):
    """Speedup of a problem that grows with the workers (weak scaling): s + p (1 - s).

    serial: share s of the time on p workers that is not shared, from 0 to 1. Source: J. Gustafson, CACM 31 (1988).
    """
    workers, serial = whole("workers", workers), number("serial", serial, most=1)
    return serial + workers * (1 - serial)
