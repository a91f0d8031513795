"""The model's parameters from runs: computation from one worker, communication from several or from a benchmark."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import exp, hypot, log, sqrt
from statistics import fmean, stdev

from labs.costs.chosen import CHOSEN
from labs.costs.communication import BACKWARD, CYCLE, OVERLAP, THRESHOLD, Fabric, exposed
from labs.costs.computation import FittedLine, values
from labs.costs.least_squares import line, relative_error, through_origin
from labs.costs.notes import note
from labs.costs.observe import Observation
from labs.costs.parameter import CostError, Parameter
from labs.costs.stragglers import slowest
from labs.models import counts
from labs.printed import grouped
from labs.results import intervals
from labs.simulate.reduce import ring_bytes

SPREAD = Parameter(0.0, "", (0.0, 0.03), "no single steps on record: stragglers are part of what is exposed")
OTHER = 0.3  # relative reach of a computation that is carried over from another network
FED = 0.95  # from this share of a step on, the host's seconds for its images explain the step
ANY = 10**9  # workers of a node, where nothing is known of nodes


@dataclass(frozen=True)
class FittedNetwork:
    """What was fitted for one network at one image size: computation and, if it ran on several workers, the exposed
    seconds per byte of its gradient and of the ring's 2 (K - 1) / K. image_size: None where not on record; workers:
    most that this network ran on; input: seconds in which a node's host makes an image ready, or None."""

    model: str
    facts: counts.Facts
    line: FittedLine
    fixed: Parameter | None
    exposed: Parameter | None
    batches: tuple
    image_size: int | None
    precision: str
    notes: tuple = ()
    workers: int = 1
    input: Parameter | None = None


@dataclass(frozen=True)
class Fit:
    """Fitted parameters. networks: {model or model@size: FittedNetwork}; spread: of a worker's steps; links: {name:
    Parameter} of a benchmark's latency and bandwidth with the overlap, or None; exposed: over all networks, or None;
    workers: most workers measured together; notes: what could not be told apart."""

    networks: dict
    spread: Parameter
    links: dict | None
    exposed: Parameter | None
    workers: int
    hardware: str
    notes: tuple

    def network(self, name, facts=None):
        """The FittedNetwork of a key or a model's name. For another network, given by its `facts`, computation and
        gradient are scaled from the closest one. Raises CostError."""
        found = [n for key, n in self.networks.items() if name in (key, n.model)]
        for n in found:
            if facts is None or n.image_size == facts.image_size:
                return n
        if facts is None:
            have = ", ".join(self.networks)
            raise CostError(f"{name} was not measured, only {have}: give its facts (labs.models.counts).")
        near = min(found or self.networks.values(), key=lambda n: abs(log(n.facts.multiply_adds / facts.multiply_adds)))
        ratio = facts.multiply_adds / near.facts.multiply_adds
        how = note("scaled", name=name, size=facts.image_size, ratio=ratio, near=near.model, reach=OTHER)
        ends = ratio / (1 + OTHER), ratio * (1 + OTHER)
        level, slope = (
            Parameter(p.value * ratio, p.unit, (p.value * ends[0], p.value * ends[1]), how)
            for p in (near.line.level, near.line.slope)
        )
        line, notes = FittedLine(level, slope, near.line.centre), (how, *near.notes)
        given = {"model": name, "facts": facts, "image_size": facts.image_size}
        fed = near.input if near.image_size == facts.image_size else None
        return replace(near, **given, line=line, fixed=None, exposed=None, notes=notes, workers=1, input=fed)

    def communication(self, network):
        """{name: Parameter} of the model's communication and stragglers."""
        if self.links:
            return self.links | {"spread": self.spread}
        found = network.exposed or self.exposed or Parameter(0.0, "s/byte", source="not measured")
        return {"exposed_per_byte": found, "spread": self.spread}

    def parameters(self):
        """{name: Parameter} of all that was fitted, for a table or JSON."""
        found = {"spread": self.spread, **(self.links or {})}
        for key, network in self.networks.items():
            found[f"{key}: computation at batch {network.line.centre:.4g}"] = network.line.level
            found[f"{key}: computation per image"] = network.line.slope
            found[f"{key}: fixed computation"] = network.fixed
            found[f"{key}: exposed communication"] = network.exposed
            found[f"{key}: input of a node"] = network.input
        return {name: parameter for name, parameter in found.items() if parameter}


def fit(observations: Iterable[Observation], facts_of: Callable | None = None, benchmark: dict | None = None) -> Fit:
    """The model's parameters, fitted to runs on one kind of hardware.

    observations: the runs, as labs.costs.observe reads them; each network needs one on one worker
    facts_of: gives what a network needs, of its name, the pixels per side of its images and its number of classes
        (default: labs.models.counts.of)
    benchmark: latency and bandwidth of the links, as labs.measure.allreduce.measure returns them

    What a single run tells has the spread of recorded runs (CHOSEN.repeat_spread) in its intervals. Raises CostError
    for runs that cannot be fitted: none, of different hardware, all on shared cores, without one on one worker.
    """
    observations = list(observations)
    hardware = {o.hardware for o in observations if o.hardware}
    if not observations:
        raise CostError("There are no runs to fit. Give records of one worker, and of several.")
    if len(hardware) > 1:
        raise CostError(f"The runs are of different hardware ({', '.join(sorted(hardware))}): fit each by itself.")
    notes = []
    crowded = [o for o in observations if o.oversubscribed]
    if crowded:
        notes.append(note("crowded", count=len(crowded)))
        observations = [o for o in observations if not o.oversubscribed]
    spread = _spread(observations)
    if spread is SPREAD:
        notes.append(note("no_steps"))
    groups = grouped(((o.model, o.image_size, o.precision), o) for o in observations)
    names = [model for model, *_ in groups]
    networks, pairs = {}, []
    for (model, size, precision), runs in groups.items():
        key = model if names.count(model) == 1 else f"{model}@{size}" + (f" {precision}" if precision else "")
        fed = _input([o for o in observations if o.image_size == size])
        network, found = _network(model, size, precision, runs, facts_of or counts.of, spread, fed)
        networks[key] = network
        pairs += found
    if not networks:
        raise CostError("Only runs with more workers than cores are left: nothing can be fitted.")
    shared = _exposed(pairs)
    if shared is None and not benchmark:
        notes.append(note("no_communication"))
    links = _links(benchmark, networks.values(), observations, spread, notes) if benchmark else None
    if pairs and not links:
        notes.append(note("not_apart"))
    if any(len(o.seconds) == 1 for o in observations):
        notes.append(note("no_repeats", spread=CHOSEN.repeat_spread))
    most = max([o.workers for o in observations] + [benchmark.get("ranks", 1) if benchmark else 1])
    return Fit(networks, spread, links, shared, most, ", ".join(hardware) or "unknown hardware", tuple(notes))


def _network(model, size, precision, runs, facts_of, spread, fed):
    """(FittedNetwork, [(x, exposed seconds, step seconds, error by the computation, rounding, run to run)] of its runs
    on several workers)."""
    alone = [o for o in runs if o.workers == 1]
    if not alone:
        raise CostError(
            f"{model} has no run on one worker: computation and communication cannot be told apart. "
            "Run it with one worker, too."
        )
    batches, times = zip(*((o.local_batch, seconds) for o in alone for seconds in o.seconds), strict=True)
    errors = [relative_error(o.seconds, o.spread, o.steps) for o in alone]
    single = None if None in errors else max(errors)
    found, fixed, notes = line(batches, times, max(o.resolution for o in alone), single)
    facts = facts_of(model, size or 224, alone[0].classes)
    if size is None:
        notes.append(note("no_image_size", model=model))
    pairs, level = [], found.level
    low, high = level.interval or (level.value, level.value)
    for o in runs:
        if o.workers == 1:
            continue
        if fed and o.fed and fed.value * o.node_images > FED * fmean(o.seconds):
            notes.append(note("fed", model=model, workers=o.workers))
            continue
        at = found.seconds(o.local_batch, values(found.parameters))
        slow = at * slowest(o.workers, spread.value)
        doubt = (high - low) / 2 / level.value * at  # of the computation: the same for all these runs
        x = ring_bytes(o.workers, sum(facts.tensor_bytes))
        own = relative_error(o.seconds, o.spread, o.steps) or 0.0
        pairs += [(x, seconds - slow, seconds, doubt, o.resolution / 2, own) for seconds in o.seconds]
    own = _exposed(pairs)
    if own and not own.value:
        notes.append(note("not_exposed", model=model))
    batches, precision = tuple(sorted({o.local_batch for o in runs})), precision or "float32"
    most = max(o.workers for o in runs)
    return FittedNetwork(model, facts, found, fixed, own, batches, size, precision, tuple(notes), most, fed), pairs


def _input(observations):
    """Seconds in which a node's host makes an image ready, as a Parameter: measured; else between 0 and what the
    fastest run took for an image (the upper end of its interval), since that is what its host can do at least; None
    without a run that was fed."""
    measured = [seconds for o in observations for seconds in o.input]
    if measured:
        span = intervals.mean(measured).interval if len(measured) > 1 else None
        if not span:
            reach = exp(CHOSEN.repeat_reach)
            span = measured[0] / reach, measured[0] * reach
        return Parameter(fmean(measured), "s/image", span, "batches that were read alone")
    fed = [_at_most(o) / o.node_images for o in observations if o.fed]
    if not fed:
        return None
    return Parameter(0.0, "s/image", (0.0, min(fed)), "not measured: at most what the fastest run took for an image")


def _at_most(observation):
    """Upper 95 % end of the mean step of a run, with its rounding."""
    seconds = observation.seconds
    if len(seconds) > 1 and (span := intervals.mean(seconds, observation.resolution).interval):
        return span[1]
    return fmean(seconds) * exp(CHOSEN.repeat_reach) + observation.resolution / 2


def _exposed(pairs):
    """Exposed seconds per byte of the ring, as a Parameter; None without runs on several workers."""
    if not pairs:
        return None
    x, y, steps, doubts, roundings, single = zip(*pairs, strict=True)
    weights = [step**-2 for step in steps]
    ratio, error = through_origin(x, y, weights)
    reach = intervals.t_quantile(len(x) - 1) * error if error else 0.0
    if all(single):  # few pairs can agree by chance: not below the spread from run to run
        least = max(single) / sqrt(sum(w * a**2 for w, a in zip(weights, x, strict=True)))
        reach = max(reach, intervals.t_quantile(CHOSEN.repeat_degrees) * least)
    by_computation, by_rounding = (max(d / a for d, a in zip(ds, x, strict=True)) for ds in (doubts, roundings))
    reach = hypot(reach, by_computation) + by_rounding
    span = max(0.0, ratio - reach), max(0.0, ratio + reach)
    source = "steps of several workers less the computation, least squares over the ring's bytes"
    return Parameter(max(0.0, ratio), "s/byte", span, source)


def _spread(observations):
    """Relative standard deviation of a worker's single steps: of the runs on one worker, else of all."""
    known = [o for o in observations if o.spread is not None]
    found = [o.spread for o in known if o.workers == 1] or [o.spread for o in known]
    if not found:
        return SPREAD
    return Parameter(fmean(found), "", (min(found) / 2, max(found)), "spread of single steps, and half of it")


def _links(benchmark, networks, observations, spread, notes):
    """{name: Parameter} of a benchmark's links with the overlap that the runs show; None where they contradict it."""
    try:
        latency, bandwidth = (
            Parameter(told["value"], told["unit"], told["interval"] and tuple(told["interval"]), told.get("source", ""))
            for told in (benchmark["latency"], benchmark["bandwidth"])
        )
    except (KeyError, TypeError):
        raise CostError("The benchmark is no result of `labs allreduce`: latency or bandwidth is missing.") from None
    alike = {"latency": latency, "bandwidth": bandwidth}  # inside of a node and between nodes
    links = {f"{name}_{level}": found for level in ("inside", "between") for name, found in alike.items()}
    links["cycle"] = Parameter(CYCLE, "s", source="Horovod's default")
    links["fusion_threshold"] = Parameter(float(THRESHOLD), "bytes", source="Horovod's default")
    fabric, seen = Fabric(ANY, latency.value, bandwidth.value), []
    for network in networks:
        for o in observations:
            if o.workers == 1 or (o.model, o.image_size) != (network.model, network.image_size):
                continue
            at = network.line.seconds(o.local_batch, values(network.line.parameters))
            _, none, full = exposed(o.workers, network.facts.tensor_bytes, fabric, BACKWARD * at)
            slow = at * slowest(o.workers, spread.value)
            seen += [(seconds - slow, none, full) for seconds in o.seconds]
    share, source = OVERLAP, "not measured: between none and full"
    if seen:
        lost, none, full = (fmean(column) for column in zip(*seen, strict=True))
        excess = [row[0] - row[1] for row in seen]
        doubt = 2 * stdev(excess) / len(excess) ** 0.5 if len(excess) > 1 else lost
        if lost - none > max(0.1 * none, doubt):
            notes.append(note("contradicted", lost=1e3 * lost, most=1e3 * none))
            return None
        share = min(1.0, max(0.0, (none - lost) / (none - full))) if none > full else OVERLAP
        source = "from runs on several workers; the interval is none to full"
    return links | {"overlap": Parameter(share, "", (0.0, 1.0), source)}
