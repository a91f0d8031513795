"""Answers to the self-checks of 08_resnet152_scaling: right ones, and wrong ones that students give."""

from functools import partial
from math import exp, log, sqrt
from statistics import fmean, pvariance, variance
from types import SimpleNamespace

from making import changed, outside_scope, swapped, tried_out

script = partial(swapped, "scripts/ResNet152V2.py")
job = partial(swapped, "slurm/local/ResNet152V2.sh")
SMALL = SimpleNamespace(multiply_adds=71e6, gradient_bytes=94e6, tensors=174, activation_bytes=1.6e6)
LARGE = SimpleNamespace(multiply_adds=222.5e6, gradient_bytes=232e6, tensors=514, activation_bytes=4.0e6)
R_OPS, R_BYTES = 222.5 / 71, 232 / 94
FIRST, SECOND = {"largest": 512, "fails": 1024}, {"largest": 256, "fails": 512}
STEPS = {1: 0.9, 2: 1.0}
ROWS = [
    {
        "model": model,
        "workers": n,
        "epoch_seconds": t,
        "images_per_second": 512 / t,
        "speedup": one / t,
        "failure": None,
        "kind": "measured",
        "source": f"{model}_w{n}.json",
        "truncated": False,
    }
    for model, one, two in (("ResNet50V2", 7.0, 4.0), ("ResNet152V2", 14.0, 8.6))
    for n, t in ((1, one), (2, two))
]
# Both networks with the same speedup: their curves lie on each other.
ALIKE = [*ROWS[:3], ROWS[3] | {"epoch_seconds": 8.001, "images_per_second": 512 / 8.001, "speedup": 14.0 / 8.001}]


def figure(
    panels=3,
    label=True,
    legend=True,
    names=("ResNet50V2", "ResNet152V2"),
    speedup=lambda row: row["speedup"],
    reverse=False,
    bars=False,
    swap=False,
    labels=("epoch time (s)", "images per second", "speedup"),
    rows=ROWS,
):
    from matplotlib.figure import Figure

    drawn = Figure()
    keys = {"epoch_seconds": None, "images_per_second": None, "speedup": speedup}
    for axis, (key, value), said in zip(
        drawn.subplots(1, panels, squeeze=False)[0], keys.items(), labels[:panels], strict=False
    ):
        for place, name in enumerate(names):
            mine = [row for row in rows if row["model"] == name][:: -1 if reverse else 1]
            x, y = [row["workers"] for row in mine], [value(row) if value else row[key] for row in mine]
            shown = names[place - 1] if swap else name
            if bars:
                axis.bar([each + 0.4 * place - 0.2 for each in x], y, width=0.4, label=shown)
            else:
                axis.plot(x, y, label=shown)
        if label:
            axis.set(xlabel="workers", ylabel=said)
        if legend:
            axis.legend()
    return drawn


def kits_figure():
    from labs.show import plots

    return plots.scaling([row | {"strategy": "mirrored"} for row in ROWS])


def contrast(
    signs=(-1, 1, 1, -1), error=lambda d: sqrt(sum(variance(x) / len(x) for x in d)), centre=float, paired=True
):
    def function(*times):
        logs = [[log(t) for t in seconds] for seconds in times]
        total = sum(sign * fmean(x) for sign, x in zip(signs, logs, strict=True))
        within = [[a - b for a, b in zip(*pair, strict=True)] for pair in (logs[:2], logs[2:])]
        return centre(total), error(within if paired else logs)

    return (function,)


def of_means(*times):
    """Answer to 08.16: the logarithm of the ratio of mean times."""
    small_1, small_2, large_1, large_2 = map(fmean, times)
    return log(large_1 / large_2 / (small_1 / small_2)), contrast()[0](*times)[1]


def of_mean_ratios(*times):
    """Answer to 08.16: the logarithm of the ratio of mean ratios."""
    small, large = (fmean(a / b for a, b in zip(*pair, strict=True)) for pair in (times[:2], times[2:]))
    return log(large / small), contrast()[0](*times)[1]


def answer(low, high, matters):
    if low > 1 or high < 1:
        return "yes"
    return "no" if low >= 1 / (1 + matters) and high <= 1 + matters else "can't tell"


def carried(expected, one=0.80, other=0.88, known=0.65):
    """Answer to 08.12, and the three efficiencies that it is made of."""
    return expected, {"ResNet50V2": one, "ResNet152V2": other}, {"ResNet50V2": known}


FIT = ", callbacks=[recorder]"
ANSWERS = {
    "08.3": dict(
        right=[(R_OPS, R_BYTES, SMALL, LARGE), (3.1, 2.5, SMALL, LARGE), ("3.13", "2.47", SMALL, LARGE)],
        wrong=[
            (R_BYTES, R_OPS, SMALL, LARGE),
            (1 / R_OPS, 1 / R_BYTES, SMALL, LARGE),
            (R_OPS, 514 / 174, SMALL, LARGE),
            (R_OPS, 2.55, SMALL, LARGE),
            (2.0, R_BYTES, SMALL, LARGE),
            (R_OPS, 2.0, SMALL, LARGE),
        ],
        secret=r"3\.1\d|2\.4\d",
        same=[(3, 5)],  # the second ratio is another one
    ),
    "08.4": dict(
        right=[
            (lambda f, b: f.gradient_bytes / (b * f.multiply_adds),),
            (lambda facts, batch: facts.gradient_bytes / facts.multiply_adds / batch,),
        ],
        wrong=[
            (lambda f, b: f.gradient_bytes / f.multiply_adds,),
            (lambda f, b: b * f.gradient_bytes / f.multiply_adds,),
            (lambda f, b: b * f.multiply_adds / f.gradient_bytes,),
            (lambda f, b: f.gradient_bytes / (3 * b * f.multiply_adds),),
            (lambda f, b: 1.0,),
            (lambda f, b: f.gradient_bytes // (b * f.multiply_adds),),
        ],
        secret=r"\b15\b|\b7\.5\b",
    ),
    "T7": dict(
        right=[script(), script(("0.01 * args.n_gpus", "0.01 * strategy.num_replicas_in_sync"))],
        wrong=[
            script(("tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()")),
            script(("MirroredStrategy(devices=workers)", "MirroredStrategy()")),
            script(("0.01 * args.n_gpus", "0.01")),
            script(("keras.applications.ResNet152V2(", "keras.applications.ResNet50V2(")),
            script(("keras.applications.ResNet152V2(", "keras.applications.ResNet152(")),
            outside_scope("scripts/ResNet152V2.py"),
            script(("weights=None", 'weights="imagenet"')),
            script(("classes=len(dataset.classes),", "")),
            script(('f"Model ResNet152V2 {args', 'f"Model ResNet50V2 {args')),
            script(('print(f"Model ResNet152V2 {args.n_gpus} workers")', "")),
            script(('model="ResNet152V2"', 'model="ResNet50V2"')),
            script(('strategy="mirrored"', 'strategy="single"')),
            script((FIT, "")),
            script(("verbose=2", "verbose=1")),
            script(("model.fit(", "model.evaluate(")),
        ],
        secret=r"0\.04\b|devices=workers",
    ),
    "08.9": dict(
        right=[(1.0, 4.0, FIRST, SECOND), (512 / 512, 1024 / 256, FIRST, SECOND)],
        wrong=[
            (2.0, 2.0, FIRST, SECOND),
            (4.0, 1.0, FIRST, SECOND),
            (0.25, 1.0, FIRST, SECOND),
            (1.0, 2.0, FIRST, SECOND),
            (1.0, 4.0, FIRST, SECOND | {"fails": None}),
        ],
        secret=r"\b4\.0|\b512\b|\b1024\b",
    ),
    "08.16": dict(
        right=[contrast()],
        wrong=[
            (of_means,),
            (of_mean_ratios,),
            contrast((1, -1, -1, 1)),
            contrast((1, -1, 1, -1)),
            contrast((-1, -1, 1, 1)),
            contrast(centre=exp),
            contrast((1, 1, 1, 1)),
            contrast(error=lambda d: sum(variance(x) / len(x) for x in d)),
            contrast(error=lambda d: sqrt(sum(map(variance, d)))),
            contrast(error=lambda d: sum(sqrt(variance(x) / len(x)) for x in d)),
            contrast(error=lambda d: sqrt(abs(variance(d[1]) / len(d[1]) - variance(d[0]) / len(d[0])))),
            contrast(paired=False),
            contrast(error=lambda d: sqrt(sum(pvariance(x) / len(x) for x in d))),
            contrast(error=lambda d: 1.0),
            contrast(error=lambda d: sqrt(sum(map(variance, d)) / len(d[0]))),
            contrast(error=lambda d: sqrt(sum(map(variance, d)) / len(d[1]))),
        ],
        secret=None,
        same=[(14, 15)],  # one number of rounds for both networks
    ),
    "08.17": dict(
        right=[(answer,), (lambda *given: answer(*given).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),)],
        wrong=[
            (lambda low, high, m: "yes" if low > 1 or high < 1 else "no",),
            (lambda low, high, m: "yes" if low > 1 or high < 1 else "can't tell",),
            (lambda low, high, m: "can't tell" if high < 1 else answer(low, high, m),),
            (lambda low, high, m: answer(low, high, 0.05),),
            (lambda low, high, m: "no" if low < 1 < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: "no" if 1 < low < high <= 1 + m else answer(low, high, m),),
            (lambda low, high, m: answer(low, high, m) == "yes",),
            (lambda low, high, m: "no" if 1 - m <= low < 1 < high <= 1 + m else answer(low, high, m),),
        ],
        secret=None,
    ),
    "08.10": dict(
        right=[
            (value, STEPS, 1.9, SMALL, LARGE) for value in (1.9 + 0.1 * R_BYTES, 2.15, 2.147, 1.9 + 0.1 * 2.5, "2.14")
        ],
        wrong=[
            (value, STEPS, 1.9, SMALL, LARGE)
            for value in (1.9 + 0.1 * R_OPS, 2.0, 1.9, 0.95, 1.9 / 0.9, 0.1 * R_BYTES, 1.9 + R_BYTES, 7.0)
        ],
        secret=r"2\.14",
    ),
    "08.11": dict(
        right=[(ROWS,)],
        wrong=[
            ("runs",),
            (ROWS[:2],),
            (changed(ROWS, 2, kind="recorded"),),
            (changed(ROWS, 3, truncated=True),),
            (ROWS[1:],),
            (ROWS[:3],),
        ],
        secret=None,
    ),
    "08.12": dict(
        right=[
            carried(0.65 * 0.88 / 0.80),
            carried(0.65 / 0.80 * 0.88),
            carried(0.715),
            carried(0.71, known=0.6452),  # rounded
            carried("0.715"),
            carried(0.65, other=0.80),  # no difference with MirroredStrategy either
        ],
        wrong=[
            carried(0.88),
            carried(0.65),
            carried(0.65 * 0.80 / 0.88),
            carried(0.88 * 0.80 / 0.65),
            carried(0.65 + 0.88 - 0.80),
            carried(0.88 / 0.80),
            carried(0.65 / 0.80),
            carried(2 * 0.715),
            carried(71.5),
            carried(0.5),
            carried(0.65, other=0.801),  # nearly no difference, and still a number that was taken over
        ],
        secret=r"0\.71",
        same=[(1, 10)],
    ),
    "08.13": dict(
        right=[job()],
        wrong=[
            job(("--gres=gpu:2", "--gres=gpu:1")),
            job(("batch=$((64 * workers))", "batch=64")),
            job(("ResNet152V2.py", "ResNet50.py")),
            job(("--time=00:30:00", "--time=00:30")),
            *tried_out(
                job,
                "batch=$((64 * workers))",
                "batch=64*workers",
                "batch=$((32 * workers))",
                "batch=$((128 * workers))",
                "batch=$((64 * SLURM_CPUS_PER_TASK))",
            ),
        ],
        secret=None,
    ),
    "08.14": dict(
        right=[
            (figure(), ROWS),
            (kits_figure(), ROWS),
            (figure(bars=True), ROWS),
            (figure(reverse=True), ROWS),
            (figure(rows=ALIKE), ALIKE),
        ],
        wrong=[
            (figure(panels=2), ROWS),
            (figure(label=False), ROWS),
            (figure(legend=False), ROWS),
            (figure(names=("ResNet152V2",)), ROWS),
            (figure(speedup=lambda row: 1 / row["speedup"]), ROWS),
            (figure(speedup=lambda row: row["speedup"] / row["workers"]), ROWS),
            (figure(swap=True), ROWS),
            (figure(swap=True, rows=ALIKE), ALIKE),
            (figure(labels=("images per second", "seconds per epoch", "speedup")), ROWS),
            (figure(labels=("epoch time", "images per second", "speedup")), ROWS),
        ],
        secret=None,
        same=[(2, 3), (6, 7)],  # no legend, or none for one of the networks; exchanged
    ),
    "08.15": dict(
        right=[(2.0, ROWS), (14.0 / 7.0, ROWS), ("2", ROWS)],
        wrong=[(0.5, ROWS), (7.0, ROWS), (8.6 / 7.0, ROWS), (14 / 8.6, ROWS), (3.13, ROWS)],
        secret=r"\b2\.0",
        same=[(2, 3)],  # both hold a run on 2 workers
    ),
    "08.19": dict(right=[("b",)], wrong=[("a",), ("c",), ("d",)], secret=r"11\.5|12\.5"),
}
