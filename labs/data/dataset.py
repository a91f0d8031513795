"""What a data set is in memory, and the errors of this room."""

from dataclasses import dataclass

import numpy as np

from labs.errors import UseError


class DataError(UseError):
    """Data or batch sizes that cannot be used. The message is one line: what, why, what to do."""


@dataclass
class Dataset:
    """Labelled images in memory: `images` uint8 (N, H, W, 3); `labels` int64 (N,), indices into `classes`."""

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: list[str]


def whole(what: str, value: object, least: int = 1) -> int:
    """`value` as an int; True, 64.0 and "64" are refused: they are mistakes more often than sizes."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise DataError(f"{what} is {value!r}, which counts nothing. Give a whole number, {least} or more.")
    return int(value)
