"""Sizes of a study by name: for tests, for a laptop, as on the course's cluster; and the strategies of one."""

import dataclasses
import os

from labs.errors import UseError

STRATEGIES = ("single", "mirrored", "horovod", "jax")


@dataclasses.dataclass(frozen=True)
class Preset:
    """Sizes of a study. local_batch: images per step and worker, so more workers see larger global batches
    (weak scaling). The first epoch of each repeat is warm-up; the others are the rounds of a study whose trainings take
    turns (labs.jobs.Turns). images: None means all of the data set; image_size: pixels per side. repeats: trainings,
    each from new weights.
    memory: bytes for the search of the largest batch; None means all of the device's."""

    name: str
    models: tuple[str, ...]
    workers: tuple[int, ...]
    dataset: str
    images: int | None
    image_size: int
    local_batch: int
    epochs: int
    repeats: int
    memory: int | None = None

    def arguments(self) -> list[str]:
        """The sizes as options of a training script (`training.arguments` and --epochs)."""
        names = ("dataset", "image_size", "epochs", "repeats", *(["images"] if self.images else []))
        return [word for name in names for word in (f"--{name}", str(getattr(self, name)))]


_PRESETS = (
    # name, models, workers, dataset, images, image_size, local_batch, epochs, repeats, memory
    Preset("test", ("SmallCNN",), (1, 2), "digits", 128, 32, 32, 4, 1, 2**27),
    Preset("laptop", ("ResNet50V2",), (1, 2), "digits", 512, 32, 64, 7, 1, 2**30),
    # CTE-POWER's: CIFAR-10 at 128x128, 256 images per GPU
    Preset("course", ("ResNet50V2",), (1, 2, 4), "cifar10", None, 128, 256, 7, 1),
)
PRESETS = {preset.name: preset for preset in _PRESETS}


def choose(name: str | None = None) -> Preset:
    """The sizes of a study, by the name of a preset.

    Without a name $LABS_PRESET, else `course` where there are GPUs and `laptop` elsewhere. Raises UseError for an
    unknown name.
    """
    from labs import devices  # which `labs --help` does without

    name = name or os.environ.get("LABS_PRESET") or ("course" if devices.gpus() else "laptop")
    if name not in PRESETS:
        raise UseError(f"Unknown preset {name!r}: choose one of {', '.join(PRESETS)}.")
    return PRESETS[name]
