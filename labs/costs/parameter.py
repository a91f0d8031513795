"""A parameter of the model: value, unit, 95 % interval, and where it comes from."""

from dataclasses import dataclass

from labs.errors import UseError


class CostError(UseError):
    """The model cannot be fitted or asked as it was; the message says why and what to do."""


@dataclass(frozen=True)
class Parameter:
    """value in `unit`; interval: (low, high) of 95 %, None where nothing is known; source: text."""

    value: float
    unit: str
    interval: tuple[float, float] | None = None
    source: str = ""

    def __post_init__(self):
        if self.interval and not self.interval[0] <= self.value <= self.interval[1]:
            raise CostError(f"{self.value:g} {self.unit} is not within its interval {self.interval}.")

    def __str__(self):
        span = f" [{self.interval[0]:.4g}, {self.interval[1]:.4g}]" if self.interval else ""
        return f"{self.value:.4g}{span} {self.unit}".rstrip()
