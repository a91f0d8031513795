"""What scripts/jax_by_hand.py leaves out: the network, its batches, and what is printed of compiled steps."""

import re

from labs import data
from labs.errors import UseError

try:
    import jax
except ImportError as problem:
    raise UseError(f"JAX cannot be imported ({problem}), so nothing can run on it. `make jax` installs it.") from None
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

HIDDEN, BATCH, STEPS, DEVICES = 64, 64, 20, 2


def set_up(devices):
    """Divide JAX's CPU into so many virtual devices; returns them. To be called before JAX computes anything."""
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
    return jax.devices()


def weights():
    """New weights for `loss`, as NumPy arrays: {"w1", "b1", "w2", "b2"}."""
    random = np.random.default_rng(0)
    shapes = {"w1": (3072, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 10), "b2": (10,)}
    scale = {name: len(shape) > 1 and shape[0] ** -0.5 for name, shape in shapes.items()}
    return {name: scale[name] * random.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def batches():
    """(images float32 (64, 3072), labels (64,)) of each of STEPS steps."""
    dataset, random = data.load("digits"), np.random.default_rng(0)
    for _ in range(STEPS):
        rows = random.choice(len(dataset.labels), BATCH, replace=False)
        yield dataset.images[rows].reshape(BATCH, -1).astype("float32") / 255, dataset.labels[rows]


def loss(weights, images, labels):
    """Mean loss of a network with one hidden layer, over the images that it is given."""
    hidden = jax.nn.relu(images @ weights["w1"] + weights["b1"])
    scores = jax.nn.log_softmax(hidden @ weights["w2"] + weights["b2"])
    return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))


def apart(some, others):
    """The largest difference between the values of two dicts of arrays."""
    return max(float(np.max(np.abs(np.asarray(some[name]) - np.asarray(others[name])))) for name in some)


def said(compiled):
    """The exchanges in a compiled step (its HLO) as lines: the kind, and the type of each array in it (f32[64,10])."""
    kinds = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
    lines = re.findall(rf"= (.*?) ({kinds})(?:-start)?\(", compiled.as_text())
    arrays = [", ".join(re.findall(r"\w+\[[\d,]*\]", result)) for result, _ in lines]
    return "\n".join(f"{kind} of {of}" for (_, kind), of in zip(lines, arrays, strict=True)) or "no exchange"


def on_device(tree, device):
    """Bytes that a device holds of a dict of arrays."""
    shards = [shard for array in jax.tree.leaves(tree) for shard in array.addressable_shards]
    return sum(shard.data.nbytes for shard in shards if shard.device == device)


def main(spread, by_hand, by_compiler):
    """Train with the functions of the script on DEVICES devices and on one, and print what is exchanged and held."""
    devices = set_up(DEVICES)
    print(f"JAX {jax.__version__} on {devices}")
    several, alone = (_train(on, spread, by_hand, by_compiler) for on in (devices, devices[:1]))
    print()
    for name in several:
        print(f"{name}: largest difference from one device {apart(several[name], alone[name]):.1e}")


def _train(devices, spread, by_hand, by_compiler):
    """{a way to train: the weights after the steps}; prints what each step exchanges, and what each device holds."""
    start, found = weights(), {}
    zeros = {name: np.zeros_like(values) for name, values in start.items()}
    mesh, placed, *first = spread(devices, start, *next(batches()))
    ways = {"by hand": (jax.jit(by_hand(mesh)), [])}
    for name, spec in (("velocity whole", PartitionSpec()), ("velocity divided", PartitionSpec("data"))):
        ways[name] = by_compiler(mesh, spec), [jax.device_put(zeros, NamedSharding(mesh, spec))]
    for name, (step, state) in ways.items():
        now, compiled = placed, step.lower(placed, *state, *first).compile()
        for images, labels in batches():
            _, _, *batch = spread(devices, start, images, labels)
            now, *state, value = compiled(now, *state, *batch)
        found[name] = now
        if len(devices) > 1:
            print(f"\n{name}: loss of the last batch {float(value):.6f}; in each step", said(compiled), sep="\n")
        for device in devices if state and len(devices) > 1 else []:
            held = [on_device(each, device) for each in (now, *state)]
            print(f"device {device.id} holds {held[0]} bytes of weights and {held[1]} bytes of velocity")
    return found
