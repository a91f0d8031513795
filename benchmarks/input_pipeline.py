"""The kit's input pipeline against the usual one that resizes every image and caches the result.

    python benchmarks/input_pipeline.py [--images 20000] [--size 128] [--batch 128] [--repeats 3] [--json]

Three programs feed the same random 32x32 uint8 images, each in a process of its own, in turn (A B C A B C ...):

    usual   map(resize one image to size x size, float32), cache(), shuffle, batch, prefetch: as in published courses
    kit     labs.data.pipeline: batches of small uint8 images; the model resizes them on the worker
    resize  the kit's pipeline, then one batched resize to size x size float32 per batch, on the host: what the worker
            does in the kit, added here because the work does not vanish

Rate: images/second of the first epoch, from the first request to the end; building the pipeline (tracing, copying the
images into a tensor) is listed apart. Memory: peak resident memory (VmHWM) minus that of a process that only loads
TensorFlow and the images. Ratios are medians over the rounds; their 95 % interval is Student's t on the logarithms.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("usual", "kit", "resize")
NAMES = {
    "usual": "resize each image, `cache()`",
    "kit": "kit: small uint8 batches",
    "resize": "kit, with the batched resize",
}


def usual(dataset, size, batch):
    """The pipeline of published course programs; generous: its map runs in parallel."""
    import tensorflow as tf

    def enlarge(image, label):
        return tf.image.resize(image, (size, size)) / 255.0, label

    images = tf.data.Dataset.from_tensor_slices((dataset.images, dataset.labels))
    images = images.map(enlarge, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return images.shuffle(len(dataset.labels), seed=0).batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def kit(dataset, size, batch):
    from labs import data

    return data.pipeline(dataset, batch)


def resize(dataset, size, batch):
    import tensorflow as tf

    def enlarge(images, labels):
        return tf.image.resize(images, (size, size)) / 255.0, labels

    batches = kit(dataset, size, batch).map(enlarge, num_parallel_calls=tf.data.AUTOTUNE)
    return batches.prefetch(tf.data.AUTOTUNE)


def peak():
    """Peak resident memory of this process so far, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def child(program, images, size, batch):
    """Run one program in this process and print {build, seconds, images, peak} as JSON; "none" only loads."""
    import tensorflow as tf

    from labs import data

    dataset = data.load("synthetic", images=images)
    tf.zeros(1) + 1  # starts TensorFlow's runtime
    result = {}
    if program != "none":
        start = time.perf_counter()
        batches = {"usual": usual, "kit": kit, "resize": resize}[program](dataset, size, batch)
        built, count = time.perf_counter(), 0
        for pixels, _ in batches:
            count += pixels.shape[0]
        result = {"build": built - start, "seconds": time.perf_counter() - built, "images": count}
    print(json.dumps(result | {"peak": peak()}))


def run(program, args):
    """child(...) in a process of its own."""
    command = [sys.executable, __file__, "--child", program]
    for name in ("images", "size", "batch"):
        command += [f"--{name}", str(getattr(args, name))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"The process for {program!r} ended with {done.returncode}, perhaps for want of memory; try "
            f"fewer --images.\n{done.stderr[-2000:]}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def ratio(above, below):
    """(median, low, high) of the ratios of two lists measured in turn; the interval is t on logarithms."""
    from scipy.stats import t

    logs = [math.log(a / b) for a, b in zip(above, below, strict=True)]
    median = math.exp(statistics.median(logs))
    if len(logs) < 2:
        return median, None, None
    mean, reach = statistics.fmean(logs), t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / len(logs) ** 0.5
    return median, math.exp(mean - reach), math.exp(mean + reach)


def measure(args):
    """All rounds: {program: {rate, memory, build: one value per round, rate_ratio, memory_ratio}}."""
    bare = run("none", args)["peak"]
    rows = {name: {"rate": [], "memory": [], "build": []} for name in PROGRAMS}
    for _ in range(args.repeats):
        for name, row in rows.items():
            result = run(name, args)
            row["rate"].append(result["images"] / result["seconds"])
            row["memory"].append(max(result["peak"] - bare, 1))
            row["build"].append(result["build"])
    for row in rows.values():
        row["rate_ratio"] = ratio(row["rate"], rows["usual"]["rate"])
        row["memory_ratio"] = ratio(row["memory"], rows["usual"]["memory"])
    return rows


def table(rows):
    """The rows as Markdown."""

    def times(estimate, digits):
        middle, low, high = (None if x is None else f"{x:.{digits}f}" for x in estimate)
        return middle if low is None else f"{middle} ({low} to {high})"

    yield "| pipeline | images/s, first epoch | ratio (95 %) | peak memory, MB | ratio (95 %) | built in, s |"
    yield "|---|---|---|---|---|---|"
    for name, row in rows.items():
        rate, memory, build = (statistics.median(row[key]) for key in ("rate", "memory", "build"))
        ratios = ("1", "1") if name == "usual" else (times(row["rate_ratio"], 1), times(row["memory_ratio"], 4))
        yield f"| {NAMES[name]} | {rate:,.0f} | {ratios[0]} | {memory / 1e6:,.0f} | {ratios[1]} | {build:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=128, help="height and width in pixels after resizing")
    parser.add_argument("--batch", type=int, default=128, help="images per batch")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of all programs")
    parser.add_argument("--json", action="store_true", help="print every measurement")
    parser.add_argument("--child", choices=("none", *PROGRAMS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if min(args.size, args.batch, args.repeats) < 1 or args.images < args.batch:
        parser.error("sizes must be 1 or more, and --images at least one --batch")
    if args.child:
        return child(args.child, args.images, args.size, args.batch)
    import psutil

    need, free = args.images * args.size**2 * 12, psutil.virtual_memory().available
    if need * 1.2 > free:
        parser.error(f"the usual pipeline caches {need / 1e9:.1f} GB and {free / 1e9:.1f} are free: fewer --images")
    rows = measure(args)
    if args.json:
        print(json.dumps(vars(args) | {"cores": psutil.cpu_count(), "results": rows}, indent=1))
        return None
    print(
        f"{args.images:,} random images, 32x32 to {args.size}x{args.size}, batch {args.batch}, {psutil.cpu_count()} "
        f"cores; medians of {args.repeats} rounds, ratios to the first row\n"
    )
    print(*table(rows), sep="\n")
    return None


if __name__ == "__main__":
    main()
