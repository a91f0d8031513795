"""What of a run record goes into the records of gpu_proof."""

from pathlib import Path
from statistics import median

MOST = 2000  # step times that are kept of an epoch


def training(path):
    """{model, precision, strategy, workers, batch, state, epochs: [{seconds, images, step_seconds, metrics}],
    images_per_second (median of the epochs after the first), step_seconds (likewise)}; None without a record."""
    from labs.errors import LabsError
    from labs.results.run import load_record

    if not Path(path).exists():
        return None
    try:
        found = load_record(Path(path))
    except LabsError:
        return None
    has = found.configuration
    told = {
        key: getattr(has, key) for key in ("model", "precision", "strategy", "workers", "global_batch", "image_size")
    }
    epochs = [
        {"seconds": e.seconds, "images": e.images, "step_seconds": e.step_seconds[:MOST], "metrics": e.metrics}
        for e in found.epochs
    ]
    later = epochs[1:]
    rate = median(e["images"] / e["seconds"] for e in later) if later else None
    step = median(e["seconds"] / len(e["step_seconds"]) for e in later if e["step_seconds"]) if later else None
    told |= {"state": found.state, "images_per_second": rate, "step_seconds": step}
    return told | {"machine": found.machine, "versions": found.versions, "started": found.started, "epochs": epochs}
