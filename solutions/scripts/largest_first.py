"""A curve through many points, on several ranks: large gradients are averaged first, since they matter most."""

import numpy as np

from labs import hvd

STEPS, RATE = 60, 0.2


def share():
    """This rank's part of the points, {name of a coefficient: what it is multiplied by}, and y."""
    random = np.random.default_rng(7)
    x = random.uniform(-1, 1, 240)
    y = 2 * x + 1 - 3 * x**2 + random.normal(0, 0.1, 240)
    mine = slice(hvd.rank(), None, hvd.size())
    return {"constant": np.ones(240)[mine], "slope": x[mine], "bend": x[mine] ** 2}, y[mine]


def mean(value, name):
    """The mean of all ranks' values. Horovod brings together what has the same name."""
    return float(hvd.allreduce(value, name=name))


def gradients(curve, x, y):
    """{name: gradient of this rank's loss by a coefficient}."""
    error = sum(curve[name] * x[name] for name in curve) - y
    return {name: float(2 * np.mean(error * x[name])) for name in curve}


def fit(x, y):
    """The curve, {name: coefficient}, after STEPS steps of gradient descent."""
    curve = dict.fromkeys(x, 0.0)
    for _ in range(STEPS):
        own = gradients(curve, x, y)
        ### BEGIN SOLUTION
        ### GIVEN: for name in sorted(own, key=lambda name: -abs(own[name])):
        for name in sorted(own):
        ### END SOLUTION
            curve[name] -= RATE * mean(own[name], name)
    return curve


def main():
    hvd.init()
    curve = fit(*share())
    if hvd.rank() == 0:
        print(", ".join(f"{name} {value:.3f}" for name, value in curve.items()), flush=True)
    return np.array(list(curve.values()))


if __name__ == "__main__":
    main()
