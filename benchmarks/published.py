"""Published efficiencies against predictions, and the constants that they and the kit's recorded runs choose.

    python benchmarks/published.py [--write]

prints all of it, each row also with constants that other rows chose. --write: writes the constants that were chosen
(labs/costs/chosen.toml) until they no longer change, as the reach of rates enters the choice of the others; then the
table of labs/machines/README.md.
"""

import argparse
import csv
import math
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from statistics import fmean, median, variance

import numpy as np

from labs import files, recorded
from labs.costs.anchor import SIZES, anchored, family
from labs.costs.chosen import CHOSEN, FILE, SPREADS, Chosen
from labs.costs.computation import values
from labs.costs.machine import HERE, load
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
    per worker. how: "published", or what it was computed from."""

    machine: str
    network: str
    batch: int
    workers: int
    base: int
    efficiency: float
    how: str
    source: str

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

    def ask(self, values):
        """{"efficiency"} of a model with these values; `unmodelled` is on the ratio, whatever the base is."""
        alone = self.model.breakdown(self.base, self.batch, 1, values).step
        several = self.model.breakdown(self.workers, self.batch, 1, values).step * values.get("unmodelled", 1.0)
        return {"efficiency": alone / max(alone, several)}

    def predicted(self, chosen):
        """The efficiency as a Parameter, as labs.costs.predict makes it."""
        parameters = self.parameters(chosen) | {"unmodelled": chosen.unmodelled(self.workers)}
        value, low, high = shifts(parameters, values(parameters), self.ask)["efficiency"]
        return Parameter(value, "", (value * math.exp(-low), min(1.0, value + high)))


@cache
def _load(name):
    return load(name)


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


def choose(given):
    """Chosen by the rows `given`: overlap, spread, model_error and model_degrees; the rest as it is in CHOSEN.

    overlap and spread: of a grid, those with the least mean square error of the logarithm of efficiency. Several
    overlaps do nearly as well, as most rows hardly depend on it; of those within one standard error of the best the
    largest is taken, as Horovod is built for full overlap (the rule of L. Breiman and others, Classification and
    Regression Trees, 1984, section 3.4.3). model_error: the standard deviation s with

        sum of (error of the row)^2 / (s_row^2 + s^2) = rows - 2,

    where s_row is what the ranges of the row's parameters explain on the side of the error (R. Paule and J. Mandel,
    Journal of Research of the National Bureau of Standards 87, 1982). Rows of a source share machine, program and
    people, so the degrees of freedom are those of sources: their number - 1.
    """
    given = tuple(given)
    if len({row.source for row in given}) < 2 or len(given) < 3:
        raise CostError(f"{len(given)} row(s) choose nothing: give 3 rows or more, of 2 sources or more.")
    squares = np.array([_errors(row) for row in given]) ** 2  # row, overlap, spread
    means = squares.mean(axis=0)
    best = np.unravel_index(means.argmin(), means.shape)
    limit = means[best] + squares[:, *best].std(ddof=1) / math.sqrt(len(given))
    overlap = max(i for i in range(len(OVERLAPS)) if means[i].min() <= limit)
    found = replace(
        CHOSEN,
        overlap=round(float(OVERLAPS[overlap]), 4),
        spread=round(float(SPREAD_STEPS[means[overlap].argmin()]), 4),
        model_degrees=len({row.source for row in given}) - 1,
        model_workers=max(row.workers for row in given),
    )
    return replace(found, model_error=round(_model_error(given, found), 4))


@cache
def _errors(row):
    """Logarithm of predicted / published efficiency, for each of OVERLAPS and SPREAD_STEPS."""
    known = values(row.parameters(CHOSEN))
    told = _load(row.machine).software.model_fields_set

    def error(overlap, spread):
        ours = {"overlap": float(overlap), "spread": float(spread)}
        found = row.ask(known | {name: value for name, value in ours.items() if name not in told})
        return math.log(found["efficiency"] / row.efficiency)

    return [[error(overlap, spread) for spread in SPREAD_STEPS] for overlap in OVERLAPS]


def _model_error(given, chosen):
    from scipy.optimize import brentq

    explained = []
    for row in given:
        parameters = row.parameters(chosen)
        value, low, high = shifts(parameters, values(parameters), row.ask)["efficiency"]
        error = math.log(row.efficiency / value)
        reach = math.log1p(high / value) if error > 0 else low
        explained.append((error**2, (reach / NORMAL) ** 2))

    def excess(s):
        return sum(error / (known + s**2) for error, known in explained) - (len(given) - 2)

    return brentq(excess, 1e-6, 10.0) if excess(1e-6) > 0 else 0.0


def left_out(way, given=None):
    """{row: (Parameter predicted, Chosen)}, each with constants chosen without the row, its machine or its source
    (`way`, of WAYS)."""
    given, groups = tuple(given or rows()), defaultdict(list)
    for row in given:
        groups[WAYS[way](row)].append(row)
    found = {}
    for group in groups.values():
        chosen = choose(row for row in given if row not in group)
        found |= {row: (row.predicted(chosen), chosen) for row in group}
    return {row: found[row] for row in given}


def summary(predicted):
    """(rows whose efficiency is in the interval, rows, median of the absolute errors) of {row: Parameter}."""
    inside = sum(p.interval[0] <= row.efficiency <= p.interval[1] for row, p in predicted.items())
    return inside, len(predicted), median(abs(p.value - row.efficiency) for row, p in predicted.items())


def repeat_spread():
    """(standard deviation of the logarithm of a repeat's mean step, degrees of freedom), pooled over the kit's
    recorded runs with several repeats, or rounds."""
    folders = sorted(path for path in recorded.HERE.iterdir() if path.is_dir() and any(path.glob("*.json")))
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
        "| machine | network, batch per GPU, GPUs | efficiency | predicted | 95 % interval | error | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, told in predicted.items():
        base = f" (of {row.base})" if row.base > 1 else ""
        how = "" if row.how == "published" else f" (computed: {row.how})"
        low, high = told.interval
        lines.append(
            f"| {row.machine} | {row.network}, {row.batch}, {row.workers}{base} | {row.efficiency:.3f}{how} | "
            f"{told.value:.3f} | {low:.3f} to {high:.3f} | {told.value - row.efficiency:+.3f} | {row.source} |"
        )
    inside, count, error = summary(predicted)
    lines += [
        "",
        f"Chosen with these {count} rows in sight: `overlap`, {chosen.overlap:g} of the way from no overlap of "
        "all-reduce",
        f"and backward to full overlap; `spread`, {100 * chosen.spread:g} %; and `model_error`, "
        f"{100 * chosen.model_error:.1f} %, the standard deviation of what the",
        "model leaves out of a step of several workers, relative to one. With them "
        f"{inside} of {count} rows lie in their intervals, and the",
        f"median error is {error:.3f}. That says little, as the same rows chose. So each row was also predicted with",
        "constants that others chose:",
        "",
        "| left out at a time | rows in their 95 % intervals | median error |",
        "|---|---|---|",
    ]
    for way in WAYS:
        inside, count, error = summary({row: told for row, (told, _) in left_out(way).items()})
        lines.append(f"| one {way} | {inside} of {count} ({inside / count:.0%}) | {error:.3f} |")
    lines += [
        "",
        f"Two more constants are chosen by data. `rate_reach`, {100 * chosen.rate_reach:.0f} %: how far a rate of one "
        "worker may be off (95 %) that",
        "comes from another program or another network of the family, by the measured rates on file, each predicted",
        "from the others, and the recorded epoch of one GPU of CTE-POWER. `repeat_spread`, "
        f"{100 * chosen.repeat_spread:.1f} %: how far a run without",
        "repeats may be off by chance, a standard deviation over the repeats in `labs/recorded` "
        f"({chosen.repeat_degrees} degrees of freedom; others",
        "used that machine, too: yours may be calmer). All of them stand in `labs/costs/chosen.toml`.",
    ]
    return "\n".join(lines)


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
        inside, count, error = summary({row: told for row, (told, _) in found.items()})
        print(f"{inside} of {count} in their intervals ({inside / count:.0%}), median error {error:.3f}")
    if options.write and toml(chosen) != FILE.read_text(encoding="utf-8"):
        files.write(FILE, toml(chosen))
        print("\nWritten. Again, with these constants:\n", flush=True)
        subprocess.run([sys.executable, __file__, "--write"], check=True)
    elif options.write:
        files.write(README, readme())


if __name__ == "__main__":
    main()
