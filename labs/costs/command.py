"""`labs predict`: a prediction from a machine's file, or from your own runs, as text or JSON."""

import json
from pathlib import Path

from labs.costs.anchor import SIZES
from labs.costs.communication import BACKWARD
from labs.costs.fit import fit
from labs.costs.machine import load
from labs.costs.observe import observe
from labs.costs.parameter import ScalingError
from labs.costs.predict import predict, predict_from_fit
from labs.errors import LabsError


def run(args):
    """Predict and print; returns the exit code 0. Raises ValueError for wrong use; its text says what to do."""
    if args.workers < 1:
        raise ScalingError(f"--workers is {args.workers}: a training has 1 or more.")
    found = predict_command(args)
    row = found.as_dict()
    print(json.dumps(row, indent=1) if args.json else text(row, found))
    return 0


def predict_command(args):
    """The Prediction that the options ask for. Raises ValueError."""
    from labs.models import counts

    if not args.machine and not args.records:
        raise ScalingError("Give --machine FILE, or --records DIR with your runs, or both.")
    if args.benchmark and not args.records:
        raise ScalingError("--benchmark needs --records: it says how long messages take, not how long a step computes.")
    machine = load(args.machine) if args.machine else None
    settings = {
        "accumulation": args.accumulation,
        "images": args.images,
        "slots": args.optimizer_slots,
        "compression": args.compression,
    }
    if not args.records:
        size = args.image_size or SIZES.get(args.model, 224)
        batch, network = 64 if args.batch is None else args.batch, counts.of(args.model, size, args.classes)
        return predict(
            args.model,
            network,
            machine,
            args.workers,
            batch,
            precision=args.precision,
            image_size=size,
            rate=args.one_worker,
            **settings,
        )
    if args.one_worker:
        raise ScalingError("--one_worker and --records both say what one worker does: give one of them.")
    benchmark = _benchmark(args.benchmark) if args.benchmark else None
    observations, skipped = observations_of(args.records, image_size=args.image_size)
    fitted = fit(observations, benchmark=benchmark)
    known = [n for n in fitted.networks.values() if n.model == args.model and args.image_size in (None, n.image_size)]
    other = None if known else counts.of(args.model, args.image_size or observations[0].image_size or 224, args.classes)
    measured = (known or list(fitted.networks.values()))[0].batches
    batch = max(measured) if args.batch is None else args.batch
    found = predict_from_fit(fitted, args.model, args.workers, batch, facts=other, machine=machine, **settings)
    extra = (*fitted.notes, *skipped)
    return type(found)(**{**vars(found), "notes": tuple(dict.fromkeys((*found.notes, *extra)))})


def _benchmark(path):
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ScalingError(f"{path}: cannot be read as JSON of `labs allreduce --json` ({problem}).") from None


def observations_of(paths, **known):
    """(Observations, notes on what was left out) of records (.json), logs, and folders of them.

    known: what they do not say, as image_size. A log whose record lies beside it is not read. Raises ScalingError where
    nothing can be read.
    """
    from labs.results import log
    from labs.results.run import load_record

    files = []
    for path in map(Path, paths):
        if not path.exists():
            raise ScalingError(f"{path}: no such file or folder. Give the folder in which your runs left records.")
        inside = sorted(path.iterdir()) if path.is_dir() else [path]
        files += [file for file in inside if file.suffix in (".json", ".out", ".output", ".log")]
    found, skipped = [], []
    for file in files:
        try:
            if file.suffix == ".json":
                found.append(observe(load_record(file), **known))
            elif not file.with_suffix(".json").exists():
                found += [observe(run, **known) for run in log.read(file)]
        except (LabsError, ScalingError) as problem:
            skipped.append(f"left out: {str(problem).splitlines()[0]}")
    if not found:
        raise ScalingError("; ".join(skipped) or f"No records or logs in {', '.join(map(str, paths))}.")
    return found, skipped


def text(row, found):
    """The prediction as aligned text: quantities with intervals, where the time goes, notes."""

    def line(label, key, form="{:.4g}", unit=""):
        value, span = row.get(key), row.get(f"{key}_interval")
        if value is None:
            return None
        inside = f"  [{form.format(span[0])}, {form.format(span[1])}]" if span else ""
        return f"  {label:<24}{form.format(value)}{inside} {unit}".rstrip()

    passes = f", {row['accumulation']} passes" if row["accumulation"] > 1 else ""
    lines = [
        f"{row['model']} on {row['workers']} worker(s), batch {row['local_batch']:g} each{passes}, {row['precision']}, "
        f"{row['image_size']} pixels; {row['machine']}",
        "Predicted [95 % interval]:",
        line("step", "step_seconds", unit="s"),
        line("images/s", "images_per_second"),
        line("images/s per worker", "images_per_second_per_worker"),
        line("speedup", "speedup"),
        line("efficiency", "efficiency", "{:.3f}"),
        line("epoch", "epoch_seconds", unit="s"),
        line("largest batch", "largest_batch", "{:.0f}", "images per worker"),
        "Seconds of a step:",
        *(
            f"  {label:<24}{seconds:.4g}"
            for label, seconds in (
                ("computation", found.breakdown.computation),
                ("waiting for the slowest", found.breakdown.stragglers),
                ("all-reduce, exposed", found.breakdown.exposed),
                ("all-reduce, whole", found.breakdown.all_reduce),
            )
        ),
        f"Backward, {BACKWARD:.0%} of the computation, can hide the all-reduce.",
        *(f"Note: {note}." for note in row["notes"]),
    ]
    return "\n".join(entry for entry in lines if entry)
