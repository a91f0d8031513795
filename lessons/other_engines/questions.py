"""Judges of 27_other_engines. Those of the script run it here, on virtual devices of JAX's CPU."""

import ast
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from labs.checks.judging import NotDone, NotTried, judges
from labs.checks.reading import near
from labs.checks.student_code import tried
from labs.printed import several
from lessons import scripts


@judges("engines.2")
def tolerance(function):
    random = np.random.default_rng(14)
    for case in range(4):
        trained = 1 + random.normal(0, 1e-5, (5, 40))
        trained[case + 1, 7] += 1e-3 * (-1) ** case
        trained[(case + 1) % 4 + 1, 7] -= 8e-4 * (-1) ** case
        got, differences = function(trained.copy()), trained[1:] - trained[0]
        wanted = 10 * np.max(np.abs(differences))
        yield np.ndim(got) > 0, "Your function returns several numbers. Return one: 10 times the largest."
        if near(got, wanted):
            continue
        yield near(got, wanted / 10), "This is the largest difference itself. The tolerance is 10 times as large."
        yield near(got, 0, 0), "Your function returns 0: does it compare the first row with itself?"
        yield near(got, 10 * np.max(np.abs(differences[:-1]))), "This leaves out the last row: it counts, too."
        yield (
            near(got, 10 * np.max(differences)) or near(got, 10 * np.min(differences)),
            "A difference may be negative, and it counts as much as a positive one.",
        )
        yield near(got, 10 * np.mean(np.abs(differences))), "This uses the mean. One weight may be farther off."
        yield near(got, 10 * np.max(np.abs(trained))), "This uses the largest weight. Subtract the first row first."
        yield (
            near(got, 10 * np.max(np.ptp(trained, axis=0))),
            "You compare each row with every other one. Compare with the first row only.",
        )
        yield (
            True,
            "Compare each later row with the first one, weight by weight, and take the largest difference times 10.",
        )


@judges("engines.5")
def all_reduces(mirrored, horovod, ddp, jit):
    yield (mirrored, horovod, ddp, jit) == (5, 4, 4, 4), None
    yield (
        mirrored == 4,
        "A: in line 4, each replica has the gradient of its own share. Which call has access to all replicas?",
    )
    yield mirrored != 5, "A: the replicas stay apart until one call must change weights that all of them hold."
    yield (
        horovod == 1,
        "B: line 1 only wraps the optimizer: nothing has been computed yet. When is its new method called?",
    )
    yield horovod != 4, "B: line 1 has replaced one method of the optimizer. Which line calls it?"
    yield ddp == 5, "C: `step` uses the gradients that it finds in the model. They have been averaged before."
    yield ddp != 4, "C: DDP sends a gradient as soon as it is computed. Which line computes gradients?"
    yield jit == 1, "D: line 1 moves each device's rows to it. Where are numbers of different devices added?"
    yield jit == 5, "D: in line 5, the gradient is already whole on each device: it has no rows of images any more."
    yield True, "D: no line names an exchange. In which line must numbers from different rows be added up?"


@judges("engines.9")
def bytes_held(weights, state):
    right = 4 * 25_000_000, 2 * 4 * 25_000_000 // 16
    yield near(weights, right[0]) and near(state, right[1]), None
    yield near(weights, right[0] / 4), "These are numbers, and each of them takes up 4 bytes."
    yield (
        near(weights, right[0] / 16),
        "Only the state is divided. Each device needs all the weights for its own images.",
    )
    yield not near(weights, right[0]), "The weights are whole on each device: 25 million numbers of 4 bytes."
    yield near(state, 2 * right[0]), "This is the whole state. It is divided among 16 devices."
    yield near(state, 25_000_000), "25 million is the number of weights. How many bytes does Adam keep for each?"
    yield near(state, right[1] / 2), "Adam keeps two numbers for each weight."
    yield near(state, right[1] / 4), "Each number of the state takes up 4 bytes, too."
    yield True, "The state has two numbers of 4 bytes for each weight, and each device holds a sixteenth of it."


# The script: its functions on 1, 2 and 4 devices


def _defined(path, name):
    """Yields the cases in which the script lacks this function; returns the function. Raises NotTried without JAX."""
    yield from scripts.no_script(path)
    text = Path(path).read_text(encoding="utf-8")
    try:
        place = [node for node in ast.parse(text).body if getattr(node, "name", None) == name]
    except SyntaxError as problem:
        raise NotDone(f"Python cannot read line {problem.lineno} of {Path(path).name}: {problem.msg}.") from None
    yield not place, f"The script does not define {name} any more: keep its name and arguments."
    scripts.refuse_blanks(path, range(place[0].lineno, place[0].end_lineno + 1))
    if not find_spec("jax"):
        raise NotTried("JAX is not installed, so the script cannot be tried out: `make jax` installs it.")
    from lessons.other_engines import small

    try:
        found = small.set_up(4)
    except RuntimeError:  # JAX has computed in this process
        import jax

        found = jax.devices()
    if len(found) < 4:
        raise NotDone(f"JAX has {len(found)} device here, and this check needs 4. Restart the kernel, and check again.")
    names = {"__name__": Path(path).stem, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), names)
    return names[name]


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
        four = isinstance(made, tuple | list) and len(made) == 4
        yield not four, "Return four values: the mesh, the weights, the images and the labels."
        mesh, weights, *rows = made
        yield not isinstance(mesh, jax.sharding.Mesh), "The first value must be a mesh: Mesh(np.array(devices), ...)."
        yield mesh.size != count, f"{how} your mesh has {mesh.size}. Use the devices that the function is given."
        yield mesh.axis_names != ("data",), f'The mesh has the axes {mesh.axis_names}. It needs one, called "data".'
        for what, array in [*weights.items(), ("images", rows[0]), ("labels", rows[1])]:
            on = getattr(array, "devices", set)()
            yield on != set(devices), f"{how} `{what}` lies on {len(on)} of them. Which call places an array on a mesh?"
        for name, each in weights.items():
            yield not each.is_fully_replicated, f"{how} `{name}` is divided. Each device needs all the weights."
        for what, array in (("images", rows[0]), ("labels", rows[1])):
            shape, whole = array.addressable_shards[0].data.shape, array.shape
            yield shape == whole, f"{how} each of them holds all the {what}. Which PartitionSpec divides the rows?"
            yield shape[0] == whole[0], f"{how} the pixels of each image are divided. Divide the rows: the first axis."
        equal = all(np.array_equal(a, b) for a, b in ((rows[0], images), (rows[1], labels)))
        yield not equal, f"{how} the images or labels are not those that were given."


@judges("engines.7")
def by_hand(path):
    function = yield from _defined(path, "by_hand")
    import jax

    from lessons.other_engines import small

    def far(got, wanted):
        return small.apart(got, wanted) > 1e-5 * (1 + small.apart(wanted, before))

    def moved(factor, gradient):
        return {name: before[name] - factor * 0.1 * np.asarray(gradient[name]) for name in before}

    before, value_and_grad = small.weights(), jax.value_and_grad(small.loss)
    for count in (1, 2, 4):
        mesh, how = jax.sharding.Mesh(np.array(jax.devices()[:count]), ("data",)), f"With {several(count, 'device')},"
        images, labels = _batch(8 * count)
        with tried(several(count, "device")):
            after, loss = jax.jit(function(mesh))(before, images, labels)
        value, gradient = value_and_grad(before, images, labels)
        yield set(after) != set(before), "The first value must be the new weights, a dict like the old ones."
        by_device = [_on(after, device) for device in range(count)]
        if not any(far(each, moved(1, gradient)) for each in by_device):
            yield from _other_loss([float(shard.data) for shard in loss.addressable_shards], float(value), count)
            continue
        shares = zip(np.split(images, count), np.split(labels, count), strict=True)
        own = [value_and_grad(before, *share)[1] for share in shares]
        yield not far(after, before), f"{how} no weight has changed."
        yield (
            count > 1 and not any(far(each, moved(1, g)) for each, g in zip(by_device, own, strict=True)),
            f"{how} each of them steps by the gradient of its own share: nothing is exchanged.",
        )
        yield (
            not far(after, moved(count, gradient)),
            f"{how} the step is {count} times too long: psum gives the sum, and you need the mean.",
        )
        yield (
            not far(after, moved(1 / count, gradient)),
            f"{how} the step is {count} times too short: do you divide once too often?",
        )
        fixed = [size for size in (1, 2, 4, 8) if size != count and not far(after, moved(count / size, gradient))]
        yield fixed, f"{how} the step is that of a sum divided by {fixed[:1]}. Is mesh.size what you divide by?"
        yield not far(after, moved(-1, gradient)), f"{how} the step goes uphill: subtract the gradient."
        apart = any(far(each, by_device[0]) for each in by_device)
        yield apart, f"{how} the weights differ between the devices after the step. Is every gradient exchanged?"
        yield True, f"{how} the step is not that of the whole batch: the weights minus RATE times the mean gradient."


def _on(arrays, device):
    """What one of the devices holds of a dict of arrays."""
    return {name: np.asarray(each.addressable_shards[device].data) for name, each in arrays.items()}


def _other_loss(losses, value, count):
    """Cases of a loss that is not that of the whole batch on each device. losses: what the devices return."""
    right = max(abs(each - value) for each in losses) < 1e-4
    summed = not right and all(abs(each - count * value) < 1e-3 for each in losses)
    but = f"With {count} devices, the weights are right, but the loss is"
    yield summed, f"{but} {count} times too large: this is the sum over the devices."
    yield not right, f"{but} that of one device's share. Average it, too."
