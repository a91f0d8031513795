"""What scripts do when they are tried out (labs/checks/tryout), recorded: so most tests of judges start nothing.

facts.json holds, for each script with its command lines, the facts that the try-out gave, and for all of them one hash
of the code that made them. Where that is another one now, nothing recorded counts: everything is tried out, and
test_facts.py says so. FACTS=record writes the file (`make facts`); FACTS=live tries everything out and compares
(`make test-full`).
"""

import hashlib
import json
import math
import re
import tomllib
from pathlib import Path

from tree import ROOT

FILE = Path(__file__).with_name("facts.json")
OF_THE_RUN = ("machine", "started", "finished", "script_sha256", "study")  # of a run record: nothing that is judged
MADE_BY = (
    "labs/checks/tryout",
    "labs/checks/stand_in.py",
    "lessons/connected.py",
    "lessons/horovod_sharding/two_epochs.py",
    "lessons/when_workers_do_not_help/equal_ranks.py",
    "labs/training",
    "labs/hvd",
    "labs/data",
    "labs/models",
    "labs/devices.py",
    "labs/compat.py",
    "labs/blanks.py",
)
COMPUTING = ("horovod", "keras", "mpich", "numpy", "tensorflow-cpu")  # packages of uv.lock


def made_by():
    """Hash of the code that makes facts, and of the versions that it computes with."""
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    versions = [f"{each['name']} {each.get('version')}" for each in locked if each["name"] in COMPUTING]
    digest = hashlib.sha256("\n".join(versions).encode())
    for name in MADE_BY:
        place = ROOT / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


class Facts:
    """Stands before the try-out's server. ask: its own `ask`. new: a file for what is recorded now."""

    def __init__(self, ask, new, mode):
        self._ask, self._new, self._mode = ask, new, mode
        self.others = []  # live scripts that did something else than is recorded
        told = json.loads(FILE.read_text()) if FILE.exists() else {"made_by": None, "facts": {}}
        self._known = told["facts"] if told["made_by"] == made_by() else {}

    def ask(self, request):
        key, found = _key(request), None
        if self._mode is None and key in self._known:
            return json.loads(json.dumps(self._known[key]).replace("SCRIPT.py", json.dumps(request["script"])[1:-1]))
        found = self._ask(request)
        stopped = any(each["stopped"] for each in found)  # where it was, is another line each time
        plain = json.loads(json.dumps(found).replace(json.dumps(request["script"])[1:-1], "SCRIPT.py"))
        if self._mode == "live" and key in self._known and not stopped:
            if not alike(_lasting(plain), _lasting(self._known[key])):
                self.others.append(request["script"])
        if self._mode == "record":
            with open(self._new, "a") as file:
                file.write(json.dumps([key, plain]) + "\n")
        return found


def keep(new):
    """Write what was recorded to FILE, with one line for each script."""
    if not new.exists():
        return
    found = dict(sorted((json.loads(line) for line in new.read_text().splitlines()), key=lambda row: row[0]))
    for each in (each for told in found.values() for each in told if each.get("record")):
        each["record"] = {name: value for name, value in each["record"].items() if name not in OF_THE_RUN}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(facts)}" for key, facts in found.items())
    FILE.write_text(f'{{"made_by": "{made_by()}", "facts": {{\n{lines}\n}}}}\n')


def _key(request):
    """Hash of a script, of those beside it, and of how it is tried out."""
    script = Path(request["script"])
    digest = hashlib.sha256(json.dumps(request["plays"], sort_keys=True, default=str).encode())
    for path in [script, *sorted(script.parent.glob("*.py"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def alike(one, other):
    """Are two facts the same, but for what another processor rounds in another way, and a few steps make larger?"""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-2, abs_tol=1e-3) or math.isnan(one) and math.isnan(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and one == other


def _lasting(facts):
    """Facts without what is another one each time: the times in the log and in the run record, and how many errors of
    other threads TensorFlow says it has left out."""
    facts = json.loads(re.sub(r"\d+ derived errors ignored", "derived errors ignored", json.dumps(facts)))
    return [{name: value for name, value in each.items() if name not in ("log", "record")} for each in facts]
