"""What a sampler wrote beside a run record: how it is read, and what it says in numbers.

A file of samples has a line of JSON with what does not change, then one for each sample (lessons.faster_steps.sampler).
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Samples:
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


def read(path: str | Path) -> Samples:
    """The Samples of one file."""
    first, *lines = Path(path).read_text(encoding="utf-8").splitlines()
    head = json.loads(first)
    whole = [json.loads(line) for line in lines if line.endswith("}")]  # a killed run leaves half a line
    return Samples(head["rank"], head["kind"], head["about"], whole)


def ranks(stem: str | Path) -> list[Samples]:
    """The Samples of all ranks of a run, by rank; stem: path of its files without ending."""
    paths = Path(stem).parent.glob(f"{Path(stem).name}.rank*.samples")
    return sorted(map(read, paths), key=lambda samples: samples.rank)
