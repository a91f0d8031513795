"""A grading that was looked at, made without running anything: five students of notebooks 01, 05 and 06."""

import json

import made_class

from labs import files
from labs.checks import tasks
from labs.files import digest
from labs.report.archive import zipped
from teaching.grading import rubric

NOTEBOOKS = made_class.NOTEBOOKS
NAMES = ("Ada Example", "Ben Beispiel", "Chloé Exemple", "Dana Primer", "Emil Próba")
UPSIDE_DOWN = "Upside down: round 1 took {} s on 1 worker. Which of the two is the baseline?"
CODE = "def round_speedups(seconds_1, seconds_p):\n    return [p / one for one, p in zip(seconds_1, seconds_p)]\n\n"
CODE += "check('resnet50.5', round_speedups)"
TRACE = "it raises Traceback (most recent call last):\n  File '/tmp/labs/notebooks/x.py', line 1\nKeyError: 'a'"
COPIED = "its step times are 0.8 times those of ResNet50_w1 of submission 00{}"
WORDS = "We trained on <b>1</b> and 2 workers and divided the epoch times within each round."
TABLE = ["Speed", ["run", "workers", "speedup"], ["ResNet50_w2", "2", "1.61 [1.58, 1.64]"]]
RECORD = "notebooks/runs/ResNet50_w1.json"


def submission(contents=None, **more):
    """The bytes of a submission.zip with a manifest."""
    contents = contents or {"report.json": b"{}", "report.pdf": b"%PDF", RECORD: b"{}"}
    manifest = {"version": 1, "files": {name: {"sha256": digest(content)} for name, content in contents.items()}}
    return zipped({**contents, "manifest.json": json.dumps(manifest).encode(), **more})


def looked_at(out, number, contents=None, **found):
    """Collect a submission with these contents, and write what `teach in` finds of it."""
    checks, told = found.pop("checks", {}), found.pop("told", [])
    kept = {"answers": {}, "code": {}, "findings": [], "steps": [], "alike": {}, "tables": {}, "replayed": {}}
    kept |= {"notebooks": list(checks), "claimed": [], "key": number, "submission": number} | found
    for name, judged in checks.items():
        lines = [line.removeprefix(f"{name}, ") for line in told if line.startswith(name)]
        kept["replayed"][name] = {"key": number, "checks": judged, "told": lines}
    files.write(out / f"submissions/{number}.zip", zipped(contents or {}))
    files.write(out / f"checked/{number}.json", json.dumps(kept))


def judged(state="right", how="outside", text="", **more):
    return {"state": state, "how": how, "text": text} | more


def checks(**others):
    """{notebook: {check: as it was judged}}, right but for `others`, as resnet50_5."""
    others, made = {id.replace("_", "."): each for id, each in others.items()}, {}
    for lesson in tasks.lessons().values():
        if lesson.notebook in NOTEBOOKS:
            ids = [item.id for item in lesson.task if isinstance(item, tasks.Check)]
            made[lesson.notebook] = {id: others.get(id, judged()) for id in ids}
    return made


def finding(kind, where, seen, severity="serious"):
    return {"kind": kind, "severity": severity, "where": where, "seen": seen}


def notebook(*sources):
    """A notebook as bytes: code cells with these sources."""
    cells = [{"cell_type": "code", "id": f"c{n}", "metadata": {}, "source": source} for n, source in enumerate(sources)]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def students():
    """(files that were handed in, what was found) of each."""
    report = {"report.json": b"{}"}
    own = {"notebooks/scripts/ResNet50.py": b"import keras\nprint('mine')\n"}
    own |= made_class.written({"ResNet50_w2": made_class.study(1)["ResNet50_w2"]})
    mistakes = checks(
        resnet50_5=judged("wrong", text=UPSIDE_DOWN.format(4.25)),
        resnet50_14=judged("wrong", text=TRACE),
        resnet50_11=judged("wrong", text="Parameters are never collected: every replica holds its own copy."),
    )
    found = [finding("copy", "ResNet50_w1", COPIED.format(2)), finding("spread", "ResNet50_w2", "lies on a line")]
    answered = {"answers": {"T5": WORDS}}
    told = {"tables": {"T5": [TABLE]}, "findings": found, "code": {"resnet50.5": CODE}}
    yield own, answered | told | {"checks": mistakes}

    mistakes = checks(resnet50_5=judged("wrong", text=UPSIDE_DOWN.format(3.5)), slurm_3=judged("wrong", text="Not 4."))
    found = [finding("copy", "ResNet50_w1", COPIED.format(1)), finding("progress", "x", "y")]
    yield report, answered | {"checks": mistakes, "findings": found}

    left = ("resnet50_10", "resnet50_11", "resnet50_12", "slurm_3", "T6")
    blank = {id: judged("open", text="not done") for id in left}
    yield report, {"checks": checks(**blank)}

    yield {}, {}

    left = judged("open", "person", "not judged: it imports 'os'")
    stopped = {id: judged("open", "person", "not judged: nothing calls it") for id in ("slurm_2", "slurm_3")}
    told = [f"{NOTEBOOKS[2]}, cell 31: NameError: name 'rows' is not defined in /tmp/labs/notebooks/own.py"]
    code = {"slurm.1": "import os\nepochs_together = 72"}
    yield report, answered | {"checks": checks(slurm_1=left, **stopped), "told": told, "code": code}


def write(out):
    """Write the folder of a grading, with its rubric."""
    names, collected = {}, {}
    for place, (contents, found) in enumerate(students()):
        number = f"00{place + 1}"
        names[number] = {"platform": "moodle", "id": f"400{place + 1}", "who": NAMES[place]}
        collected[number] = ["complete"] if contents else ["empty: no file is in it"]
        looked_at(out, number, contents, **found)
    files.write(out / "names.json", json.dumps(names))
    files.write(out / "collection.json", json.dumps(collected))
    rubric.add(out, NOTEBOOKS)
    files.write(out / "rubric.toml", (out / "rubric.toml").read_text().replace("# copy = 5", "copy = 5"))
    return out
