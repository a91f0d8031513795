"""What a sampler wrote beside a run record: how it is read, and what it says in numbers.

A file of samples has a line of JSON with what does not change, then one for each sample (labs.training.sampler).
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labs.errors import UseError

VERSION = 1


class WatchedError(UseError):
    """A file of samples cannot be read; the message says which, and why."""


@dataclass(frozen=True)
class Watched:
    """The samples of one rank. Each is a dict:

    t: unix seconds at its end; seconds: that it covers; cores: processor seconds of this process in it per second (its
    cores in use); memory: bytes resident; faults: pages a second that the kernel had to give; images: taken in it;
    phases: {phase: seconds of it}; gpus: [{utilisation (0 to 1), memory (bytes), power (watts)}].
    """

    rank: int
    kind: str
    about: dict[str, Any]
    samples: list[dict[str, Any]]

    def mean(self, key: str) -> float:
        """The mean of `cores`, `memory` or `faults` over the time that was watched."""
        return sum(sample[key] * sample["seconds"] for sample in self.samples) / self.seconds

    @property
    def seconds(self) -> float:
        return sum(sample["seconds"] for sample in self.samples)

    @property
    def images_per_second(self) -> float:
        return sum(sample["images"] for sample in self.samples) / self.seconds

    def shares(self) -> dict[str, float]:
        """{phase: its share of the time, 0 to 1}, in the order in which the phases came."""
        found = Counter()
        for sample in self.samples:
            found.update(sample["phases"])
        return {phase: seconds / self.seconds for phase, seconds in found.items()}


def read(path: str | Path) -> Watched:
    """The Watched of one file. Raises WatchedError."""
    path = Path(path)
    try:
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        head = json.loads(first)
        whole = [json.loads(line) for line in lines if line.endswith("}")]  # a killed run leaves half a line
        watched = Watched(head["rank"], head["kind"], head["about"], whole)
    except OSError as problem:
        raise WatchedError(f"{path}: {problem.strerror}. Was the run started with LABS_SAMPLES?") from None
    except (ValueError, KeyError, TypeError):
        raise WatchedError(f"{path}: these are not the samples of a run. Give the .samples file of a rank.") from None
    if head["version"] != VERSION or not whole:
        raise WatchedError(f"{path}: holds no samples that this kit reads. Watch the run again.")
    return watched


def ranks(stem: str | Path) -> list[Watched]:
    """The Watched of all ranks of a run, by rank; stem: path of its files without ending. Raises WatchedError."""
    stem = Path(stem)
    paths = list(stem.parent.glob(f"{stem.name}.rank*.samples"))
    if not paths:
        raise WatchedError(f"No samples beside {stem}: start the run with LABS_SAMPLES=0.2 in its environment.")
    return sorted(map(read, paths), key=lambda watched: watched.rank)
