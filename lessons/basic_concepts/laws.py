"""The two laws that say how far speedup can go."""

from labs.errors import number, whole


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
