"""The parts of a run record runs/<name>.json that say how a training was run, and the errors of reading one.

Fields that this kit does not know are kept. The record as a whole is a labs.results.run.Run.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from labs.errors import UseError


class RecordError(UseError):
    """A run record cannot be read; the message names the file and the field, and says what to do."""


class NoRecordError(RecordError):
    """The file holds JSON, but no run record."""


class UnwritableError(RecordError):
    """A run record cannot be written."""

    code = 1


class Part(BaseModel):
    """Numbers are finite, and nothing is converted: "2" is refused as a number. What a newer kit has added is kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False, ser_json_inf_nan="constants")


Count = Annotated[int, Field(ge=0, lt=2**53)]  # larger ones are not exact as floats, and nothing here is that many

# What a field says of a run. Two runs may be divided if they agree in all fields without such a mark.
FOLLOWS_WORKERS = "follows the number of workers"
AMOUNT = "how much was trained, and from which seed: a time per epoch does not depend on it"
EXCHANGE = "how gradients are exchanged: a single worker exchanges nothing"


class Configuration(Part):
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

    def comparable(self, baseline: "Configuration") -> bool:
        """Whether dividing this run by `baseline` is scaling: equal but for the workers, and what follows them.

        A baseline of strategy "single" serves every strategy.
        """
        if baseline.strategy not in (self.strategy, "single"):
            return False
        marks = FOLLOWS_WORKERS, AMOUNT, EXCHANGE
        return self._without(*marks) == baseline._without(*marks)

    def same_training(self, other: "Configuration") -> bool:
        """Whether both are repeats of one training: equal but for the seed, and how much was trained."""
        return self._without(AMOUNT) == other._without(AMOUNT)

    def fulfils(self, wanted: "Configuration") -> bool:
        """Whether this run shows all that was set in `wanted`."""
        return all(getattr(self, name, None) == getattr(wanted, name) for name in wanted.model_fields_set)
