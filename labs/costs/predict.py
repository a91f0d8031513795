"""What a training would take elsewhere: step time, throughput, speedup, efficiency, largest batch, with intervals."""

import math
from dataclasses import asdict, dataclass, replace

from labs.costs.anchor import anchored
from labs.costs.chosen import CHOSEN
from labs.costs.fit import ANY, Fit
from labs.costs.machine import Machine, MachineError
from labs.costs.memory import largest_batch
from labs.costs.model import Breakdown, Model
from labs.costs.notes import note
from labs.costs.parameter import CostError, Parameter
from labs.models import counts
from labs.simulate.given import number, whole

UNITS = {"step_seconds": "s", "epoch_seconds": "s", "speedup": "", "efficiency": ""}
UNITS |= dict.fromkeys(("images_per_second", "images_per_second_per_worker"), "images/s")
FAR = 8  # times as many workers as measured: what shows only then is not in a fit
PROCESSES = ("worker", "node")  # what drives the GPUs of a node: a process for each of them, or one for all


@dataclass(frozen=True)
class Prediction:
    """A prediction. quantities: {name: Parameter} for the keys of UNITS and `largest_batch` (None: memory unknown);
    breakdown: central seconds of a step; parameters: what it was made of; notes: what a reader must know."""

    model: str
    workers: int
    local_batch: float
    quantities: dict
    breakdown: Breakdown
    parameters: dict
    notes: tuple
    about: dict

    def __getattr__(self, name):
        try:  # a quantity as an attribute; copy asks for names before `quantities` is set, hence __dict__
            return self.__dict__["quantities"][name]
        except KeyError:
            raise AttributeError(name) from None

    def as_dict(self):
        """For JSON: each quantity as number under its name and its interval as [low, high] under <name>_interval."""
        row = {
            "kind": "predicted",
            "model": self.model,
            "workers": self.workers,
            "local_batch": self.local_batch,
            "global_batch": self.about["accumulation"] * self.workers * self.local_batch,
            **self.about,
        }
        for name, found in self.quantities.items():
            row[name] = found and found.value
            row[f"{name}_interval"] = list(found.interval) if found and found.interval else None
        return row | {
            "breakdown_seconds": asdict(self.breakdown),
            "notes": list(self.notes),
            "parameters": {name: asdict(p) for name, p in self.parameters.items()},
        }


@dataclass(frozen=True)
class Asked:
    """What else a prediction is asked for.

    accumulation: passes per update; images: of an epoch; slots: numbers per weight that the optimizer keeps;
    compression: of gradients in the all-reduce, None or "float16"; input: seconds in which a node's host makes an image
    ready (None: the machine's); process: "worker", or "node" where one process drives all GPUs of a node.
    """

    accumulation: int = 1
    images: int | None = None
    slots: int = 1
    compression: str | None = None
    input: float | Parameter | None = None
    process: str = "worker"


def outcomes(model, workers, local_batch, accumulation=1, images=None, values=None):
    """{name: number} of the keys of UNITS, for a model with these values.

    S(K) = images/s of K workers / images/s of one with the same batch per worker; efficiency = S / K. An epoch is
    floor(images / global batch) steps: as the kit's pipeline does (labs.data.batching), the images after the last full
    batch are left out. So epochs of different numbers of workers may hold different numbers of images, and the speedup
    is the ratio of their images/s. Raises CostError: no batch is full.
    """
    step = model.step(workers, local_batch, accumulation, values)
    alone = model.step(1, local_batch, accumulation, values)
    total = workers * local_batch * accumulation
    found = {
        "step_seconds": step,
        "images_per_second": total / step,
        "images_per_second_per_worker": total / step / workers,
        "speedup": workers * alone / step,
        "efficiency": alone / step,
    }
    if images is not None:
        found["epoch_seconds"] = _steps(images, total) * step
    return found


def _steps(images, total):
    steps = int(whole("images", images) // total)
    if not steps:
        raise CostError(
            f"{images} images do not fill one step of {total:g}, and the pipeline drops what fills none: there is no "
            "epoch. Ask for more images, fewer workers or a smaller batch."
        )
    return steps


def shifts(parameters, values, ask):
    """{name: (value, low, high)} of what `ask(values)` gives, numbers above 0: its value, and how far the parameters'
    95 % intervals move its logarithm downwards and its value upwards. (Downwards on logarithms: no shift, however
    large, makes a time or a share negative.)

    Each parameter goes to both ends of its interval with all others at their central values; the shifts that it makes
    are added in quadrature, upwards and downwards apart (propagation of independent errors: BIPM, Guide to the
    Expression of Uncertainty in Measurement, JCGM 100:2008, section 5.1.2; with whole intervals instead of slopes). A
    ratio as the speedup is formed before, so what makes both its parts slower cancels.
    """
    central = ask(values)
    low, high = dict.fromkeys(central, 0.0), dict.fromkeys(central, 0.0)
    for name, parameter in parameters.items():
        if parameter.interval is None:
            continue
        ends = [ask(values | {name: end}) for end in parameter.interval]
        for key, value in central.items():
            low[key] += max(0.0, *(math.log(value / end[key]) for end in ends)) ** 2
            high[key] += max(0.0, *(end[key] - value for end in ends)) ** 2
    return {key: (value, math.sqrt(low[key]), math.sqrt(high[key])) for key, value in central.items()}


def with_intervals(model, workers, local_batch, accumulation=1, images=None):
    """{name: Parameter} of `outcomes`, with the intervals of `shifts`. Speedup and efficiency are cut at K and 1: the
    model knows nothing that makes a worker faster when there are others."""

    def ask(values):
        return outcomes(model, workers, local_batch, accumulation, images, values)

    most, found = {"speedup": workers, "efficiency": 1.0}, {}
    for key, (value, low, high) in shifts(model.all_parameters, model.values(), ask).items():
        above = max(value, min(value + high, most.get(key, math.inf)))
        found[key] = Parameter(value, UNITS[key], (value * math.exp(-low), above))
    return found


def predict_from_machine(
    model: str,
    facts: counts.Facts,
    machine: Machine,
    workers: int,
    local_batch: float,
    *,
    precision: str = "float32",
    image_size: int = 224,
    rate: float | None = None,
    **asked,
) -> Prediction:
    """Prediction of a training of network `model`, from its facts and a machine's data alone: nothing is trained.

    model: its name, as in keras.applications
    facts: what it needs for this image size, as labs.models.counts.of gives it
    machine: as `load_machine` gives it
    workers: how many train together; local_batch: images per worker and pass
    precision: in which the workers compute, one that the machine's file describes
    image_size: pixels per side
    rate: images/s of one worker at this batch, where you know it
    asked: what else is asked for, by the names of the fields of Asked

    Raises MachineError, CostError, SimulationError for what cannot be predicted.
    """
    workers = whole("workers", workers)
    line, notes = anchored(model, facts, machine, precision, local_batch, image_size, counts.of, rate)
    about = {"machine": machine.name, "precision": precision, "image_size": image_size}
    notes = [*notes, *machine.notes]
    parameters = machine.parameters | {"unmodelled": CHOSEN.unmodelled(workers)}
    if workers > CHOSEN.model_workers:
        notes.append(note("compared", most=CHOSEN.model_workers))
    return _predicted(model, line, facts, machine, parameters, workers, local_batch, notes, about, Asked(**asked))


def predict_from_fit(
    fitted: Fit,
    model: str,
    workers: int,
    local_batch: float,
    *,
    facts: counts.Facts | None = None,
    machine: Machine | None = None,
    **asked,
) -> Prediction:
    """Prediction of a training from what was fitted to runs.

    fitted: as `fit` gives it; model: one of its keys, or the name of a network
    workers: how many train together; local_batch: images per worker and pass
    facts: needed for a network that was not fitted (labs.models.counts.of); its computation is then that of the closest
        fitted one, times the ratio of multiply-adds
    machine: its nodes and network instead of the fitted communication; the computation stays that of the fitted
        hardware, the host's input that of the machine
    asked: what else is asked for, by the names of the fields of Asked

    Says in notes where it leaves what was fitted; there intervals are wider, by one model error for each doubling of
    the workers. Raises as `predict_from_machine`.
    """
    workers, local_batch = whole("workers", workers), number("local_batch", local_batch, above=True)
    network = fitted.network(model, facts)
    notes = [*network.notes, *_extrapolations(fitted, network, workers, local_batch, machine)]
    parameters = machine.parameters | {"spread": fitted.spread} if machine else fitted.communication(network)
    if beyond := CHOSEN.unmodelled(workers, None if machine else network.workers):
        parameters |= {"unmodelled": beyond}
    if network.input and not machine:
        parameters |= {"input": network.input}
    about = {
        "machine": machine.name if machine else fitted.hardware,
        "precision": network.precision,
        "image_size": network.image_size,
    }
    name, line, facts = network.model, network.line, facts or network.facts
    return _predicted(name, line, facts, machine, parameters, workers, local_batch, notes, about, Asked(**asked))


def _predicted(name, line, facts, machine, parameters, workers, local_batch, notes, about, asked):
    """The Prediction. line: of the computation; machine: of which nodes and memory are taken, None: all workers in one
    node, memory unknown."""
    passes, memory = whole("accumulation", asked.accumulation), None
    if machine and workers > machine.devices and not machine.network:
        raise MachineError(
            f"{machine.name} describes no network, and the most workers on one of its nodes are {machine.devices}, so "
            f"{workers} workers cannot be predicted. Add [network] to its file."
        )
    if asked.compression not in (None, "float16"):
        raise CostError(f"compression is {asked.compression!r}: it must be None or 'float16'.")
    if asked.process not in PROCESSES:
        raise CostError(f"process is {asked.process!r}: it must be one of {', '.join(PROCESSES)}.")
    if (given := asked.input) is not None:
        given = given if isinstance(given, Parameter) else Parameter(number("input", given), "s/image", source="given")
        parameters = parameters | {"input": given}
    if machine and min(workers, machine.devices) > 1:  # without a machine, the fit contains what the host costs
        if asked.process == "node":
            parameters = parameters | {"host": CHOSEN.one_process}
        notes.append(note(f"process_{asked.process}", most=1e3 * CHOSEN.host_most))
    # On the wire gradients are float32 also in mixed precision, whose weights are float32.
    exchanged = tuple(size / (2 if asked.compression else 1) for size in facts.tensor_bytes)
    nodes = (machine.devices, machine.algorithm) if machine else (ANY, "two-level")
    cost = Model(line, exchanged, parameters, *nodes)
    if machine:
        memory = largest_batch(facts, machine.device.memory.value, about["precision"], asked.slots, workers)
    if workers > 1 and "overlap" in parameters:
        notes.append(note("bracket", share=parameters["overlap"].value))
    told, assumed = _told_of_input(cost, workers, local_batch, passes)
    notes.insert(0, assumed)
    if memory and memory.interval and memory.interval[0] < local_batch:
        how = "does not fit" if local_batch > memory.interval[1] else "may not fit"
        notes.append(note("memory", local_batch=local_batch, how=how, images=memory.value))
    quantities = with_intervals(cost, workers, local_batch, passes, asked.images) | {"largest_batch": memory}
    breakdown = cost.breakdown(workers, local_batch, passes)
    notes, about = tuple(dict.fromkeys(filter(None, notes))), about | {"accumulation": passes, "input": told}
    if asked.images is not None:
        steps = _steps(asked.images, workers * local_batch * passes)
        about |= {"steps_per_epoch": steps, "images_per_epoch": steps * workers * local_batch * passes}
    return Prediction(name, workers, local_batch, quantities, breakdown, cost.all_parameters, notes, about)


def _told_of_input(cost, workers, local_batch, passes):
    """({what JSON says of input}, note or None). known: "yes", "at least" (runs show what the host can do) or "no";
    images/s that a node's host is asked for and can feed; intervals for a host that keeps up, where others hold."""
    input = cost.parameters.get("input")
    images = cost.node_images(workers, local_batch, passes)
    step = cost.breakdown(workers, local_batch, passes)
    needed = images / (step.step - step.input)
    told = {"known": "no", "needed_images_per_second": needed, "fed_images_per_second": None}
    if input is None:
        return told, note("no_input", needed=needed)
    if input.value:
        told |= {"known": "yes", "fed_images_per_second": 1 / input.value}
        return told, note("input_limits", fed=1 / input.value, needed=needed) if step.input else None
    if not input.interval or not input.interval[1]:
        return told | {"known": "yes"}, None
    fed = 1 / input.interval[1]
    told |= {"known": "at least", "fed_images_per_second": fed}
    if needed <= 1.02 * fed:
        return told, None
    rest = {name: parameter for name, parameter in cost.parameters.items() if name != "input"}
    if_fed = with_intervals(replace(cost, parameters=rest), workers, local_batch, passes)
    told["intervals_if_fed"] = {name: list(if_fed[name].interval) for name in ("step_seconds", "efficiency")}
    (low, high), (least, most) = told["intervals_if_fed"].values()
    ends = {"low": low, "high": high, "least": least, "most": most}
    return told, note("input_assumed", needed=needed, fed=fed, **ends)


def _extrapolations(fitted, network, workers, local_batch, machine):
    """Notes on where a prediction from a Fit leaves what was fitted: said in sentences, never refused."""
    measured = fitted.workers
    if not min(network.batches) <= local_batch <= max(network.batches):
        side = "larger than all" if local_batch > max(network.batches) else "smaller than all"
        fitted_ones = ", ".join(f"{each:g}" for each in network.batches)
        yield note("batch", local_batch=local_batch, side=side, fitted=fitted_ones)
    if workers > FAR * measured:
        yield note("far", workers=workers, far=FAR, measured=measured)
    elif workers > measured and not machine:
        yield note("beyond", workers=workers, measured=measured)
    if machine:
        yield note("another_machine", machine=machine.name, hardware=fitted.hardware)
    elif workers > measured:
        yield note("same_links")
