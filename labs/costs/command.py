"""`labs predict`: a prediction from a machine's file, or from your own runs, as text or JSON."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from labs import files
from labs.costs.anchor import SIZES
from labs.costs.communication import BACKWARD
from labs.costs.fit import fit
from labs.costs.machine import load_machine
from labs.costs.observe import input_seconds, observations_of
from labs.costs.parameter import CostError, Parameter
from labs.costs.predict import predict_from_fit, predict_from_machine
from labs.models import counts
from labs.printed import as_json, printable, several


def run(args):
    """Predict and print; returns the exit code 0. Raises CostError, SimulationError, FactsError for wrong use."""
    if args.workers < 1:
        raise CostError(f"--workers is {args.workers}: a training has 1 or more.")
    found = predict_command(args)
    print(as_json(found.as_dict()) if args.json else printable(text(found)))
    return 0


def predict_command(args):
    """The Prediction that the options ask for. Raises as `run`."""
    if not args.machine and not args.records:
        raise CostError("Give --machine FILE, or --records DIR with your runs, or both.")
    if args.benchmark and not args.records:
        raise CostError("--benchmark needs --records: it says how long messages take, not how long a step computes.")
    if args.one_worker is not None and not 0 < args.one_worker < 1e12:
        raise CostError(f"--one_worker is {args.one_worker:g}: give images/s of one worker, above 0.")
    machine, given = load_machine(args.machine) if args.machine else None, args.local_batch
    settings = {
        "accumulation": args.accumulation,
        "images": args.images,
        "slots": args.optimizer_slots,
        "compression": args.compression,
        "input": _input(args.input),
        "process": args.process,
    }
    if not args.records:
        size = args.image_size or SIZES.get(args.model, 224)
        network, local_batch = counts.of(args.model, size, args.classes), 64 if given is None else given
        settings |= {"precision": args.precision, "image_size": size, "rate": args.one_worker}
        return predict_from_machine(args.model, network, machine, args.workers, local_batch, **settings)
    if args.one_worker:
        raise CostError("--one_worker and --records both say what one worker does: give one of them.")
    unread = f"{args.benchmark}: cannot be read as JSON of `labs allreduce --json`"
    benchmark = _json(args.benchmark, unread) if args.benchmark else None
    observations, skipped = observations_of(args.records, image_size=args.image_size)
    fitted = fit(observations, benchmark=benchmark)
    known = [n for n in fitted.networks.values() if n.model == args.model and args.image_size in (None, n.image_size)]
    other = None if known else counts.of(args.model, args.image_size or observations[0].image_size or 224, args.classes)
    local_batch = max((known or list(fitted.networks.values()))[0].batches) if given is None else given
    found = predict_from_fit(fitted, args.model, args.workers, local_batch, facts=other, machine=machine, **settings)
    return replace(found, notes=tuple(dict.fromkeys((*found.notes, *fitted.notes, *skipped))))


def _input(given):
    """Seconds for an image and node: a number as text, or what the .breakdown.json file that it names says; or None."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    neither = "neither a number of seconds for an image, nor a file of labs.measure.breakdown that can be read"
    found = input_seconds(_json(given, f"--input {given}: {neither}"))
    return Parameter(fmean(found), "s/image", (min(found), max(found)), f"batches read alone, {Path(given).name}")


def _json(path, else_says):
    try:
        return json.loads(files.read(path))
    except (OSError, ValueError, RecursionError) as problem:
        raise CostError(f"{else_says} ({problem}).") from None


LABELS = files.beside(__file__)  # of quantities, and of the parts of a step


def text(found):
    """The prediction as aligned text: quantities with intervals, where the time goes, notes."""
    row = found.as_dict()
    passes = f", {row['accumulation']} passes" if row["accumulation"] > 1 else ""
    needed, unknown = row["input"]["needed_images_per_second"], row["input"]["known"] == "no"
    given = f", if the host feeds a node {needed:.4g} images/s or more" if unknown else ""
    lines = [
        f"{found.model} on {several(found.workers, 'worker')}, batch {found.local_batch:g} each{passes}, "
        f"{row['precision']}, {row['image_size']} pixels; {row['machine']}",
        f"Predicted [95 % interval]{given}:",
    ]
    for name, said in LABELS["quantities"].items():
        if quantity := found.quantities.get(name):
            (label, form, unit), (low, high) = said.values(), quantity.interval
            lines.append(f"  {label:<24}{quantity.value:{form}}  [{low:{form}}, {high:{form}}] {unit}".rstrip())
    lines.append("Seconds of a step:")
    lines += [f"  {label:<24}{row['breakdown_seconds'][part]:.4g}" for part, label in LABELS["parts"].items()]
    lines.append(f"Backward, {BACKWARD:.0%} of the computation, can hide the all-reduce.")
    return "\n".join(lines + [f"Note: {note}." for note in found.notes])
