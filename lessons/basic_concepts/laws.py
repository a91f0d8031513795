"""The two laws that say how far speedup can go."""


def amdahl(workers, serial):
    """Speedup of a fixed problem (strong scaling): 1 / (s + (1 - s) / p).

    workers: p, a number or an array; serial: share s of the time on one worker that no second worker shortens, from 0
    to 1. Source: G. Amdahl, AFIPS 1967. For many workers it tends to 1 / s.
    """
    return 1 / (serial + (1 - serial) / workers)


def gustafson(workers, serial):
    """Speedup of a problem that grows with the workers (weak scaling): s + p (1 - s).

    workers: p, a number or an array; serial: share s of the time on p workers that is not shared, from 0 to 1.
    Source: J. Gustafson, CACM 31 (1988).
    """
    return serial + workers * (1 - serial)
