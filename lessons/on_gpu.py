"""What was measured on one GPU, as notebooks show it beside your own figures: recorded.h200() in figures and tables.

WHERE says on which machine. Ratios are those of steps that took turns, with 95 % intervals.
"""

from statistics import fmean, median

from labs import recorded
from labs.results import intervals
from labs.show.figure import COLOURS, finished, new_figure
from lessons import counts
from lessons.faster_steps import samples

WHERE = "Recorded on one NVIDIA H200 on 26 November 2026, Keras on JAX"
PEAK = 494e12  # operations/s: NVIDIA H200 data sheet, TF32, dense (its 989 are with sparsity)


def batches():
    """Figure: time of a step and images/s of ResNet50V2 over the batch, images of 224x224."""
    measured = recorded.h200()
    trials = measured["batches"]["ResNet50V2"]["trials"] | measured["maxbatch"]["ResNet50V2"]["trials"]
    rows = [(int(size), 1e3 * seconds, int(size) / seconds) for size, seconds in trials.items()]
    sizes, times, rates = zip(*rows, strict=True)
    figure, axes = new_figure(2, width=4.2, height=3.0)
    axes[0].set(ylabel="time of a step (ms)", title="ResNet50V2, 224x224")
    axes[1].set(ylabel="images per second", title="one NVIDIA H200")
    for axis, colour, values in zip(axes, COLOURS, (times, rates), strict=False):
        axis.plot(sizes, values, "-o", color=colour)
        axis.set_xscale("log", base=2)
        axis.set_xticks(sizes, list(trials), fontsize=9)
        axis.set(xlabel="batch size (images)", ylim=(0, 1.1 * max(values)))
    said = "; ".join(f"{size}: {time:.1f} ms, {rate:,.0f} images/s" for size, time, rate in rows)
    alt = f"Time of a step and images per second of ResNet50V2 over the batch size, on one NVIDIA H200. {said}."
    return finished(figure, alt, "recorded", note="means of 5 steps")


def networks():
    """A line: the epoch time of ResNet152V2 divided by that of ResNet50V2, images of 224x224."""
    found = {row["of"]: row for row in recorded.h200()["turns"]["all"]["ratios"]}
    ratio = found["ResNet152V2_float32 / ResNet50V2_float32"]
    times = _said(ratio["ratio"], ratio["interval"])
    head = f"{WHERE}, images of 224x224, batch 128"
    return f"{head}:\nan epoch of ResNet152V2 takes {times} times as long as one of ResNet50V2."


def step_seconds():
    """{network: seconds of a training step}: 128 images of 224x224 on one GPU, means over the epochs in turns."""
    found = recorded.h200()["turns"]["all"]
    return {name: found[f"turns_all_{name}_float32"]["step_seconds"] for name in ("ResNet50V2", "ResNet152V2")}


def utilisation():
    """Lines: how busy the GPU was during ResNet50V2's training steps, and how much it computed."""
    found = samples.read(recorded.HERE / "h200" / "ResNet50V2.rank0.samples").samples
    busy = [each["gpus"][0]["utilisation"] for each in found if each["images"]][1:]
    rate = recorded.h200()["sampler"]["ResNet50V2"]["images_per_second"]
    done = 6 * counts.of("ResNet50V2", 224, 10).multiply_adds * rate
    return (
        f"{WHERE}, ResNet50V2, 224x224, batch 128:\n"
        f"GPU utilisation {median(busy):.0%} (median of {len(busy)} samples); {rate:,.0f} images/s; "
        f"{done / 1e12:.0f} of the {PEAK / 1e12:.0f} TFLOP/s that its data sheet states for TF32: {done / PEAK:.0%}"
    )


def fetching():
    """Rows: the time of a step whose loss is fetched, and of one whose loss is not, and their ratio."""
    rows = []
    for name, size in (("SmallCNN", "batch 32, 32x32"), ("ResNet50V2", "batch 128, 224x224")):
        found = recorded.h200()["fetch"][name]
        ratios = [(row["ratio"], row["interval"]) for row in found["ratios"]]
        means = {key: 1e3 * fmean(seconds) for key, seconds in found["seconds"].items()}
        for key, by, ratio in zip(("loop", "fit"), ("a loop", "fit"), ratios, strict=True):
            row = {"network": f"{name}, {size}", "trained by": by, "step without a fetch (ms)": means[key]}
            rows.append(row | {"with a fetch (ms)": means[f"{key}, fetched"], "with / without": _said(*ratio)})
    return rows


def precisions():
    """Rows: a training step of ResNet50V2 (batch 128, 224x224) in each precision, against float32 as JAX computes it.

    The first round is left out: all networks but one were slower in it.
    """
    seconds = {name: of[1:] for name, of in recorded.h200()["precision"]["ResNet50V2"]["seconds"].items()}
    names = {"float32, exact": "float32 (products in float32)", "float32": "float32 (products in TF32)"}
    rows = []
    for name in (*names, "mixed_bfloat16", "mixed_float16"):
        ratio = intervals.paired(seconds["float32"], seconds[name])
        gain = _said(ratio.value, ratio.interval) if name != "float32" else "1"
        row = {"precision": names.get(name, name), "step (ms)": 1e3 * fmean(seconds[name])}
        rows.append(row | {"times as fast as with TF32": gain})
    return rows


def same_steps():
    """Lines: how far the weights are apart after the 20 steps of notebook 27."""
    found = recorded.h200()["same_steps"]["float32"]
    lines = {"GPU and CPU": "gpu_from_cpu", "GPU and CPU, products in full float32": "gpu_exact_from_cpu"}
    lines |= {"orders of the images in a batch, all on the GPU": "orders_on_gpu"}
    lines |= {"orders of the images in a batch, all on the CPU": "orders_on_cpu"}
    head = f"{WHERE}. Largest difference of a weight after the 20 steps between"
    return "\n".join([head, *(f"{found[key]:.1e}  {name}" for name, key in lines.items())])


def _said(value, interval):
    return "{:.4g} ({:.4g} to {:.4g})".format(value, *interval)
