"""Where the seconds of a training step go, measured by differences: one rank alone, all at once, exchanging, reading.

Four kinds of steps, on real Horovod ranks, with the same images per rank:

    alone       one rank steps, the others rest; one batch that lies in memory
    together    all ranks step, each for itself, without exchange
    exchange    all ranks step and average their gradients
    input       the same, and each batch comes from the input pipeline

labs.measure.breakdown_steps is what each rank runs.
"""

import json
from pathlib import Path
from statistics import fmean, pstdev

from labs import devices, files
from labs.results import intervals

KINDS = ("alone", "together", "exchange", "input")
EFFICIENCY = ("alone", "exchange")  # the kinds whose ratio it is
PARTS = ("computation", "sharing the machine", "exchange and waiting", "input")


class BreakdownError(RuntimeError):
    """The steps cannot be measured, or the measurement does not hold what is asked; the message says what to do."""


def measure(
    model,
    *,
    ranks=2,
    batch=64,
    others=(),
    kinds=KINDS,
    image_size=32,
    images=512,
    rounds=4,
    steps=2,
    launcher=None,
    name=None,
    runs=None,
    show=True,
):
    """Time steps of all `kinds` with `batch` images per rank, and of alone and exchange also with the batches `others`.

    Alone and exchange are enough for `efficiency`; `parts` needs all KINDS. All kinds take turns in each of `rounds`
    rounds, so that a slow minute of the machine is in all of them.
    Returns a dict, kept as <runs>/<name>.breakdown.json: kind "measured", model, ranks, batch, seconds {batch as text:
    {kind: [[seconds of a step, ...] of each round]}}, pipeline_seconds and all_reduce_seconds [of each round] (a batch
    read alone; one message of the gradient's size), gradient_bytes, image_size, classes, machine, versions, notes.
    Raises BreakdownError, models.ModelError, or labs.jobs.launch.LaunchError for ranks that cannot be started.
    """
    from labs import jobs, models

    models.check(model, image_size)
    for value, least, what in (
        (ranks, 2, "ranks"),
        (batch, 1, "images per rank"),
        (rounds, 2, "rounds"),
        (steps, 1, "steps"),
        *((other, 1, "images per rank") for other in others),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BreakdownError(f"{value!r} {what}: a breakdown needs a whole number, {least} or more.")
    if not set(EFFICIENCY) <= set(kinds) <= set(KINDS):
        raise BreakdownError(f"Kinds {tuple(kinds)}: choose of {', '.join(KINDS)}, with {' and '.join(EFFICIENCY)}.")
    if "input" in kinds and images < ranks * batch:
        raise BreakdownError(f"{images} images are less than one step of {ranks} ranks with {batch} each: give more.")
    runs, name = Path(runs) if runs is not None else jobs.folder(), name or f"breakdown_{model}"
    file = (runs / f"{name}.breakdown.json").resolve()
    file.unlink(missing_ok=True)
    options = {"model": model, "image_size": image_size, "images": images, "rounds": rounds, "steps": steps}
    job = jobs.start(
        "-m",
        "labs.measure.breakdown_steps",
        file,
        *(f"--{key}={value}" for key, value in options.items()),
        "--batches",
        batch,
        *others,
        "--kinds",
        *(kind for kind in KINDS if kind in kinds),
        name=name,
        runs=runs,
        ranks=ranks,
        launcher=launcher,
    )
    job.wait(show=show)
    if job.state != "finished" or not file.is_file():
        raise BreakdownError(f"The steps were not measured. {job.explain()}")
    found = json.loads(file.read_text(encoding="utf-8"))
    if ranks > devices.cores() and not found["machine"]["gpus"]:
        found["notes"].append(f"oversubscribed: {ranks} ranks share {devices.cores()} core(s)")
    files.write(file, json.dumps(found, indent=1))
    return found


def load(path):
    """The result of `measure` that a file keeps. Raises BreakdownError."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        found["seconds"][str(found["batch"])]["exchange"]
        return found
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise BreakdownError(f"{path} holds no breakdown ({type(problem).__name__}): measure again.") from None


def means(found, batch=None):
    """{kind: mean seconds of a step in each round, as a list} at a batch (default: the one with all KINDS)."""
    kinds = found["seconds"].get(str(batch or found["batch"]))
    if not kinds:
        raise BreakdownError(f"Batch {batch} was not measured, only {', '.join(found['seconds'])}.")
    return {kind: [fmean(round_) for round_ in rounds] for kind, rounds in kinds.items()}


def parts(found):
    """{part: (seconds of a step, (low, high))} for PARTS: the difference of each kind of step to the one before it.

    The 95 % interval is a t interval over rounds, of differences within a round. A part can come out below 0 where it
    is smaller than the noise.
    """
    kinds, before, result = means(found), None, {}
    if missing := set(KINDS) - set(kinds):
        raise BreakdownError(f"The parts need all kinds of steps; not measured: {', '.join(sorted(missing))}.")
    for kind, part in zip(KINDS, PARTS, strict=True):
        values = kinds[kind] if before is None else [b - a for a, b in zip(before, kinds[kind], strict=True)]
        result[part], before = (fmean(values), intervals.plain(values)), kinds[kind]
    return result


def efficiency(found, batch=None):
    """(step alone / step with exchange, (low, high)) at a batch, with the same images per rank: the efficiency of all
    ranks. The mean over rounds of the ratio within a round; the 95 % t interval is one of its logarithm."""
    kinds = means(found, batch)
    ratios = [alone / exchange for alone, exchange in zip(*(kinds[kind] for kind in EFFICIENCY), strict=True)]
    estimate = intervals.mean(ratios)
    return estimate.value, estimate.interval


def observations(found):
    """The steps as labs.costs takes them: one rank (alone), and all ranks (exchange), for each batch."""
    from labs.costs.observe import Observation

    machine, made = found["machine"], []
    hardware = devices.hardware(machine)
    for batch, kinds in found["seconds"].items():
        for kind, workers in (("alone", 1), ("exchange", found["ranks"])):
            singles = [step / fmean(round_) for round_ in kinds[kind] for step in round_]
            made.append(
                Observation(
                    f"{found['model']}, {kind}, batch {batch}",
                    found["model"],
                    workers,
                    float(batch),
                    tuple(fmean(round_) for round_ in kinds[kind]),
                    0.0,
                    pstdev(singles) if len(singles) > 3 else None,
                    len(kinds[kind][0]),
                    1,
                    found["image_size"],
                    "float32",
                    hardware,
                    found["classes"],
                    found["kind"],
                    workers > 1 and any(note.startswith("oversubscribed") for note in found["notes"]),
                )
            )
    return made


def figure(results, runs=()):
    """Stacked bars, for each result of `measure` one of a worker alone and one of all, with what PARTS take.

    runs: rows of labs.results.collect; the step of each run of the same network, batch and number of workers is a black mark.
    """
    from labs.show import plots

    drawn, (axis,) = plots._figure(1, width=8.0, height=0.9 + 0.95 * len(results))
    names, sentences = [], []
    hatches = ("", "//", "..", "xx")
    for found in results:
        shares = {part: max(0.0, seconds) for part, (seconds, _) in parts(found).items()}
        for workers in (1, found["ranks"]):
            left, place = 0.0, len(names)
            for number, (part, seconds) in enumerate(shares.items()):
                if workers == 1 and part != "computation":
                    continue
                axis.barh(
                    place,
                    1e3 * seconds,
                    0.6,
                    left=1e3 * left,
                    color=plots.COLOURS[number],
                    edgecolor="white",
                    hatch=hatches[number],
                    label=part if place == 1 else None,
                )
                left += seconds
            names.append(f"{found['model']}, {workers} worker{'s' if workers > 1 else ''}")
            for row in runs:
                if (row["model"], row["workers"], row["local_batch"]) == (found["model"], workers, found["batch"]):
                    step = 1e3 * row["epoch_seconds"] / row["steps"]
                    axis.plot([step, step], [place - 0.42, place + 0.42], color="black", lw=2.5)
                    sentences.append(f"Step of the run of {names[-1]}: {step:.3g} ms.")
        values = ", ".join(f"{part} {1e3 * seconds:.3g} ms" for part, (seconds, _) in parts(found).items())
        sentences.append(f"{found['model']} on {found['ranks']} workers: {values}.")
    if runs and any("run of" in text for text in sentences):
        axis.plot([], [], color="black", lw=2.5, label="step of your runs (T9)")
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.4, -0.6), xlabel="milliseconds per step", title="where the time of a step goes")
    handles, labels = axis.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda n: PARTS.index(labels[n]) if labels[n] in PARTS else len(PARTS))
    axis.legend(
        [handles[n] for n in order],
        [labels[n] for n in order],
        fontsize=8,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    plots._stamp(drawn, results)
    drawn.alt = "Stacked bars of the milliseconds of a step by part. " + " ".join(sentences)
    return drawn
