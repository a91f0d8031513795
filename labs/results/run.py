"""A run: one training, with its repeats. What its record runs/<name>.json or its log says, and what its study adds.

Nobody else knows the form of the record. Rank 0 writes it, atomically. Where rank 0 has ended before the training,
another rank closes it (labs.training.recorder), or the job (labs.jobs.job), by its state: failed or stopped.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SkipValidation, ValidationError
from pydantic_core import from_json
from typing_extensions import TypedDict  # pydantic refuses that of typing before Python 3.12

from labs import devices, files, schema
from labs.errors import UseError
from labs.printed import grouped, several
from labs.results.failures import Failure
from labs.results.intervals import UNKNOWN, Estimate

VERSION = 2
Count = Annotated[int, Field(ge=0, lt=2**53)]  # larger ones are not exact as floats, and nothing here is that many
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Share = Annotated[float, Field(ge=0, le=1)]
Metric = Annotated[float, Field(allow_inf_nan=True)]  # the loss of a training that diverged
Measured = Annotated[Estimate, SkipValidation, Field(exclude=True)]


class RecordError(UseError):
    """A run record cannot be read; the message names the file and the field, and says what to do."""


class NoRecordError(RecordError):
    """The file holds JSON, but no run record."""


class _Strict(BaseModel):
    """Numbers are finite, and nothing is converted: "2" is refused as a number. What a newer kit has added is kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, ser_json_inf_nan="constants")


# Two runs may be divided if they agree in these. What else is asked for follows the number of workers, or says how much
# was trained and from which seed: a time per epoch does not depend on it.
SHARED = ("model", "dataset", "image_size", "precision")


class Configuration(_Strict):
    """How a training was run; None if not known. `images` is what was asked for, None for the whole data set.

    global_batch, local_batch: images per step of all workers, and of one; image_size: pixels per side; repeats:
    trainings, each from new weights, of epochs_per_repeat.
    """

    model: str | None = None
    strategy: str | None = None
    workers: Count | None = None
    nodes: Count | None = None
    global_batch: Count | None = None
    local_batch: Count | None = None
    learning_rate: float | None = None
    dataset: str | None = None
    images: Count | None = None
    image_size: Count | None = None
    precision: str | None = None
    seed: int | None = None
    repeats: Count | None = None
    epochs_per_repeat: Count | None = None

    def comparable(self, baseline: "Configuration") -> bool:
        """Whether dividing this run by `baseline` is scaling: equal but for the workers, and what follows them.

        A baseline of strategy "single", a single worker that exchanges nothing, serves every strategy.
        """
        same = all(getattr(self, name) == getattr(baseline, name) for name in SHARED)
        return same and baseline.strategy in (self.strategy, "single")

    def fulfils(self, wanted: "Configuration") -> bool:
        """Whether this run shows all that was set in `wanted`."""
        return all(getattr(self, name, None) == getattr(wanted, name) for name in wanted.model_fields_set)


class Epoch(_Strict):
    """One finished epoch of one repeat (both counted from 0): seconds, images processed, and each step's seconds.

    resolution: width of the rounding of `seconds` in a log, 0 in a record. The steps hold no validation. Where
    trainings took turns: the round (from 1; None for warm-up), the place in its order (from 0), and the share of the
    node's cores that other programs took meanwhile (None if not known).
    """

    repeat: Count = 0
    epoch: Count = 0
    round: Count | None = None
    order: Count | None = None
    others: Share | None = None
    seconds: Seconds
    images: Count | None = None
    step_seconds: list[Seconds] = []
    metrics: dict[str, Metric] = {}
    resolution: Seconds = Field(default=0.0, exclude=True)


class Machine(TypedDict, total=False):
    """What labs.devices.machine says; more keys than the named ones."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]
    cpu: str | None
    gpus: list[str] | None


class Run(_Strict):
    """One configuration and its epochs, where, when and with what it was made. What is not known is None.

    kind: "measured", or "recorded" of one that came with the kit or is known from a log only (what is "simulated" is no
    run); observed: what the recorder saw of optimizer and network (labs.training.observed); study: what the records of
    trainings have in common that took turns; order_seed: of the order in their rounds (labs.jobs.turns.orders; None
    with a study: the order alternated); script_sha256: of the program's file, as it was when the training began; steps:
    of an epoch; dataset_images: in the data set; oversubscribed: see labs.devices; weights: what
    labs.ranks.require_same_weights found at the end of a training with Horovod.

    Not in the record: source, the file's name; index, from 1, of the runs in a log; folder of the file; failure; notes
    for the reader. What follows from other runs is there once labs.results.metrics.measure has seen them together
    (`labs.results.load` has): the baseline, "weak", "strong" or "other" scaling, and the Estimates; of loss and
    accuracy also the mean over repeats after each epoch (None: not a number).
    """

    version: Literal[2] = VERSION
    name: str | None = None
    kind: str = "measured"
    state: Literal["running", "finished", "failed", "stopped"] = "finished"
    configuration: Configuration = Field(default_factory=Configuration)
    steps: Count | None = None
    dataset_images: Count | None = None
    observed: dict[str, Any] = {}
    oversubscribed: bool | None = None
    study: str | None = None
    order_seed: Count | None = None
    epochs: list[Epoch] = []
    machine: Machine = {}
    versions: dict[str, str | None] = {}
    command: list[str] = []
    script_sha256: str | None = None
    started: str | None = None
    finished: str | None = None
    job_id: str | None = None
    weights: dict[str, Any] | None = None

    source: str = Field(default="run", exclude=True)
    index: int = Field(default=1, exclude=True)
    folder: Path | None = Field(default=None, exclude=True)
    failure: Annotated[Failure | None, SkipValidation] = Field(default=None, exclude=True)
    notes: list[str] = Field(default=[], exclude=True)
    baseline: Annotated["Run | None", SkipValidation] = Field(default=None, exclude=True, repr=False)
    scaling: str | None = Field(default=None, exclude=True)
    epoch_seconds: Measured = UNKNOWN
    images_per_second: Measured = UNKNOWN
    speedup: Measured = UNKNOWN
    efficiency: Measured = UNKNOWN
    loss: list[float | None] = Field(default=[], exclude=True)
    final_loss: Measured = UNKNOWN
    accuracy: list[float | None] = Field(default=[], exclude=True)
    final_accuracy: Measured = UNKNOWN

    def __str__(self):
        workers = "?" if self.workers is None else self.workers
        return f"{self.model or 'unknown model'} on {several(workers, 'worker')} ({self.source}, run {self.index})"

    @property
    def model(self) -> str | None:
        return self.configuration.model

    @property
    def strategy(self) -> str | None:
        return self.configuration.strategy

    @property
    def workers(self) -> int | None:
        return self.configuration.workers

    @property
    def global_batch(self) -> int | None:
        """Images of a step, over all workers."""
        return self.configuration.global_batch

    @property
    def hardware(self) -> str | None:
        """The name of what computed."""
        return devices.hardware(dict(self.machine))

    @property
    def truncated(self) -> bool:
        """Whether the training is not known to have come to its end."""
        return self.state != "finished"

    @property
    def repeats(self) -> list[list[Epoch]]:
        """The epochs of each repeat, in order."""
        ordered = sorted(self.epochs, key=lambda epoch: (epoch.repeat, epoch.epoch))
        return list(grouped((epoch.repeat, epoch) for epoch in ordered).values())

    @property
    def steady(self) -> list[list[Epoch]]:
        """The repeats without their first epoch, which is warm-up; those that had no other are left out."""
        return [repeat[1:] for repeat in self.repeats if len(repeat) > 1]

    @property
    def rounds(self) -> dict[int, float]:
        """Seconds of the epoch of each round, {number: seconds}, where trainings took turns; else empty."""
        return {e.round: e.seconds for repeat in self.steady for e in repeat if e.round is not None}

    @property
    def others(self) -> dict[int, float]:
        """The share of the cores that other programs took in each round, {number: share}, where it is known."""
        epochs = (e for repeat in self.steady for e in repeat)
        return {e.round: e.others for e in epochs if e.round is not None and e.others is not None}

    def of_rounds(self, numbers: list[int]) -> Self:
        """This run with its warm-up and these rounds only."""
        kept = [epoch for epoch in self.epochs if epoch.round is None or epoch.round in numbers]
        return self.model_copy(update={"epochs": kept})


_OWN = {name for name, field in Run.model_fields.items() if field.exclude}  # which no record has


def run_name(model: str, strategy: str, workers: int, global_batch: int) -> str:
    """The name of a run that says what is trained."""
    return f"{model}_{strategy}_w{workers}_b{global_batch}"


def load_record(path: str | Path) -> Run:
    """The run that a record file (runs/<name>.json) describes.

    Raises RecordError if the file cannot be read or holds what cannot be true (NoRecordError: something else).
    """
    try:
        content = files.read(path)
    except OSError as problem:
        reason = problem.strerror or problem
        raise RecordError(f"{path}: the run record cannot be read ({reason}). Did the run begin? Repeat it.") from None
    try:
        return of_json(from_json(content), path)
    except ValueError as problem:
        kind = NoRecordError if content.startswith(b"[") else RecordError  # a timeline of Horovod has no end
        raise kind(f"{path}: cannot be read as a run record ({problem}). If it is one, make the run again.") from None


def of_json(data: object, where: str | Path) -> Run:
    """The run that the parsed JSON of a record describes; where: its file, which the errors of `load_record` name."""
    if not isinstance(data, dict) or "epochs" not in data:
        raise NoRecordError(f"{where}: not a run record. Give the .json that a training left in its folder of runs.")
    if (version := data.get("version")) != VERSION:
        raise RecordError(
            f"{where}: run record of version {version!r:.20}, this kit reads version {VERSION}. "
            "Update the kit, or make the run again."
        )
    if missing := [name for name in ("configuration", "state") if name not in data]:
        raise RecordError(f"{where}: broken run record: {missing[0]} is missing. Make the run again.")
    place = {"source": Path(where).name, "folder": Path(where).resolve().parent}
    try:
        run = Run.model_validate({key: value for key, value in data.items() if key not in _OWN} | place)
    except ValidationError as problem:
        mistake = schema.first_mistake(problem)
        raise RecordError(f"{where}: broken run record: {mistake} Make the run again.") from None
    if run.truncated:
        run.notes.append(f"the record says that this run is {run.state}")
    return run


def save_record(path: str | Path, run: Run) -> None:
    """Write a record atomically: whoever reads `path` sees the old record or the new one, never half of one.

    Raises files.WriteError (unwritable folder, full disk); an older record then stays as it was.
    """
    files.write(path, run.model_dump_json(indent=1))
