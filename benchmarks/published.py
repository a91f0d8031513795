"""Published efficiencies against predictions, and the constants that they and the kit's recorded runs choose.

    python benchmarks/published.py [--write]

prints all of it, each row also with constants that other rows chose. --write: writes the constants that were chosen
(labs/costs/chosen.toml) until they no longer change, as the reach of rates enters the choice of the others; then the
table of labs/machines/README.md.
"""

import argparse
import csv
import math
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from statistics import fmean, median, variance

import numpy as np

from labs import files, recorded
from labs.costs.anchor import SIZES, anchored, family
from labs.costs.chosen import CHOSEN, FILE, SPREADS, Chosen
from labs.costs.computation import values
from labs.costs.machine import HERE, load_machine
from labs.costs.model import Model
from labs.costs.observe import observations_of, observe
from labs.costs.parameter import CostError, Parameter
from labs.costs.predict import shifts
from labs.models import counts
from labs.results import intervals, log

ROWS, README = HERE / "published.csv", HERE / "README.md"
BEGIN, END = "<!-- written by benchmarks/published.py --write -->", "<!-- end -->"
OVERLAPS, SPREAD_STEPS = np.linspace(0, 1, 21), np.linspace(0, SPREADS[1], 17)
NORMAL = 1.96  # 95 % range of a parameter / its standard deviation
WAYS = {"row": lambda row: row, "machine": lambda row: row.machine, "source": lambda row: row.source}


@dataclass(frozen=True)
class Row:
    """A published efficiency: images/s of each of `workers` / images/s of each of `base` workers, with `batch` images
    per worker. process: "worker", one for each of them, or "node", one that drives all of a node. how: "published", or
    what it was computed from, behind the program's name."""

    machine: str
    network: str
    batch: int
    workers: int
    base: int
    efficiency: float
    process: str
    how: str
    source: str

    @property
    def program(self):
        """Who published which program."""
        return self.source, self.how.partition(":")[0]

    @cached_property
    def model(self):
        """The Model of its machine, as its file says."""
        machine, size = _load(self.machine), SIZES.get(self.network, 224)
        facts = facts_of(self.network, size)
        line, _ = anchored(self.network, facts, machine, "float32", self.batch, size, facts_of)
        return Model(line, facts.tensor_bytes, machine.parameters, machine.devices, machine.algorithm)

    def parameters(self, chosen):
        """{name: Parameter} of its model with the constants `chosen`, where the machine's file has none."""
        ours = {
            "overlap": Parameter(float(chosen.overlap), "", (0.0, 1.0)),
            "spread": Parameter(float(chosen.spread), "", (min(SPREADS[0], chosen.spread), SPREADS[1])),
        }
        told = _load(self.machine).software.model_fields_set
        return self.model.all_parameters | {name: p for name, p in ours.items() if name not in told}

    def steps(self, values, machine=True):
        """Seconds of a step of `base` and of `workers`; without the machine: as if its links took no time."""
        model = self.model if machine else replace(self.model, tensor_bytes=())
        return [model.breakdown(workers, self.batch, 1, values).step for workers in (self.base, self.workers)]

    def ask(self, values, machine=True):
        """{"efficiency"} of a model with these values; `unmodelled` is on the ratio, whatever the base is."""
        alone, several = self.steps(values, machine)
        return {"efficiency": alone / max(alone, several * values.get("unmodelled", 1.0))}

    def predicted(self, chosen, machine=True):
        """The efficiency as a Parameter, as labs.costs.predict makes it."""
        parameters = self.parameters(chosen) | {"unmodelled": chosen.unmodelled(self.workers)}
        parameters |= {"host": chosen.one_process} if self.process == "node" else {}
        value, low, high = shifts(parameters, values(parameters), lambda v: self.ask(v, machine))["efficiency"]
        return Parameter(value, "", (value * math.exp(-low), min(1.0, value + high)))


@cache
def _load(name):
    return load_machine(name)


@cache
def facts_of(network, size):
    """Facts of a network (labs.models.counts)."""
    return counts.of(network, size)


@cache
def rows():
    """The published rows, a tuple of Row."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    kinds = {"batch": int, "workers": int, "base": int, "efficiency": float}
    return tuple(Row(**line | {name: kind(line[name]) for name, kind in kinds.items()}) for line in lines)


def choose(given, machine=True):
    """Chosen by the rows `given`: overlap, spread, model_error and model_degrees by those of a process for each worker,
    host and host_most (`_host`) by the others; the rest as it is in CHOSEN. machine: see Row.steps.

    overlap and spread: of a grid, those with the least mean square error of the logarithm of efficiency. Several
    overlaps do nearly as well, as most rows hardly depend on it; of those within one standard error of the best the
    largest is taken, as Horovod is built for full overlap (the rule of L. Breiman and others, Classification and
    Regression Trees, 1984, section 3.4.3). model_error: the root of that least mean square.
    The ranges of a row's parameters explain part of it, which is not taken off: of a few sources nothing is left then
    as often as not. Rows of a source share machine, program and people, so the degrees of freedom are those of sources:
    their number - 1.
    """
    given = tuple(given)
    apart = [row for row in given if row.process == "node"]
    given = [row for row in given if row.process == "worker"]
    if len({row.source for row in given}) < 2 or len(given) < 3:
        raise CostError("These rows are too few to choose from: give 3 or more, of 2 sources or more.")
    squares = np.array([_errors(row, machine) for row in given]) ** 2  # row, overlap, spread
    means = squares.mean(axis=0)
    best = np.unravel_index(means.argmin(), means.shape)
    limit = means[best] + squares[:, *best].std(ddof=1) / math.sqrt(len(given))
    overlap = max(i for i in range(len(OVERLAPS)) if means[i].min() <= limit)
    spread = means[overlap].argmin()
    found = replace(
        CHOSEN,
        overlap=round(float(OVERLAPS[overlap]), 4),
        spread=round(float(SPREAD_STEPS[spread]), 4),
        model_error=round(float(np.sqrt(means[overlap, spread])), 4),
        model_degrees=len({row.source for row in given}) - 1,
        model_workers=max(row.workers for row in given),
    )
    host, most = _host(apart, found, machine)
    return replace(found, host=round(host, 5), host_most=round(most, 4))


def further(row, chosen, machine=True):
    """Seconds that a published step is longer than the predicted one, for each GPU of a node after the first."""
    return _further(row, chosen.overlap, chosen.spread, machine)


@cache
def _further(row, overlap, spread, machine):
    alone, several = row.steps(values(row.parameters(replace(CHOSEN, overlap=overlap, spread=spread))), machine)
    return (alone / row.efficiency - several) / (min(row.workers, row.model.devices) - 1)


LEAST = 1e-3  # s: of less for each further GPU nothing is seen, since the model's error is as large


def _host(given, chosen, machine):
    """(host, host_most): what rows with one process for a node add, in seconds for each further GPU of a node.

    A row's is `further`, LEAST or more. host: their median. host_most: the
    upper 95 % end of one more program's, by Student's t on logarithms. Rows of a program share what it does, so the
    degrees of freedom are those of programs: their number - 1.
    """
    logs = [math.log(max(LEAST, further(row, chosen, machine))) for row in given]
    programs = len({row.program for row in given})
    if programs < 2:
        return CHOSEN.host, CHOSEN.host_most
    reach = intervals.t_quantile(programs - 1) * math.sqrt(variance(logs) * (1 + 1 / programs))
    return math.exp(median(logs)), math.exp(fmean(logs) + reach)


@cache
def _errors(row, machine):
    """Logarithm of predicted / published efficiency, for each of OVERLAPS and SPREAD_STEPS."""
    known = values(row.parameters(CHOSEN))
    told = _load(row.machine).software.model_fields_set

    def steps_of(overlap, spread):
        ours = {"overlap": float(overlap), "spread": float(spread)}
        return row.steps(known | {name: value for name, value in ours.items() if name not in told}, machine)

    none, full = (np.array([steps_of(overlap, spread) for spread in SPREAD_STEPS]) for overlap in (0, 1))
    steps = np.array([(1 - overlap) * none + overlap * full for overlap in OVERLAPS])  # it is linear in the overlap
    alone, several = steps[..., 0], steps[..., 1]
    return np.log(alone / np.maximum(alone, several) / row.efficiency)


def left_out(way, given=None, machine=True):
    """{row: (Parameter predicted, Chosen)}, each with constants chosen without the row, its machine or its source
    (`way`, of WAYS). machine: see Row.steps."""
    given, groups = tuple(given or rows()), defaultdict(list)
    for row in given:
        groups[WAYS[way](row)].append(row)
    found = {}
    for group in groups.values():
        chosen = choose([row for row in given if row not in group], machine)
        found |= {row: (row.predicted(chosen, machine), chosen) for row in group}
    return {row: found[row] for row in given}


def constant(way, given=None):
    """{row: Parameter}: for all rows of a kind (`process`) one efficiency, the median of those that are not left out,
    with the interval of one more source's (of a node's process: program's) by Student's t on logarithms."""
    given, found = tuple(given or rows()), {}
    for row in given:
        others = [r for r in given if r.process == row.process and WAYS[way](r) != WAYS[way](row)]
        logs = [math.log(r.efficiency) for r in others]
        groups = len({r.source if row.process == "worker" else r.program for r in others})
        reach = intervals.t_quantile(groups - 1) * math.sqrt(variance(logs) * (1 + 1 / groups))
        ends = math.exp(fmean(logs) - reach), min(1.0, math.exp(fmean(logs) + reach))
        found[row] = Parameter(math.exp(median(logs)), "", ends)
    return found


@cache
def predictors(way):
    """{name: {row: Parameter}}: what the model is compared with, all of them chosen without what is left out."""
    by_model = {name: left_out(way, machine=machine) for name, machine in PREDICTORS.items()}
    told = {name: {row: p for row, (p, _) in found.items()} for name, found in by_model.items()}
    return {"one constant": constant(way)} | told


PREDICTORS = {"the model without its machine": False, "the model": True}
KINDS = {"worker": "a process for each GPU", "node": "one process for a node's GPUs"}


def summary(predicted):
    """(rows whose efficiency is in the interval, rows, median and largest absolute error, median width of intervals) of
    {row: Parameter}."""
    inside = sum(p.interval[0] <= row.efficiency <= p.interval[1] for row, p in predicted.items())
    errors = [abs(p.value - row.efficiency) for row, p in predicted.items()]
    widths = [p.interval[1] - p.interval[0] for p in predicted.values()]
    return inside, len(predicted), median(errors), max(errors), median(widths)


def compared(way):
    """Rows of the table that compares them: (kind, what, inside, rows, median error, median width)."""
    for kind, name in KINDS.items():
        for what, predicted in predictors(way).items():
            yield name, what, *summary({row: p for row, p in predicted.items() if row.process == kind})


def repeat_spread():
    """(standard deviation of the logarithm of a repeat's mean step, degrees of freedom), pooled over the kit's
    recorded runs with several repeats, or rounds."""
    folders = sorted(path for path in recorded.HERE.iterdir() if path.is_dir() and any(path.glob("*.json")))
    folders.remove(recorded.HERE / "h200")  # it holds no run records
    logs = [[math.log(s) for s in o.seconds] for o in observations_of(folders)[0] if len(o.seconds) > 1]
    free = sum(len(each) - 1 for each in logs)
    return math.sqrt(sum((len(each) - 1) * variance(each) for each in logs) / free), free


def carried_rates():
    """[(what, logarithm of the predicted / the known rate)]: each measured rate on file in float32 from those of its
    network in another program, from those of its family; and the recorded epoch of one GPU of CTE-POWER from its
    machine's file."""
    found, seen = [], set()
    for name in dict.fromkeys(row.machine for row in rows()):
        machine = _load(name)
        known = [rate for rate in machine.measured if rate.precision == "float32"]
        for rate in known:
            key = rate.model, rate.local_batch, rate.images_per_second
            if key in seen:  # of a device that several machines share
                continue
            seen.add(key)
            itself = [r for r in known if r.model == rate.model and r.source != rate.source]
            others = [r for r in known if r.model != rate.model and family(r.model) == family(rate.model)]
            for rest in filter(None, (itself, others)):
                what = f"{name}: {rate.model} {rate.local_batch:g} from {rest[0].model}"
                found.append((what, _carried(machine, rate, rest)))
    run = next(run for run in log.read(recorded.CTE_POWER) if run.workers == 1)
    alone = observe(run, image_size=128)
    facts = counts.of(alone.model, 128, alone.classes)
    line, _ = anchored(alone.model, facts, _load("cte-power"), "float32", alone.local_batch, 128, facts_of)
    predicted = line.seconds(alone.local_batch, values(line.parameters))
    return [*found, ("cte-power: the recorded epoch", math.log(fmean(alone.seconds) / predicted))]


def _carried(machine, rate, rest):
    known, size = machine.model_copy(update={"measured": rest, "computed": []}), SIZES.get(rate.model, 224)
    facts = facts_of(rate.model, size)
    line, _ = anchored(rate.model, facts, known, "float32", rate.local_batch, size, facts_of)
    return math.log(rate.local_batch / line.seconds(rate.local_batch, values(line.parameters)) / rate.images_per_second)


def chosen_anew():
    """Chosen, all of it, by the rows and the recorded runs."""
    spread, free = repeat_spread()
    errors = [error for _, error in carried_rates()]
    reach = math.expm1(intervals.t_quantile(len(errors)) * math.sqrt(fmean(error**2 for error in errors)))
    return replace(choose(rows()), repeat_spread=round(spread, 4), repeat_degrees=free, rate_reach=round(reach, 3))


def toml(chosen: Chosen):
    """The text of chosen.toml."""
    lines = [f"{name} = {value}" for name, value in asdict(chosen).items()]
    head = (
        "# Written by `python benchmarks/published.py --write`: do not edit. labs/costs/chosen.py says what these are."
    )
    return "\n".join([head, *lines, ""])


def section(chosen=CHOSEN):
    """The part of labs/machines/README.md that is written: the table, what was chosen, and how far it holds."""
    predicted = {row: row.predicted(chosen) for row in rows()}
    lines = [
        "| machine | network, batch per GPU, GPUs | a process for each | efficiency | predicted | 95 % interval "
        "| error | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row, told in predicted.items():
        base = f" (of {row.base})" if row.base > 1 else ""
        how = "" if row.how == "published" else f" (computed: {row.how})"
        low, high = told.interval
        lines.append(
            f"| {row.machine} | {row.network}, {row.batch}, {row.workers}{base} | {row.process} | "
            f"{row.efficiency:.3f}{how} | "
            f"{told.value:.3f} | {low:.3f} to {high:.3f} | {told.value - row.efficiency:+.3f} | {row.source} |"
        )
    inside, count, error, *_ = summary({row: told for row, told in predicted.items() if row.process == "worker"})
    added = defaultdict(list)  # ms
    for row in rows():
        if row.process == "node":
            added["multi_gpu_model" in row.how].append(1e3 * further(row, chosen))
    ends = {old: f"{min(each):.0f} to {max(each):.0f} ms" for old, each in added.items()}
    lines += _wrapped(
        f"""

        Chosen with the {count} rows of a process for each GPU in sight: `overlap`, {chosen.overlap:g} of the way from
        no overlap of all-reduce and backward to full overlap; `spread`, {100 * chosen.spread:g} %; and `model_error`,
        {100 * chosen.model_error:.1f} %, how far a step of several workers, relative to one, is from what the model
        says (root mean square of its logarithm). With them {inside} of {count} rows lie in their intervals, and the
        median error is {error:.3f}. That says little, as the same rows chose. So each row was also predicted with
        constants that others chose, by the model and by two that know less: **one constant**, the median efficiency of
        the other rows, whatever network, batch and machine; and **the model without its machine**, as if its links took
        no time, so that workers wait for the slowest one and for nothing else.

        """
    )
    lines += [line for way in WAYS for line in _table(way)]
    lines += _wrapped(
        f"""
        With a process for each GPU, median errors do not tell the model from those that know less: most of these
        efficiencies are alike. What the machine's data bring shows in the largest error, half of theirs (VGG16, whose
        gradient is large), and in narrower intervals that hold as many rows.

        **One process that drives all GPUs of a node.** `host`, {1e3 * chosen.host:.1f} ms, is the median of what these
        rows add to a step for each GPU after the first. It is a matter of the program, which no machine's file knows:
        programs whose replicas compute in one graph and exchange with NCCL (tf_cnn_benchmarks, tensorpack,
        MirroredStrategy of TensorFlow 2.3) add {ends[False]}, mostly no more than the model errs; Keras' old
        `multi_gpu_model`, which gathers on one device, adds {ends[True]}. One more program's may be anything up to
        {1e3 * chosen.host_most:.0f} ms (`host_most`, 95 %). **Do not rely on a prediction with `--process node`**: its
        interval is honest and says next to nothing. Measure your program on 1 and 2 GPUs, and give `--records`. Without
        `--process node` the model must not be used for such programs, nor for others in which one device or one thread
        serves all GPUs, such as PyTorch's `DataParallel`.

        Two more constants are chosen by data. `rate_reach`, {100 * chosen.rate_reach:.0f} %: how far a rate of one
        worker may be off (95 %) that comes from another program or another network of the family, by the measured rates
        on file, each predicted from the others, and the recorded epoch of one GPU of CTE-POWER. `repeat_spread`,
        {100 * chosen.repeat_spread:.1f} %: how far a run without repeats may be off by chance, a standard deviation
        over the repeats in `labs/recorded` ({chosen.repeat_degrees} degrees of freedom; others used that machine, too:
        yours may be calmer). All of them stand in `labs/costs/chosen.toml`."""
    )
    return "\n".join(lines)


def _wrapped(text):
    """The lines of paragraphs, 120 characters wide."""
    parts = [textwrap.wrap(" ".join(part.split()), 120) for part in re.split(r"\n\s*\n", text)]
    return [line for part in parts for line in (*part, "")][:-1]


def _table(way):
    """The comparison with one row, machine or source left out, as lines."""
    yield f"| one {way} left out; predicted by | rows in 95 % intervals | median error | largest error | median width |"
    yield "|---|---|---|---|---|"
    for kind, what, inside, count, error, most, width in compared(way):
        yield f"| {kind}: {what} | {inside} of {count} | {error:.3f} | {most:.3f} | {width:.3f} |"
    yield ""


def readme(chosen=CHOSEN):
    """The text of labs/machines/README.md with a new `section`."""
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n{section(chosen)}\n{END}{rest.split(END)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write chosen.toml and the table of the README")
    options = parser.parse_args()
    chosen = chosen_anew()
    print(toml(chosen))
    for what, error in carried_rates():
        print(f"rate carried over, {what}: {error:+.3f} of its logarithm")
    for way in WAYS:
        print(f"\nLeft out: one {way} at a time")
        found = left_out(way)
        for row, (told, by) in found.items():
            inside = told.interval[0] <= row.efficiency <= told.interval[1]
            print(
                f"{row.machine:<16}{row.network:<12}{row.batch:>4}{row.workers:>5}  {row.efficiency:.3f}  predicted "
                f"{told.value:.3f} [{told.interval[0]:.3f}, {told.interval[1]:.3f}]  {'in ' if inside else 'OUT'}  "
                f"overlap {by.overlap:g}, spread {by.spread:g}, "
                f"model error {by.model_error:g}, {by.model_degrees} degrees of freedom"
            )
        print("\n".join(_table(way)))
    if options.write and toml(chosen) != FILE.read_text(encoding="utf-8"):
        files.write(FILE, toml(chosen))
        print("\nWritten. Again, with these constants:\n", flush=True)
        subprocess.run([sys.executable, __file__, "--write"], check=True)
    elif options.write:
        files.write(README, readme())


if __name__ == "__main__":
    main()
