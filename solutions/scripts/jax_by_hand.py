"""Data parallelism on JAX, twice: by hand, where each device computes its share, and left to the compiler."""

from lessons.other_engines import small  # the network's loss, the batches, printing

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

RATE, MOMENTUM = 0.1, 0.9


def spread(devices, weights, images, labels):
    """(mesh, weights, images, labels): a mesh of these devices with one axis, "data"; and the arrays placed on it.

    devices: a list; the weights are a dict of arrays. Each device holds all weights, and its share of the rows of
    images and labels.
    """
    ### BEGIN SOLUTION
    mesh = Mesh(np.array(devices), ("data",))
    whole, by_rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    return mesh, jax.device_put(weights, whole), jax.device_put(images, by_rows), jax.device_put(labels, by_rows)
    ### END SOLUTION


def by_hand(mesh):
    """A function (weights, images, labels) -> (new weights, mean loss of the whole batch): one step of SGD."""

    def on_one_device(weights, images, labels):
        """The same with this device's share of the images. Both results must be equal on all devices."""
        ### BEGIN SOLUTION
        ### GIVEN: value, gradient = jax.value_and_grad(small.loss)(weights, images, labels)
        ### GIVEN: ...  # your code here
        ### GIVEN: return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value
        value, gradient = jax.value_and_grad(small.loss)(weights, images, labels)
        value = jax.lax.psum(value, "data") / mesh.size
        gradient = jax.tree.map(lambda g: jax.lax.psum(g, "data") / mesh.size, gradient)
        return jax.tree.map(lambda w, g: w - RATE * g, weights, gradient), value
        ### END SOLUTION

    # Weights come whole, images and labels by rows; both results leave whole. With check_vma=False, JAX exchanges
    # nothing that is not written above.
    specs = {"in_specs": (P(), P("data"), P("data")), "out_specs": (P(), P()), "check_vma": False}
    return jax.shard_map(on_one_device, mesh=mesh, **specs)


def by_compiler(mesh, of_velocity):
    """A compiled step of SGD with momentum, written as for one device. of_velocity: how the velocity is divided."""

    def step(weights, velocity, images, labels):
        value, gradient = jax.value_and_grad(small.loss)(weights, images, labels)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
        return jax.tree.map(lambda w, v: w + v, weights, velocity), velocity, value

    whole, divided = NamedSharding(mesh, P()), NamedSharding(mesh, of_velocity)
    return jax.jit(step, out_shardings=(whole, divided, whole))


if __name__ == "__main__":
    small.main(spread, by_hand, by_compiler)
