"""Picture of notebook 07: which classes are in which batch of which worker.

The matplotlib Figure has its text alternative in `figure.alt`, as those of labs.show.plots have. The workers are
simulated, one after the other, with the real labels.
"""

import numpy as np
from matplotlib.colors import PowerNorm

from labs.show.figure import finished, new_figure
from lessons import sharding


def _panel(axis, counts, batch, title):
    """Heat map of counts (workers, batches, classes), a gap between the workers; returns the image. Small counts stay
    visible."""
    workers, batches, classes = counts.shape
    wide = np.full((classes, workers, batches + 1), np.nan)
    wide[:, :, :batches] = counts.transpose(2, 0, 1)
    look = {"cmap": "cividis", "norm": PowerNorm(0.5, 0, batch), "interpolation": "nearest"}
    image = axis.imshow(wide.reshape(classes, -1)[:, :-1], **look, aspect="auto", origin="lower")
    axis.grid(False)
    axis.set(ylabel="class", yticks=range(0, classes, 2))
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    middles = [worker * (batches + 1) + (batches - 1) / 2 for worker in range(workers)]
    axis.set_xticks(middles, [f"worker {worker}" for worker in range(workers)])
    axis.set_xlabel(f"batches of {batch}, in the order in which they are read")
    axis.set_title(title, fontsize=9)
    return image


def _words(title, counts):
    """A heat map in words: classes per worker and per batch."""
    per_worker, filled = (counts.sum(1) > 0).sum(-1), counts.sum(-1) > 0
    return (
        f"{title}: classes seen by each worker {', '.join(map(str, per_worker))}; "
        f"{(counts > 0).sum(-1)[filled].mean():.1f} classes in a batch on average."
    )


def balance(labels, cases, batch):
    """Class counts per batch and worker, one heat map for each case, two beside each other.

    labels: (N,) class of each sample, 0 to 9; cases: {title: list of sample numbers for each worker}; batch: samples
    per step and worker.
    """
    rows = -(-len(cases) // 2)
    figure, axes = new_figure(2, width=5.2, height=2.3 + 0.4 / rows, rows=rows)
    counts = {title: sharding.class_counts(share, labels, batch, 10) for title, share in cases.items()}
    images = [_panel(axis, count, batch, title) for axis, (title, count) in zip(axes, counts.items(), strict=False)]
    for axis in axes[len(cases) :]:
        axis.set_visible(False)
    figure.colorbar(images[0], ax=list(axes), label="samples of this class in the batch", shrink=0.8)
    return finished(figure, " ".join(_words(title, count) for title, count in counts.items()), "simulated")
