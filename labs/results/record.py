"""The run record runs/<name>.json: what it holds, and how it is written, read and checked. Nobody else knows its form.

Version 2 has a part `configuration`: how the training was run. In version 1 its fields stood beside the others; such
records are still read. Fields that this kit does not know are kept.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import from_json

from labs import devices, files, schema
from labs.errors import UseError

VERSION = 2


class RecordError(UseError):
    """A run record cannot be read; the message names the file and the field, and says what to do."""


class NoRecordError(RecordError):
    """The file holds JSON, but no run record."""


class UnwritableError(RecordError):
    """A run record cannot be written."""

    code = 1


class _RecordPart(BaseModel):
    """Numbers are finite, and nothing is converted: "2" is refused as a number. What a newer kit has added is kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, ser_json_inf_nan="constants")


Count = Annotated[int, Field(ge=0, lt=2**53)]  # larger ones are not exact as floats, and nothing here is that many
Seconds = Annotated[float, Field(ge=1e-9, le=1e9)]  # of what can have been measured, and be computed with
Metric = Annotated[float, Field(allow_inf_nan=True)]  # the loss of a training that diverged

# What a field says of a run. Two runs may be divided if they agree in all fields without such a mark.
FOLLOWS_WORKERS = "follows the number of workers"
AMOUNT = "how much was trained, and from which seed: a time per epoch does not depend on it"
EXCHANGE = "how gradients are exchanged: a single worker exchanges nothing"


class Configuration(_RecordPart):
    """How a training was run; None if not known. `images` is what was asked for, None for the whole data set."""

    model: str | None = None
    strategy: Annotated[str | None, EXCHANGE] = None
    workers: Annotated[Count | None, FOLLOWS_WORKERS] = None
    nodes: Annotated[Count | None, FOLLOWS_WORKERS] = None
    global_batch: Annotated[Count | None, FOLLOWS_WORKERS] = None
    local_batch: Annotated[Count | None, FOLLOWS_WORKERS] = None
    learning_rate: Annotated[float | None, FOLLOWS_WORKERS] = None
    dataset: str | None = None
    images: Annotated[Count | None, AMOUNT] = None
    image_size: Count | None = None
    precision: str | None = None
    seed: Annotated[int | None, AMOUNT] = None
    repeats: Annotated[Count | None, AMOUNT] = None
    epochs_per_repeat: Annotated[Count | None, AMOUNT] = None

    def _without(self, *marks):
        """The values of the fields without these marks."""
        fields = type(self).model_fields.items()
        return {name: getattr(self, name) for name, field in fields if not any(m in field.metadata for m in marks)}

    @property
    def training(self) -> tuple:
        """What two trainings must have in common to be comparable, besides their strategy."""
        return tuple(self._without(FOLLOWS_WORKERS, AMOUNT, EXCHANGE).values())

    def comparable(self, baseline: "Configuration") -> bool:
        """Whether dividing this run by `baseline` is scaling: equal but for the workers, and what follows them.

        A baseline of strategy "single" serves every strategy.
        """
        if baseline.strategy not in (self.strategy, "single"):
            return False
        return self.training == baseline.training

    def same_training(self, other: "Configuration") -> bool:
        """Whether both are repeats of one training: equal but for the seed, and how much was trained."""
        return self._without(AMOUNT) == other._without(AMOUNT)

    def fulfils(self, wanted: "Configuration") -> bool:
        """Whether this run shows all that was set in `wanted`."""
        return all(getattr(self, name, None) == getattr(wanted, name) for name in wanted.model_fields_set)


class RecordedEpoch(_RecordPart):
    """One finished epoch of one repeat (both counted from 0): seconds, images processed, and each step's seconds.

    Where trainings took turns: the round (from 1; None for warm-up), the place in its order (from 0), and the share of
    the node's cores that other programs took meanwhile (None if not known).
    """

    repeat: Count = 0
    epoch: Count = 0
    round: Count | None = None
    order: Count | None = None
    others: Annotated[float, Field(ge=0, le=1)] | None = None
    seconds: Seconds
    images: Count | None = None
    step_seconds: list[Annotated[float, Field(ge=0, le=1e9)]] = []
    metrics: dict[str, Metric] = {}


class Record(_RecordPart):
    """One run: its configuration, its epochs so far, and where, when and with what it was made.

    observed: what the recorder saw of optimizer and network (labs.training.observed); study: what the records of
    trainings have in common that took turns; order_seed: of the order in their rounds (labs.jobs.turns.orders; None
    with a study: the order alternated); sharing: how they shared the machine; script_sha256: of the program's file, as
    it was when the training began.
    """

    version: Literal[2] = VERSION
    name: str | None = None
    kind: str = "measured"
    state: Literal["running", "finished", "failed", "stopped"]
    configuration: Configuration
    steps: Count | None = None
    dataset_images: Count | None = None
    observed: dict[str, Any] = {}
    oversubscribed: bool | None = None
    study: str | None = None
    order_seed: Count | None = None
    sharing: str | None = None
    epochs: list[RecordedEpoch]
    machine: dict[str, Any] = {}
    versions: dict[str, str | None] = {}
    command: list[str] = []
    script_sha256: str | None = None
    started: str | None = None
    finished: str | None = None
    job_id: str | None = None
    weights: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_version_1(cls, data):
        if not isinstance(data, dict) or data.get("version") != 1:
            return data
        data = dict(data)
        own = {name: data.pop(name) for name in Configuration.model_fields if name in data}
        if "requested_images" in data:
            own["images"] = data.pop("requested_images")
        return data | {"version": VERSION, "configuration": own}

    @field_validator("machine")
    @classmethod
    def _named(cls, machine):
        if not isinstance(machine.get("cpu"), str | None):
            raise schema.wrong("cpu", "must be a text")
        gpus = machine.get("gpus") or []
        if not isinstance(gpus, list) or not all(isinstance(gpu, str) for gpu in gpus):
            raise schema.wrong("gpus", "must be a list of texts")
        return machine

    @property
    def hardware(self) -> str | None:
        """The name of what computed."""
        return devices.hardware(self.machine)


def load(path: str | Path) -> Record:
    """The record in a file.

    Errors: RecordError if the file cannot be read or holds what cannot be true (NoRecordError: something else).
    """
    try:
        data = from_json(files.read(path))
    except OSError as problem:
        reason = problem.strerror or problem
        raise RecordError(f"{path}: the run record cannot be read ({reason}). Did the run begin? Repeat it.") from None
    except ValueError as problem:
        raise RecordError(f"{path}: cannot be read as a run record ({problem}). Make the run again.") from None
    return read(data, path)


def read(data: object, where: object) -> Record:
    """The record in parsed JSON; `where` names it in the errors, which are those of `load`."""
    if not isinstance(data, dict) or "epochs" not in data:
        raise NoRecordError(f"{where}: not a run record. Give the .json that a training left in its folder of runs.")
    if (version := data.get("version")) not in (1, VERSION):
        raise RecordError(
            f"{where}: run record of version {version!r:.20}, this kit reads versions 1 and {VERSION}. "
            "Update the kit, or make the run again."
        )
    try:
        return Record.model_validate(data)
    except ValidationError as problem:
        mistake = schema.first_mistake(problem).removeprefix("configuration." if version == 1 else "")
        raise RecordError(f"{where}: broken run record: {mistake} Make the run again.") from None


def save(path: str | Path, record: Record) -> None:
    """Write a record atomically: whoever reads `path` sees the old record or the new one, never half of one.

    Errors: UnwritableError (unwritable folder, full disk); an older record then stays as it was.
    """
    try:
        files.write(path, record.model_dump_json(indent=1))
    except OSError as problem:
        raise UnwritableError(
            f"Cannot write the run record {path}: {problem.strerror or problem}. Without it the run leaves no "
            "evidence. Check that the folder is yours and that the disk has room, or choose another with --runs."
        ) from None
