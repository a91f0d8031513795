"""Machines as data: what labs/machines/*.toml or a file of yours says of devices, nodes and network.

A value is a number in bytes, bytes/s, seconds or FLOP/s, a text with its unit ("16 GB", "25 Gbit/s", "1.5 us"), or a
table {value, range, source}. labs/machines/template.toml explains every key; labs/machines/devices has devices that a
machine's file can take over with [device] base = "V100".
"""

import re
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PositiveFloat, PositiveInt, model_validator

from labs import schema
from labs.costs.chosen import CHOSEN, SPREADS
from labs.costs.communication import ALGORITHMS, CYCLE, OVERLAP, THRESHOLD
from labs.costs.parameter import CostError, Parameter
from labs.schema import Section, known, wrong

HERE = Path(__file__).parents[1] / "machines"
PRECISIONS = ("float32", "float16", "bfloat16")
_SI = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_BRACKET = "between none (0) and full (1); the value was chosen by published results (labs/machines/README.md)"


class MachineError(CostError):
    """A machine's file cannot be used; the message names the file and the key, and says what to write."""


def quantity(unit, least, most):
    """The type of a key that holds a quantity in `unit`; the section then has a Parameter there."""

    def parameter(given, info):
        table = given if isinstance(given, dict) else {"value": given}
        known(table, ("value", "range", "source"))
        value, span = _number(table.get("value"), unit, least, most), table.get("range")
        if span is not None:
            if not isinstance(span, list) or len(span) != 2:
                raise wrong("range", "must be [low, high]")
            span = tuple(_number(end, unit, least, most) for end in span)
            if not span[0] <= value <= span[1]:
                raise wrong("range", f"does not hold the value {table['value']!r}")
        file = Path(info.context["file"]).name
        return Parameter(value, unit, span, source=str(table.get("source", f"{file}, without a source")))

    return Annotated[Parameter, BeforeValidator(parameter)]


# What a quantity is where the file does not say it.
usual = partial(Parameter, source="not in the machine's file: the kit's default")
# What is plausible, so that a slip in a unit is told.
Bytes, BytesPerSecond = quantity("bytes", 1e8, 1e13), quantity("bytes/s", 1e6, 1e14)
Seconds, Share, Passes = quantity("s", 0, 1), quantity("", 0.001, 4), quantity("", 0, 200)


class Precision(Section):
    """A device that computes in float32. share: of the peak that large convolutions reach; passes: how often a step
    moves each kept activation through memory."""

    peak: quantity("FLOP/s", 1e8, 1e17)
    share: Share = usual(1.6, "", (0.8, 2.3))
    passes: Passes = usual(24.0, "", (15.0, 45.0))


class HalfPrecision(Precision):
    """A device that computes in float16 or bfloat16."""

    share: Share = usual(0.35, "", (0.2, 0.5))
    passes: Passes = usual(9.0, "", (5.0, 14.0))


class Device(Section):
    """One worker. base: the file in labs/machines/devices whose keys stand below those given here."""

    name: str = "device"
    base: str | None = None
    memory: Bytes
    memory_bandwidth: quantity("bytes/s", 1e8, 1e14)
    overhead: Seconds = usual(5e-5, "s", (2e-5, 2e-4))
    float32: Precision | None = None
    float16: HalfPrecision | None = None
    bfloat16: HalfPrecision | None = None

    @model_validator(mode="after")
    def _computes(self):
        if not any(getattr(self, precision) for precision in PRECISIONS):
            raise wrong("float32", "is missing: a device needs its peak in at least one precision")
        return self


class Link(Section):
    """Between workers. bandwidth: inside a node of one worker's link, between nodes of all links of a node together."""

    bandwidth: BytesPerSecond
    latency: Seconds = usual(1e-5, "s", (2e-6, 5e-5))


class MachineNode(Link):
    """devices: workers of a node. With one alone it needs no link inside. input: seconds in which the node's host makes
    an image ready, for all of them together; None: not known."""

    devices: PositiveInt
    bandwidth: BytesPerSecond | None = None
    input: Seconds | None = None

    @model_validator(mode="after")
    def _linked(self):
        if self.devices > 1 and not self.bandwidth:
            raise wrong("bandwidth", "is missing: bytes/s of one worker's link are needed")
        return self


class Interconnect(Link):
    """Between nodes."""

    algorithm: Literal[ALGORITHMS] = "two-level"


class MachineSoftware(Section):
    """Horovod's settings, and how evenly workers compute."""

    fusion_threshold: quantity("bytes", 0, 1e12) = usual(THRESHOLD, "bytes")
    cycle: Seconds = usual(CYCLE, "s")
    overlap: quantity("", 0, 1) = usual(OVERLAP, "", (0.0, 1.0), source=_BRACKET)
    spread: quantity("", 0, 2) = usual(CHOSEN.spread, "", SPREADS)


class Rate(Section):
    """A rate of one worker. kind: measured, or computed from what was published. image_size: None for the network's
    own."""

    kind: ClassVar[str] = "measured"

    model: str
    precision: str = "float32"
    local_batch: PositiveFloat = Field(alias="batch")
    images_per_second: PositiveFloat
    image_size: int | None = None
    source: str = ""


class Computed(Rate):
    kind: ClassVar[str] = "computed"


class Machine(Section):
    """A machine, as its file says. measured, computed: rates of one worker."""

    name: str
    about: str = ""
    device: Device
    node: MachineNode
    network: Interconnect | None = None
    software: MachineSoftware = MachineSoftware()
    measured: list[Rate] = []
    computed: list[Computed] = []

    @model_validator(mode="after")
    def _linked(self):
        if not self.node.bandwidth and not self.network:
            raise wrong("network", "is missing: with one worker in a node, workers need a network")
        return self

    @property
    def rates(self):
        """All rates of one worker."""
        return [*self.measured, *self.computed]

    @property
    def devices(self):
        """Workers of a node."""
        return self.node.devices

    @property
    def algorithm(self):
        """Of the all-reduce, one of ALGORITHMS."""
        return self.network.algorithm if self.network else "two-level"

    @property
    def parameters(self):
        """{name: Parameter} of the fabric, the software and, where it is known, the input."""
        inside = self.node if self.node.bandwidth else self.network
        links = {"inside": inside, "between": self.network or inside}
        fabric = {f"{key}_{level}": getattr(link, key) for level, link in links.items() for key in Link.model_fields}
        known = {"input": self.node.input} if self.node.input else {}
        return fabric | dict(self.software) | known

    @property
    def precisions(self):
        """{name: Precision} of the device."""
        return {name: found for name in PRECISIONS if (found := getattr(self.device, name))}

    def computes(self, precision: str) -> dict[str, Parameter]:
        """{name: Parameter} of a device in this precision. Raises MachineError: the file does not have it."""
        if precision not in self.precisions:
            raise MachineError(
                f"{self.name} has no {precision or '(nothing)'}: its file describes {', '.join(self.precisions)}. "
                f"Add [device.{precision}] with its peak, or ask for another precision."
            )
        common = {name: getattr(self.device, name) for name in ("memory_bandwidth", "overhead")}
        return dict(self.precisions[precision]) | common

    @property
    def notes(self):
        """What the file left to the kit, a list of one sentence or none."""
        used = {"device": self.device} | {f"device.{name}": found for name, found in self.precisions.items()}
        used |= {"node": self.node} if self.node.bandwidth else {}
        used |= {"network": self.network} if self.network else {}
        left = [
            f"{where}.{name} {value.value:g} {value.unit}".rstrip()
            for where, section in used.items()
            for name, value in section
            if isinstance(value, Parameter) and name not in section.model_fields_set
        ]
        return [f"not in the machine's file, so the kit's usual values: {', '.join(left)}"] if left else []


def names() -> list[str]:
    """Machines that come with the kit, as the names of their files."""
    return sorted(path.stem for path in HERE.glob("*.toml") if path.stem != "template")


def load_machine(machine: str | Path) -> Machine:
    """The Machine that a file describes.

    machine: path of a file (.toml), or the name of one that comes with the kit, such as "cte-power"
    Raises MachineError: no such file, or one that cannot be used.
    """
    path = Path(machine)
    if not path.suffix and not path.is_file() and (HERE / f"{path.name}.toml").is_file():
        path = HERE / f"{path.name}.toml"
    if not path.is_file():
        raise MachineError(
            f"{machine}: no such machine file. The kit has {', '.join(names())}; for your own, copy "
            "labs/machines/template.toml and give its path."
        )
    table = {"name": path.stem} | _on_its_base(schema.read(path, path, MachineError), path)
    return schema.check(Machine, table, path, MachineError, "labs/machines/template.toml")


def _on_its_base(table, path):
    """The tables of a machine's file, with what the device that it names as its base says below."""
    device = table.get("device")
    if not isinstance(device, dict) or "base" not in device:
        return table
    bases = {file.stem: file for file in sorted((HERE / "devices").glob("*.toml"))}
    if not isinstance(device["base"], str) or device["base"] not in bases:
        raise MachineError(f"{path}: device.base is {device['base']!r}: it must be one of {', '.join(bases)}.")
    base = schema.read(bases[device["base"]], path, MachineError)
    rates = {kind: (table.get(kind, []), base.get(kind, [])) for kind in ("measured", "computed")}
    rates = {kind: [*own, *given] for kind, (own, given) in rates.items() if isinstance(own, list)}
    return table | {"device": base["device"] | device} | rates


def _number(given, unit, least, most):
    """A number in `unit`, from a number or from a text with its unit. Raises ValueError: "is ...: it must be ..."."""
    found = given
    if isinstance(given, str):
        try:
            ((amount, named),) = re.findall(r"^\s*([0-9.eE+-]+)\s*(\S*)\s*$", given)
            found = float(amount) * scale(named, unit)
        except (ValueError, KeyError):
            raise ValueError(f"is {given!r}: it must be a number with a unit of {unit or 'nothing'}") from None
    if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
        kind, example = unit or "a number", 'A text may name the unit, as "25 Gbit/s"'
        raise ValueError(f"is {given!r}: it must be {kind} from {least:g} to {most:g}. {example}")
    return float(found)


def scale(text: str, unit: str) -> float:
    """Factor from a unit as text ("GB/s", "Gbit/s", "us", "TFLOP/s") to `unit`. Raises KeyError or ValueError."""
    if not text:
        return 1
    if unit == "s":
        return _SECONDS[text]
    ends = {"bytes": {"B": 1}, "bytes/s": {"B/s": 1, "bit/s": 1 / 8}, "FLOP/s": {"FLOP/s": 1, "FLOPS": 1}}[unit]
    for end, factor in ends.items():
        if text.endswith(end):
            return _SI[text.removesuffix(end)] * factor
    raise ValueError(text)
