"""Pictures of shares: which classes are in which batch of which worker, and how many samples nobody reads.

Every function returns a matplotlib Figure with its text alternative in `figure.alt`, as those of labs.show.plots do.
The workers here are simulated, one after the other, with the real labels.
"""

import numpy as np

from labs.data import shares
from labs.show.figure import COLOURS, MARKERS, new_figure, stamp


def _wide(counts):
    """Counts (workers, batches, classes) as one picture: classes x batches, a gap of NaN between the workers."""
    workers, batches, classes = counts.shape
    wide = np.full((classes, workers, batches + 1), np.nan)
    wide[:, :, :batches] = counts.transpose(2, 0, 1)
    return wide.reshape(classes, -1)[:, :-1]


def _colours(highest):
    """Colours from 0 to `highest`; small differences near 0 stay visible."""
    from matplotlib.colors import PowerNorm

    return {"cmap": "cividis", "norm": PowerNorm(0.5, 0, highest)}


def _panel(axis, values, batch, highest, image=None):
    """Heat map of values (workers, batches, classes), drawn into `image` where one is given; returns the image."""
    workers, batches, classes = values.shape
    wide = _wide(values)
    if image is None:
        image = axis.imshow(wide, **_colours(highest), aspect="auto", origin="lower", interpolation="nearest")
        axis.set(ylabel="class", yticks=range(0, classes, max(1, classes // 5)))
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    else:
        extent = (-0.5, wide.shape[1] - 0.5, -0.5, classes - 0.5)
        image.set(data=wide, extent=extent)
        axis.set(xlim=extent[:2])
    middles = [worker * (batches + 1) + (batches - 1) / 2 for worker in range(workers)]
    axis.set_xticks(middles, [f"worker {worker}" for worker in range(workers)])
    axis.set_xlabel(f"batches of {batch}, in the order in which they are read")
    return image


def _far(counts, labels):
    """Mean distance from the mix of all samples: (of what a worker reads in an epoch, of a batch)."""
    return np.nanmean(shares.distance(counts.sum(1), labels)), np.nanmean(shares.distance(counts, labels))


def _words(title, counts, labels):
    """A heat map in words: classes per worker and per batch, and their distance from the data set's mix."""
    per_worker, filled = (counts.sum(1) > 0).sum(-1), counts.sum(-1) > 0
    far = _far(counts, labels)
    return (
        f"{title}: classes seen by each worker {', '.join(map(str, per_worker))}; "
        f"{(counts > 0).sum(-1)[filled].mean():.1f} classes in a batch on average. Distance from the class "
        f"mix of the whole data set: {far[0]:.2f} for workers, {far[1]:.2f} for batches."
    )


def balance(labels, cases, *, batch, classes=10):
    """Class counts per batch and worker, one heat map for each case, two beside each other.

    labels: (N,) class of each sample; cases: {title: list of sample numbers for each worker}; batch: samples per step
    and worker. Above each map: how far shares and batches are from the mix of all samples (`sharding.distance`).
    """
    from matplotlib.figure import Figure

    columns = min(2, len(cases))
    rows = -(-len(cases) // columns)
    figure = Figure(figsize=(5.2 * columns, 2.3 * rows + 0.4), dpi=100, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    counts = {title: shares.class_counts(share, labels, batch, classes) for title, share in cases.items()}
    for axis, (title, count) in zip(axes, counts.items(), strict=False):
        image = _panel(axis, count, batch, batch)
        far = _far(count, labels)
        axis.set_title(f"{title}\ndistance from the mix of all: workers {far[0]:.2f}, batches {far[1]:.2f}", fontsize=9)
    for axis in axes[len(cases) :]:
        axis.set_visible(False)
    figure.colorbar(image, ax=list(axes), label="samples of this class in the batch", shrink=0.8)
    stamp(figure, "simulated")
    figure.alt = " ".join(_words(title, count, labels) for title, count in counts.items())
    return figure


def _bar(height, span, label):
    """Colour bar from 0 to 1 as RGBA pixels (at 90 dpi): drawn once, it costs nothing when the picture changes.

    height: inches; span: (bottom, height) of the bar as shares of it.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.78, height), dpi=90)
    bar = figure.colorbar(ScalarMappable(**_colours(1)), cax=figure.add_axes((0.05, span[0], 0.16, span[1])))
    bar.set_label(label)
    bar.set_ticks([0, 0.1, 0.25, 0.5, 1], minor=False)
    bar.ax.minorticks_off()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.array(canvas.buffer_rgba())


def explorer(labels, *, classes=10):
    """A function draw(workers, batch, order, source) for labs.show.widgets.explore: one heat map, always one Figure.

    labels: (N,) class of each sample. order: see sharding.ORDERS; source: "sorted by class" or "shuffled once".
    """
    from matplotlib.figure import Figure

    sources = {"sorted by class": np.sort(labels), "shuffled once": np.random.default_rng(0).permutation(labels)}
    figure = Figure(figsize=(8, 2.9), dpi=90)  # no layout engine: it takes longer than the drawing
    axis = figure.add_axes((0.07, 0.2, 0.82, 0.62))
    image = _panel(axis, np.zeros((1, 1, classes)), 1, 1)
    figure.figimage(_bar(2.9, (0.2, 0.62), "share of the batch"), xo=0.9 * 8 * 90, origin="upper")
    stamp(figure, "simulated")

    def draw(workers, batch, order, source):
        here = sources[source]
        share = shares.shares(len(here), workers, order)
        counts = shares.class_counts(share, here, batch, classes)
        _panel(axis, counts / batch, batch, 1, image)
        far, found = _far(counts, here), shares.coverage(share, len(here))
        away = f"distance from the mix of all: workers {far[0]:.2f}, batches {far[1]:.2f}"
        unread = f"samples never read: {len(found.unseen)} of {len(here)}"
        axis.set_title(f"{order}; source {source}\n{away}; {unread}", fontsize=9)
        title = f"{order}, source {source}, batches of {batch}"
        figure.alt = f"{_words(title, counts, here)} {shares.sentence(found, len(here))}"
        return figure

    return draw


def unseen(counted, *, title="shuffle with own seeds, then shard"):
    """Share of samples that nobody reads over the number of workers: counted, and the formula (1 - 1/K)**K.

    counted: {workers: list of shares, one for each epoch}, each between 0 and 1.
    """
    figure, (axis,) = new_figure(1, width=6.0)
    workers = sorted(counted)
    fine = np.arange(1, max(workers) + 1)
    axis.plot(fine, [shares.expected_unseen(k) for k in fine], "--", color="0.4", label="$(1-1/K)^K$")
    axis.axhline(np.exp(-1), color=COLOURS[1], ls=":", label="1/e")
    label = "counted, a point for each epoch"
    points = np.array([(k, share) for k in workers for share in counted[k]])
    axis.plot(*points.T, MARKERS[0], color=COLOURS[0], ms=5, alpha=0.6, label=label)
    axis.set(xlabel="workers K", ylabel="share of samples never read\nin an epoch", title=title)
    axis.set(ylim=(0, 0.45), xticks=workers)
    axis.legend(fontsize=9, loc="lower right")
    stamp(figure, "simulated")
    values = ", ".join(f"{np.mean(counted[k]):.3f} for {k}" for k in workers)
    formula = f"formula (1 - 1/K)^K, which tends to 1/e = {np.exp(-1):.3f}"
    figure.alt = (
        f"Share of samples that nobody reads in an epoch, by workers: counted {values}; beside it the {formula}."
    )
    return figure


def epoch_times(records):
    """Seconds of the steady epochs over the number of ranks, a curve for each script, and the ideal line.

    records: {name: list of run records, by ranks}. The first epoch of each repeat is a warm-up and is left out.
    """
    figure, (axis,) = new_figure(1, width=6.0)
    sentences, ticks, first = [], set(), None
    for (name, runs), colour, marker in zip(records.items(), COLOURS, MARKERS, strict=False):
        workers = [run.workers for run in runs]
        seconds = [[e.seconds for repeat in run.steady for e in repeat] for run in runs]
        means = [np.mean(values) for values in seconds]
        axis.plot(workers, means, color=colour, marker=marker, ms=7, label=f"{name}, mean")
        for worker, values in zip(workers, seconds, strict=True):
            axis.plot([worker] * len(values), values, "_", color=colour, ms=14)
        told = ", ".join(f"{mean:.2f} on {count}" for mean, count in zip(means, workers, strict=True))
        sentences.append(f"Seconds per epoch of {name}: {told}.")
        ticks, first = ticks | set(workers), first or means[0] * workers[0]
    ticks = sorted(ticks)
    axis.plot(
        ticks,
        [first / worker for worker in ticks],
        "--",
        color="0.5",
        label=f"ideal: T(1) of {next(iter(records))} / K",
    )
    axis.set(xlabel="ranks K", ylabel="seconds per epoch", xticks=ticks, title="epoch time")
    axis.set_ylim(0, 1.3 * axis.get_ylim()[1])
    axis.legend(fontsize=9, ncols=2, loc="upper center")
    stamp(figure, "measured")
    figure.alt = " ".join(sentences) + " Short lines mark the individual epochs; the first one is left out."
    return figure
