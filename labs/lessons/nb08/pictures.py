"""Pictures of notebook 08: where the time of a measured step goes, and, moving, how ResNet50V2 and ResNet152V2 would
scale to 4096 workers of another machine.

The second is predicted by the cost model (labs.costs) from a machine's file. Nothing here runs TensorFlow, except the
first call of `networks`, in another process: facts of a network are kept (labs.models.counts).
"""

from dataclasses import replace
from functools import lru_cache
from math import exp

from labs.costs import load
from labs.costs.anchor import anchored
from labs.costs.chosen import CHOSEN
from labs.costs.computation import values as values_of
from labs.costs.memory import largest_batch
from labs.costs.model import Model
from labs.costs.parameter import CostError
from labs.costs.predict import shifts
from labs.lessons.drawing import logarithmic
from labs.measure import breakdown as measured
from labs.models import counts
from labs.show.canvas import canvas, done
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp

NAMES = ("ResNet50V2", "ResNet152V2")
MACHINE = "v100-ethernet25"
WORKERS = tuple(2**k for k in range(13))  # 1, 2, 4, ..., 4096
REACHED = 0.7  # of a network's bandwidth that an all-reduce over TCP reaches, as in the machine's file
PARTS = {  # of a step: the field of labs.costs.model.Breakdown, name and colour
    "computation": ("computation", COLOURS[5]),
    "stragglers": ("waiting for the slowest", COLOURS[4]),
    "exposed": ("all-reduce that backward does not hide", COLOURS[1]),
}


@lru_cache(1)
def networks():
    """{name: Facts} of both networks for images of 224x224 and 1000 classes; the first time ever takes some seconds."""
    return {name: counts.of(name, 224, 1000) for name in NAMES}


@lru_cache(1)
def machine():
    """The machine of the picture: nodes of 8 V100, joined by Ethernet (labs/machines)."""
    return load(MACHINE)


@lru_cache(512)
def steps(network, batch=64, bandwidth=25, latency=30, precision="float32", fusion=128, accumulation=1):
    """{workers: labs.costs.model.Breakdown} for WORKERS.

    batch: images per worker and pass; bandwidth: between nodes, Gbit/s; latency: between nodes, microseconds a message;
    fusion: MiB of a fused message, 0 for none; accumulation: passes before each all-reduce. Rates that were measured
    with ResNet50 and ResNet152 stand for those of the V2 networks. Raises CostError, MachineError.
    """
    model = _model(network, batch, precision)
    speed, wait = _speed(bandwidth), latency * 1e-6  # bytes/s, s
    values = model.values(bandwidth_between=speed, latency_between=wait, fusion_threshold=fusion * 2.0**20)
    return {workers: model.breakdown(workers, batch, accumulation, values) for workers in WORKERS}


def _speed(bandwidth):
    return REACHED * bandwidth * 1e9 / 8


def _model(network, batch, precision="float32"):
    """The network on the machine, as it is in its file."""
    if network not in NAMES:
        raise CostError(f"{network!r} is not in this picture: it knows {' and '.join(NAMES)}.")
    found = networks()
    # Their V2 networks stand for the networks that were measured: the operations are nearly the same.
    facts, here = found[network], machine()

    def near(name, size):
        return found.get(f"{name.removesuffix('V2')}V2", facts)

    computation, _ = anchored(network, facts, here, precision, batch, 224, near)
    return Model(computation, facts.tensor_bytes, here.parameters, here.devices, here.algorithm)


def order(workers, batches, bandwidth=25):
    """{name of a network: efficiency; "ratio": the second one's / the first one's}, each (value, (low, high) of 95 %).

    batches: images per worker, of each of NAMES. What the machine's file leaves open moves both networks together, and
    in part cancels in the ratio; each network's own computation, and what the model leaves out, do not.
    """
    models, here, scale = list(map(_model, NAMES, batches)), dict(machine().parameters), _speed(bandwidth)
    known = here["bandwidth_between"]
    ends = tuple(end * scale / known.value for end in known.interval)
    here["bandwidth_between"] = replace(known, value=scale, interval=ends)
    own = [model.computation.parameters | {"unmodelled": CHOSEN.unmodelled(workers)} for model in models]
    parameters = here | {(place, name): p for place, of in enumerate(own) for name, p in of.items()}

    def ask(values):
        found = {}
        for place, (name, model, batch) in enumerate(zip(NAMES, models, batches, strict=True)):
            mine = {key: values[key] for key in here} | {key: values[place, key] for key in own[place]}
            found[name] = model.step(1, batch, values=mine) / model.step(workers, batch, values=mine)
        return found | {"ratio": found[NAMES[1]] / found[NAMES[0]]}

    found = {}
    for key, (value, low, high) in shifts(parameters, values_of(parameters), ask).items():
        found[key] = value, (value * exp(-low), value + high if key == "ratio" else min(1.0, value + high))
    return found


def told(interval):
    """Which network is predicted to have the higher efficiency, by the interval of the ratio; or "can't tell"."""
    low, high = interval
    return NAMES[1] if low > 1 else NAMES[0] if high < 1 else "can't tell"


def efficiencies(network, **settings):
    """{workers: efficiency} for WORKERS; settings as of `steps`."""
    found = steps(network, **settings)
    alone = found[1].step
    return {workers: float(alone / step.step) for workers, step in found.items()}


def first_below(network, limit=0.8, **settings):
    """Smallest number of workers in WORKERS whose efficiency is below `limit`, or None."""
    return next((workers for workers, value in efficiencies(network, **settings).items() if value < limit), None)


@lru_cache(64)
def fits(network, precision="float32"):
    """About how many images per worker fit into the machine's memory, with SGD and momentum."""
    return int(largest_batch(networks()[network], machine().device.memory.value, precision, slots=1, workers=2).value)


def scaling(network="ResNet152V2", batch=64, bandwidth=25, latency=30, precision="float32", fusion=128, accumulation=1):
    """Left: efficiency of both networks over the number of workers, and where it falls below 0.8. Right: the parts of a
    step of `network`, as shares. Arguments as of `steps`."""
    settings = {"batch": batch, "bandwidth": bandwidth, "latency": latency, "precision": precision}
    settings |= {"fusion": fusion, "accumulation": accumulation}
    figure, (axis, parts) = canvas(2, 5.2, 3.6)
    sentences = []
    axis.axhline(0.8, color="0.5", ls="--", lw=1)
    for place, (name, colour, marker) in enumerate(zip(NAMES, COLOURS, MARKERS, strict=False)):
        values, below = efficiencies(name, **settings), first_below(name, **settings)
        room = fits(name, precision)
        note = f" (about {room} images fit)" if batch > room else ""
        axis.plot(WORKERS, list(values.values()), color=colour, marker=marker, ms=5, ls=":" if note else "-")
        text = f"{name}: below 0.8 from {below}" if below else f"{name}: never below 0.8"
        _say(axis, 1 - place, "●■"[place], text + note, colour)
        sentences.append(f"{text}{note}; {values[64]:.2f} on 64, {values[4096]:.2f} on 4096 workers.")
    _over_workers(axis, ylabel="efficiency S(p)/p", title="efficiency", ylim=(0, 1.05))
    found = steps(network, **settings)
    low = [0.0] * len(WORKERS)
    for place, (key, (part, colour)) in enumerate(PARTS.items()):
        high = [a + float(getattr(step, key) / step.step) for a, step in zip(low, found.values(), strict=True)]
        parts.fill_between(WORKERS, low, high, color=colour, lw=0)
        _say(parts, place, "■", part, colour)
        low = high
    alone = 1e3 * float(found[1].step)
    _over_workers(parts, ylabel="share of a step", title=f"{network}: {alone:.3g} ms of computation", ylim=(0, 1.05))
    last = found[WORKERS[-1]]
    sentences.append(
        f"A step of {network}: {1e3 * last.computation:.3g} ms of computation; on 4096 workers "
        f"{1e3 * last.stragglers:.3g} ms of waiting and {1e3 * last.exposed:.3g} ms of all-reduce that "
        "backward does not hide."
    )
    about = (
        f"Batch {batch} per V100, {bandwidth} Gbit/s and {latency} us between nodes, {precision}, fusion "
        f"{f'{fusion} MiB' if fusion else 'off'}, {accumulation} pass(es) per update. "
    )
    return done(figure, "Predicted efficiency over workers. " + about + " ".join(sentences), "predicted")


def _say(axis, line, mark, text, colour):
    """A coloured mark and a text above the axis' lower end: cheaper than a legend."""
    place = {"y": 0.05 + 0.09 * line, "transform": axis.transAxes, "fontsize": 9}
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
    axis.text(0.02, s=f"    {text}", bbox=behind, **place)
    axis.text(0.025, s=mark, color=colour, **place)


def _over_workers(axis, **labels):
    logarithmic(axis, WORKERS[::3])
    axis.set(xlabel="workers", xlim=(0.9, 4800), **labels)


def breakdown(results, runs=()):
    """Stacked bars of the parts of a step: one of a worker alone and one of all, for each of `results`.

    results: of labs.measure.breakdown.measure; runs: rows of labs.results.collect, of which the step of each run of the
    same network, local batch and number of workers is a black mark.
    """
    figure, (axis,) = new_figure(1, width=8.0, height=0.9 + 0.95 * len(results))
    names, sentences = [], []
    hatches = ("", "//", "..", "xx")
    for found in results:
        shares = {part: max(0.0, seconds) for part, (seconds, _) in measured.parts(found).items()}
        for workers in (1, found["ranks"]):
            left, place = 0.0, len(names)
            for number, (part, seconds) in enumerate(shares.items()):
                if workers == 1 and part != "computation":
                    continue
                look = {"color": COLOURS[number], "edgecolor": "white", "hatch": hatches[number]}
                label = part if place == 1 else None
                axis.barh(place, 1e3 * seconds, 0.6, left=1e3 * left, label=label, **look)
                left += seconds
            names.append(f"{found['model']}, {workers} worker{'s' if workers > 1 else ''}")
            for row in runs:
                same = row["model"] == found["model"] and row["local_batch"] == found["local_batch"]
                if same and row["workers"] == workers:
                    step = 1e3 * row["epoch_seconds"] / row["steps"]
                    axis.plot([step, step], [place - 0.42, place + 0.42], color="black", lw=2.5)
                    sentences.append(f"Step of the run of {names[-1]}: {step:.3g} ms.")
        values = ", ".join(f"{part} {1e3 * seconds:.3g} ms" for part, (seconds, _) in measured.parts(found).items())
        sentences.append(f"{found['model']} on {found['ranks']} workers: {values}.")
    mark = "step of your runs (T9)"
    if any("run of" in text for text in sentences):
        axis.plot([], [], color="black", lw=2.5, label=mark)
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.4, -0.6), xlabel="milliseconds per step", title="where the time of a step goes")
    handles, labels = axis.get_legend_handles_labels()
    keys = dict(zip(labels, handles, strict=True))
    order = [label for label in (*measured.PARTS, mark) if label in keys]
    axis.legend([keys[label] for label in order], order, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    stamp(figure, *(found["kind"] for found in results))
    figure.alt = "Stacked bars of the milliseconds of a step by part. " + " ".join(sentences)
    return figure
