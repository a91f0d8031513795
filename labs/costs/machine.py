"""Machines as data: what labs/machines/*.toml or a file of yours says of devices, nodes and network.

A value is a number in bytes, bytes/s, seconds or FLOP/s, a text with its unit ("16 GB", "25 Gbit/s", "1.5 us"), or a
table {value, range, source}. labs/machines/template.toml explains every key; labs/machines/devices has devices that a
machine's file can take over with [device] base = "V100".
"""

import re
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from labs.costs.communication import ALGORITHMS, CYCLE, OVERLAP, THRESHOLD, Fabric
from labs.costs.parameter import Parameter, ScalingError

HERE = Path(__file__).parents[1] / "machines"
_SI = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_SECONDS = {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# key -> (unit, least, most, default value, its range); without a default the key must be there
_DEVICE = {
    "memory": ("bytes", 1e8, 1e13, None, None),
    "memory_bandwidth": ("bytes/s", 1e8, 1e14, None, None),
    "overhead": ("s", 0, 1, 5e-5, (2e-5, 2e-4)),
}
_PRECISION = {
    "peak": ("FLOP/s", 1e8, 1e17, None, None),
    "share": ("", 0.001, 4, {"float32": 1.6, "other": 0.35}, {"float32": (0.8, 2.3), "other": (0.2, 0.5)}),
    "passes": ("", 0, 200, {"float32": 24.0, "other": 9.0}, {"float32": (15.0, 45.0), "other": (5.0, 14.0)}),
}
_LINK = {"bandwidth": ("bytes/s", 1e6, 1e14, None, None), "latency": ("s", 0, 1, 1e-5, (2e-6, 5e-5))}
_SOFTWARE = {
    "fusion_threshold": ("bytes", 0, 1e12, THRESHOLD, None),
    "cycle": ("s", 0, 1, CYCLE, None),
    "overlap": ("", 0, 1, OVERLAP, (0.0, 1.0)),
    "spread": ("", 0, 2, 0.015, (0.005, 0.03)),
}
PRECISIONS = ("float32", "float16", "bfloat16")
_SECTIONS = {"name", "about", "device", "node", "network", "software", "measured"}
_DEFAULT = "not in the machine's file: the kit's default"
_OVERLAP = "between none (0) and full (1); the value was chosen by published results (labs/machines/README.md)"


class MachineError(ScalingError):
    """A machine's file cannot be used; the message names the file and the key, and says what to write."""


@dataclass(frozen=True)
class Machine:
    """A machine. devices: workers of a node; networked: whether the file describes a network between nodes; parameters:
    {name: Parameter} of the fabric and the software; precisions: {precision: {name: Parameter}} of a device; measured:
    rates of one worker, [{model, precision, batch, images_per_second, image_size, source}]; notes: what the file left
    to defaults."""

    id: str
    name: str
    about: str
    device: str
    devices: int
    algorithm: str
    networked: bool
    memory: Parameter
    precisions: dict
    parameters: dict
    measured: tuple = ()
    notes: tuple = field(default=(), compare=False)

    def computes(self, precision):
        """{name: Parameter} of a device in this precision. Raises MachineError: the file does not have it."""
        if precision not in self.precisions:
            raise MachineError(
                f"{self.name} has no {precision}: its file describes {', '.join(self.precisions)}. "
                f"Add [device.{precision}] with its peak, or ask for another precision."
            )
        return self.precisions[precision]

    def fabric(self, values):
        """The Fabric with these values {name: number}."""
        names = ("latency_inside", "bandwidth_inside", "latency_between", "bandwidth_between")
        return Fabric(self.devices, **{name: values[name] for name in names}, algorithm=self.algorithm)


def names():
    """Machines that come with the kit, as the names of their files."""
    return sorted(path.stem for path in HERE.glob("*.toml") if path.stem != "template")


def load(machine):
    """The Machine of a file, by path, or by the name of one that comes with the kit. Raises MachineError."""
    path = Path(machine)
    if not path.suffix and not path.is_file() and (HERE / f"{path.name}.toml").is_file():
        path = HERE / f"{path.name}.toml"
    if not path.is_file():
        raise MachineError(
            f"{machine}: no such machine file. The kit has {', '.join(names())}; for your own, copy "
            "labs/machines/template.toml and give its path."
        )
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise MachineError(f"{path}: cannot be read as TOML ({problem}).") from None
    return _Reader(path).machine(found)


class _Reader:
    def __init__(self, path):
        self.path, self.defaults = path, []

    def fail(self, key, says):
        raise MachineError(f"{self.path}: {key} {says}")

    def machine(self, found):
        self.known("", found, _SECTIONS)
        for section in ("device", "node"):
            if not isinstance(found.get(section), dict):
                self.fail(f"[{section}]", "is missing. See labs/machines/template.toml.")
        device, rates = self.base(found["device"], found.get("measured", []))
        node, network = found["node"], found.get("network", {})
        self.known("device.", device, {"name", "base", *_DEVICE, *PRECISIONS})
        self.known("node.", node, {"devices", *_LINK})
        self.known("network.", network, {"algorithm", *_LINK})
        count = node.get("devices")
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            self.fail("node.devices", f"is {count!r}: it must be the number of workers in a node, 1 or more.")
        algorithm = network.get("algorithm", "two-level")
        if algorithm not in ALGORITHMS:
            self.fail("network.algorithm", f"is {algorithm!r}: it must be one of {', '.join(ALGORITHMS)}.")
        common = self.section("device", device, _DEVICE)
        memory = common.pop("memory")
        precisions = {}
        for precision in PRECISIONS:
            if precision in device:
                table = device[precision]
                if not isinstance(table, dict):
                    self.fail(f"device.{precision}", "must be a section with at least `peak`.")
                self.known(f"device.{precision}.", table, _PRECISION)
                kind = "float32" if precision == "float32" else "other"
                rules = {
                    key: (*rule[:3], *(d[kind] if isinstance(d, dict) else d for d in rule[3:]))
                    for key, rule in _PRECISION.items()
                }
                precisions[precision] = self.section(f"device.{precision}", table, rules) | common
        if not precisions:
            self.fail("[device.float32]", "is missing: a device needs its peak in at least one precision.")
        inside = self.section("node", node, _LINK) if count > 1 or "bandwidth" in node else None
        between = self.section("network", network, _LINK) if network else None
        if not inside and not between:
            self.fail("[network]", "is missing: with one worker in a node, workers need a network.")
        links = {
            f"{key}_{level}": link[key]
            for level, link in (("inside", inside or between), ("between", between or inside))
            for key in _LINK
        }
        software = found.get("software", {})
        self.known("software.", software, _SOFTWARE)
        settings = self.section("software", software, _SOFTWARE)
        usual = (f"not in the machine's file, so the kit's usual values: {', '.join(self.defaults)}",)
        return Machine(
            self.path.stem,
            str(found.get("name", self.path.stem)),
            str(found.get("about", "")),
            str(device.get("name", "device")),
            count,
            algorithm,
            bool(between),
            memory,
            precisions,
            links | settings,
            tuple(self.rate(row) for row in rates),
            usual if self.defaults else (),
        )

    def base(self, device, rates):
        """The device's section and its measured rates, on top of those of the device that it names as its base."""
        if "base" not in device:
            return device, rates
        path = HERE / "devices" / f"{device['base']}.toml"
        if not path.is_file():
            have = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml")))
            self.fail("device.base", f"is {device['base']!r}: it must be one of {have}.")
        base = tomllib.loads(path.read_text(encoding="utf-8"))
        return base["device"] | device, [*rates, *base.get("measured", [])]

    def known(self, where, table, keys):
        if not isinstance(table, dict):
            self.fail(f"[{where.rstrip('.')}]", "must be a section of keys.")
        for key in table:
            if key not in keys:
                close = get_close_matches(key, keys, 1)
                self.fail(
                    f"{where}{key}",
                    "is not known"
                    + (f"; did you mean {close[0]}?" if close else f". Known are {', '.join(sorted(keys))}."),
                )

    def section(self, where, table, rules):
        return {key: self.value(f"{where}.{key}", table.get(key), *rule) for key, rule in rules.items()}

    def value(self, key, given, unit, least, most, default, span):
        if given is None:
            if default is None:
                self.fail(key, f"is missing: {unit or 'a number'} is needed.")
            if not key.startswith("software."):
                self.defaults.append(f"{key} {default:g}{' ' + unit if unit else ''}")
            return Parameter(default, unit, span, source=_OVERLAP if key.endswith("overlap") else _DEFAULT)
        table = given if isinstance(given, dict) else {"value": given}
        self.known(f"{key}.", table, {"value", "range", "source"})
        number = self.number(key, table.get("value"), unit, least, most)
        span = table.get("range")
        if span is not None:
            if not isinstance(span, list) or len(span) != 2:
                self.fail(f"{key}.range", "must be [low, high].")
            span = tuple(self.number(f"{key}.range", end, unit, least, most) for end in span)
            if not span[0] <= number <= span[1]:
                self.fail(f"{key}.range", f"does not hold the value {table['value']!r}.")
        return Parameter(number, unit, span, source=str(table.get("source", f"{self.path.name}, without a source")))

    def number(self, key, given, unit, least, most):
        found = given
        if isinstance(given, str):
            match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(\S*)\s*", given)
            try:
                found = float(match[1]) * scale(match[2], unit)
            except (TypeError, ValueError, KeyError):
                self.fail(key, f"is {given!r}: it must be a number with a unit of {unit or 'nothing'}.")
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
            self.fail(
                key,
                f"is {given!r}: it must be {unit or 'a number'} from {least:g} to {most:g}. A text may name "
                'the unit, as "25 Gbit/s".',
            )
        return float(found)

    def rate(self, row):
        self.known("measured.", row, {"model", "precision", "batch", "images_per_second", "image_size", "source"})
        for key in ("batch", "images_per_second"):
            if isinstance(row.get(key), bool) or not isinstance(row.get(key), int | float) or not row[key] > 0:
                self.fail(f"measured.{key}", f"is {row.get(key)!r}: it must be a number above 0.")
        if not isinstance(row.get("model"), str):
            self.fail("measured.model", "is missing: the name of the network in keras.applications.")
        return {"precision": "float32", "image_size": None, "source": "", **row}


def scale(text, unit):
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
