"""Studies with known truth for the tests of the cost model: steps drawn from a formula that is written here alone."""

from types import SimpleNamespace

import numpy as np

from labs.costs.observe import Observation


def facts(name="Net", parameters=25_000_000, multiply_adds=4e9, activation_bytes=80e6, tensors=160, image_size=32):
    """Made-up facts of a network: equal tensors, and one of a quarter of all bytes at the end."""
    small = int(4 * parameters * 0.75 / (tensors - 1))
    sizes = (*[small] * (tensors - 1), 4 * parameters - small * (tensors - 1))
    return SimpleNamespace(
        model=name,
        image_size=image_size,
        classes=10,
        parameters=parameters,
        trainable=parameters,
        gradient_bytes=sum(sizes),
        tensors=tensors,
        tensor_bytes=sizes,
        layers=tensors,
        multiply_adds=multiply_adds,
        activation_bytes=activation_bytes,
        uncounted=(),
    )


class Truth:
    """A machine: fixed seconds of a step, multiply-adds per second, latency, bandwidth, overlap, spread of a worker's
    steps and noise between repeats (both relative standard deviations), seconds in which the host of its one node makes
    an image ready."""

    def __init__(
        self, fixed=0.02, rate=1e12, latency=2e-5, bandwidth=8e9, overlap=0.6, spread=0.03, noise=0.01, seed=0, host=0.0
    ):
        self.fixed, self.rate, self.latency, self.bandwidth = fixed, rate, latency, bandwidth
        self.overlap, self.spread, self.noise, self.random = overlap, spread, noise, np.random.default_rng(seed)
        self.host = host

    def computation(self, network, batch):
        return self.fixed + 3 * network.multiply_adds / self.rate * batch

    def exposed(self, network, workers, batch):
        if workers == 1:
            return 0.0
        ring = 2 * (workers - 1) * (4 * self.latency + network.gradient_bytes / workers / self.bandwidth)
        return ring - self.overlap * min(ring, self.computation(network, batch) * 2 / 3)

    def step(self, network, workers, batch, draws=4000):
        """Mean seconds of a step: of the slowest of K gamma draws, and what is exposed; or of the host, if longer."""
        shape = self.spread**-2
        slowest = np.random.default_rng(1).gamma(shape, 1 / shape, (draws, workers)).max(axis=1).mean()
        computed = self.computation(network, batch) * (slowest if workers > 1 else 1.0)
        return float(max(computed + self.exposed(network, workers, batch), self.host * workers * batch))

    def observe(self, network, workers, batch, repeats=3):
        """The Observation of some repeats of this configuration."""
        return self.seen(network, workers, batch, [self.run(network, workers, batch) for _ in range(repeats)])

    def run(self, network, workers, batch):
        """Mean seconds of the steps of one run, with its noise."""
        return float(self.step(network, workers, batch) * np.exp(self.random.normal(0, self.noise)))

    def seen(self, network, workers, batch, seconds, **more):
        return Observation(
            network.model,
            workers,
            batch,
            tuple(seconds),
            image_size=network.image_size,
            precision="float32",
            hardware="a simulated machine",
            **{"spread": self.spread, "steps": 50} | more,
        )

    def logged(self, network, workers, batch, images=12_800):
        """The Observation of one run as a log in whole seconds of an epoch shows it."""
        steps = images // (workers * batch)
        seconds = max(1, round(self.run(network, workers, batch) * steps))
        return self.seen(network, workers, batch, [seconds / steps], resolution=1 / steps, steps=steps, spread=None)
