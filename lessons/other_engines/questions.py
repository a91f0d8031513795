"""Questions of 27_other_engines. Those of the script run it here, on virtual devices of JAX's CPU."""

import contextlib
from importlib.util import find_spec

import numpy as np

from labs.checks.judging import NotDone, NotTried, judges
from labs.checks.student_code import tried
from labs.errors import UseError
from labs.printed import several
from lessons import connected
from lessons.forms import formula, value


def _orders():
    """Weights of 5 orders of the images: another row is farthest from the first in each case, upwards or downwards."""
    random = np.random.default_rng(14)
    for case in range(4):
        trained = 1 + random.normal(0, 1e-5, (5, 40))
        trained[case + 1, 7] += 1e-3 * (-1) ** case
        trained[(case + 1) % 4 + 1, 7] -= 8e-4 * (-1) ** case
        yield (trained,)


formula(
    "engines.2",
    right=lambda trained: 10 * np.abs(trained[1:] - trained[0]).max(),
    cases=list(_orders()),
    wrong=[
        ([lambda t: 10 * (t[1:] - t[0]).max(), lambda t: 10 * (t[0] - t[1:]).max()], "Some differences are negative."),
        (lambda t: 10 * np.abs(t[1:-1] - t[0]).max(), "This leaves out the last row: it counts, too."),
        (lambda t: 10 * np.abs(t[1:] - t[0]).mean(), "This uses the mean. One weight may be farther off."),
        (lambda t: 10 * np.ptp(t, axis=0).max(), "You compare each row with every other one. Which one is asked for?"),
    ],
    otherwise="Compare each later row with the first one, weight by weight.",
    tolerance=0.01,
)

value(
    "engines.5",
    right=(5, 4, 4, 4),
    wrong=[
        ((4, ..., ..., ...), "A: each replica has its own gradient in line 4. Which call has access to all replicas?"),
        ((5, 1, ..., ...), "B: line 1 only wraps the optimizer. When is its new method called?"),
        ((5, 4, 5, ...), "C: `step` uses the gradients that it finds. They have been averaged before."),
        ((5, 4, 4, 1), "D: line 1 moves each device's rows to it. Where are numbers of different devices added?"),
        ((5, 4, 4, 5), "D: in line 5, the gradient is already whole on each device: it has no rows any more."),
    ],
    otherwise=(
        "A: the replicas stay apart until one call must change weights that all of them hold.",
        "B: line 1 has replaced one method of the optimizer. Which line calls it?",
        "C: DDP sends a gradient as soon as it is computed. Which line computes gradients?",
        "D: no line names an exchange. In which line must numbers from different rows be added up?",
    ),
)


# The script: its functions on 1, 2 and 4 devices


def _defined(path, name):
    """Yields the cases in which the script lacks this function; returns the function. Raises NotTried without JAX."""
    if find_spec("jax"):
        from lessons.other_engines import small

        with contextlib.suppress(RuntimeError):  # JAX has computed in this process
            small.set_up(4)
        if len(small.jax.devices()) < 4:
            raise NotDone("JAX has too few devices in this kernel. Restart the kernel, and check again.")
    try:
        return (yield from connected.defined(path, name, connected.World(1)))
    except UseError:  # the script imports `small`
        raise NotTried("JAX is not installed, so the script cannot be tried out: `make jax` installs it.") from None


def _batch(rows):
    random = np.random.default_rng(rows)
    return random.random((rows, 3072), "float32"), random.integers(0, 10, rows)


@judges("engines.6")
def spread(path):
    function = yield from _defined(path, "spread")
    import jax

    from lessons.other_engines import small

    for count in (2, 4):
        devices, how = jax.devices()[:count], f"With {count} devices,"
        images, labels = _batch(3 * count)
        with tried(f"{count} devices"):
            made = function(list(devices), small.weights(), images, labels)
        four = isinstance(made, tuple | list) and len(made) == 4 and isinstance(made[0], jax.sharding.Mesh)
        yield not four, "Return four values: the mesh, the weights, the images and the labels."
        mesh, weights, *rows = made
        axes = dict(mesh.shape)
        yield axes != {"data": count}, f'{how} your mesh has {axes}: it needs one axis, "data", with all of them.'
        for what, array in (weights | dict(zip(("images", "labels"), rows, strict=True))).items():
            on = getattr(array, "devices", set)()
            yield on != set(devices), f"{how} `{what}` lies on {len(on)} of them. Which call places an array on a mesh?"
            part, whole = array.addressable_shards[0].data.shape, array.shape
            held = f"{how} each holds {part} of `{what}`, an array {whole}."
            yield what in weights and part != whole, f"{held} Each device needs all the weights."
            yield what not in weights and part[0] == whole[0], f"{held} Which PartitionSpec divides the rows?"
        equal = all(np.array_equal(*pair) for pair in zip(rows, (images, labels), strict=True))
        yield not equal, f"{how} the images or labels are not those that were given."


@judges("engines.7")
def by_hand(path):
    function = yield from _defined(path, "by_hand")
    import jax

    from lessons.other_engines import small

    before = small.weights()
    for count in (1, 2, 4):
        mesh, how = jax.sharding.Mesh(np.array(jax.devices()[:count]), ("data",)), f"With {several(count, 'device')},"
        batch = _batch(8 * count)
        with tried(several(count, "device")):
            after, loss = jax.jit(function(mesh))(before, *batch)
        ends = [{name: each.addressable_shards[d].data for name, each in after.items()} for d in range(count)]
        steps = [_flat(before) - _flat(end) for end in ends]
        yield not _alike(steps, steps[0]), f"{how} their weights differ after the step. Is every gradient exchanged?"
        value, gradient = jax.value_and_grad(small.loss)(before, *batch)
        right = 0.1 * _flat(gradient)
        factor = steps[0] @ right / (right @ right)
        along = _alike(steps, factor * right)
        yield not along, f"{how} the step is not along the gradient of the whole batch. What do you subtract?"
        times = f"{how} the step is {factor:.3g} times the right one. psum gives a sum: by what do you divide it?"
        yield not _alike(steps, right), times
        losses = [float(shard.data) for shard in loss.addressable_shards]
        found = f"{losses[0]:.4g}, and that of the whole batch {value:.4g}"
        same = np.allclose(losses, value, atol=1e-4)
        yield not same, f"{how} the weights are right, but the loss on the first is {found}. Is it a mean, too?"


def _flat(arrays):
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)])


def _alike(some, others):
    return np.abs(np.subtract(some, others)).max() < 1e-5
