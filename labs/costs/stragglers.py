"""How much longer than the mean worker the slowest of K takes."""

from functools import lru_cache

from labs.simulate.given import number, whole


@lru_cache(4096)
def slowest(workers: int, spread: float) -> float:
    """Expected time of the slowest of K workers / mean time of a worker, >= 1; 1 for one worker.

    The workers' times are independent gamma variables with the relative standard deviation `spread` (as in
    lessons.averages.stragglers). With the quantile function Q, the maximum of K has the distribution function F^K, so

        E[max] = integral of Q(u^(1/K)) over u from 0 to 1.

    Source: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, chapters 2 and 3. Raises
    SimulationError for less than 1 worker or a spread that is negative or above 10.
    """
    import numpy as np
    from scipy.special import gammainccinv

    workers, spread = whole("workers", workers), number("spread", spread, most=10)
    if workers == 1 or spread < 1e-6:
        return 1.0
    # u = 1 - v^3 puts the nodes close to where Q grows without bound.
    nodes, weights = np.polynomial.legendre.leggauss(120)
    v = (nodes + 1) / 2
    tail = -np.expm1(np.log1p(-(v**3)) / workers)
    shape = spread**-2
    return float(np.sum(weights / 2 * 3 * v**2 * gammainccinv(shape, tail)) / shape)
