"""Recorded runs that come with the kit: for comparison, and to go on with while your own runs are not done."""

import csv
import json
from pathlib import Path
from typing import Any

from labs.printed import grouped

HERE = Path(__file__).parent
CTE_POWER = HERE / "cte-power-resnet50v2.out"  # a log of ResNet50V2 on 1, 2 and 4 GPUs of a cluster


def laptop() -> list[Path]:
    """Logs (.out, each with its record beside it) of ResNet50V2 on 1 and 2 workers of a machine with 2 cores."""
    return sorted((HERE / "laptop_two_networks").glob("ResNet50V2*.out"))


def laptop_horovod() -> dict[str, Path]:
    """{name: run record (.json, with its log .out beside it)} of notebook 08's study on such a machine: ResNet50V2 with
    Horovod on 1 rank, then on 2 with the same batch per rank, and with the same global batch."""
    names = ("ResNet50_horovod_w1", "ResNet50_horovod_w2", "ResNet50_horovod_strong_w2")
    return {name: HERE / "laptop_horovod" / f"{name}.json" for name in names}


def laptop_two_networks() -> list[Path]:
    """Run records of ResNet50V2 and ResNet152V2 on 1 and 2 workers.

    .json files, each with its log .out beside it, of one `labs study` with MirroredStrategy on that machine, in which
    the runs of each network took turns.
    """
    return sorted((HERE / "laptop_two_networks").glob("*.json"))


def horovod_timeline() -> Path:
    """Horovod's timeline of 3 steps of ResNet50V2 on 2 ranks.

    Recorded on another such machine; lessons.timeline reads it.
    """
    return HERE / "horovod_timeline.json.gz"


def imagenet() -> list[dict[str, Any]]:
    """Published trainings of ResNet-50 on ImageNet, slowest first: a dict {who, year, software, hardware, devices
    (None: not told), batch (text), minutes, top1 (per cent)} for each."""
    with open(HERE / "imagenet.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kinds = {"year": int, "devices": lambda text: int(text) if text else None, "minutes": float, "top1": float}
    return [{key: kinds.get(key, str)(value) for key, value in row.items()} for row in rows]


def networks() -> dict[str, tuple[int, int]]:
    """{name: (parameters, bytes of activations for one image)} of networks at 224x224 with 1000 classes, in float32,
    as lessons.counts counts them in Keras' models."""
    found = json.loads((HERE / "networks.json").read_text(encoding="utf-8"))
    return {name: (facts["parameters"], facts["activation_bytes"]) for name, facts in found.items()}


def traces() -> dict[str, list[Path]]:
    """{case: files of samples, a path for each rank} of six trainings of notebook 24 (lessons.faster_steps.samples)."""
    return grouped((path.name.partition(".")[0], path) for path in sorted((HERE / "traces").glob("*.samples")))


def faster() -> dict[str, Path]:
    """{change: path of a run record} of the closing task of notebook 24, the training as it was given first."""
    names = json.loads((HERE / "faster" / "names.json").read_text(encoding="utf-8"))
    return {name: HERE / "faster" / f"{number}.json" for number, name in enumerate(names)}


def h200() -> dict[str, dict[str, Any]]:
    """{part: {case: what it measured}} of `make gpu-proof` on one NVIDIA H200, Keras on JAX."""
    parts = json.loads((HERE / "h200" / "records.json").read_text(encoding="utf-8"))["parts"]
    return {part: {key: case["result"] for key, case in of["cases"].items()} for part, of in parts.items()}
