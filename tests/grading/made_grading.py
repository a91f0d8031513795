"""A grading that was looked at, made without running anything: five students of notebooks 01, 05 and 06."""

import json

import made_class

from labs import files
from labs.checks import dispute, tasks
from labs.report.archive import zipped

NOTEBOOKS = ("01_basic_concepts", "05_resnet50_scaling", "06_a_job_for_slurm")
NAMES = ("Ada Example", "Ben Beispiel", "Chloé Exemple", "Dana Primer", "Emil Próba")
UPSIDE_DOWN = "Upside down: round 1 took {} s on 1 worker. Which of the two is the baseline?"
CODE = "def round_speedups(seconds_1, seconds_p):\n    return [p / one for one, p in zip(seconds_1, seconds_p)]\n\n"
CODE += "check('resnet50.5', round_speedups)"
TRACE = "it raises Traceback (most recent call last):\n  File '/tmp/labs/notebooks/x.py', line 1\nKeyError: 'a'"
COPIED = "its step times are 0.8 times those of ResNet50_w1 of submission 002"
WORDS = "We trained on 1 and 2 workers and divided the epoch times within each round."


def judged(state="right", how="outside", text="", **more):
    return {"state": state, "how": how, "text": text} | more


def checks(**others):
    """{notebook: {check: as it was judged}}, right but for `others`, as resnet50_5."""
    lessons = [each for each in tasks.lessons().values() if each.notebook in NOTEBOOKS]
    made = {
        lesson.notebook: {item.id: judged() for item in lesson.task if isinstance(item, tasks.Check)}
        for lesson in lessons
    }
    for id, each in others.items():
        id = id.replace("_", ".")
        next(of for of in made.values() if id in of)[id] = each
    return made


def finding(kind, where, seen, severity="serious"):
    return {"kind": kind, "severity": severity, "where": where, "seen": seen}


def notebook(**cells):
    """A notebook with these sources of checks, as resnet50_5."""
    made = [
        {"cell_type": "code", "metadata": {"labs": {"id": id.replace("_", ".")}}, "source": source}
        for id, source in cells.items()
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def disputed(**reasons):
    every = {id.replace("_", "."): {"reason": text} for id, text in reasons.items()}
    return json.dumps({"version": 1, "disputes": every}).encode()


def students():
    """(who, what was found, files that were handed in) of each."""
    runs = "notebooks/runs"
    five, later = (f"notebooks/{name}.ipynb" for name in NOTEBOOKS[1:])
    wrote = {five: notebook(resnet50_5=CODE), later: notebook(slurm_1="%matplotlib inline\nepochs = 72")}
    table = ["Speed", ["run", "workers", "speedup"], ["ResNet50_w2", "2", "1.61 [1.58, 1.64]"]]
    run = made_class.written({"ResNet50_w2": made_class.study(1)["ResNet50_w2"]})
    yield NAMES[0], {
        "checks": checks(
            resnet50_5=judged("wrong", text=UPSIDE_DOWN.format(4.25)), resnet50_12=judged("wrong", text=TRACE),
            resnet50_9=judged("wrong", text="Parameters are never collected: every replica holds its own copy."),
        ),
        "answers": {"T5": WORDS},
        "tables": {"T5": [table]},
        "findings": [finding("copy", "ResNet50_w1", COPIED), finding("spread", "ResNet50_w2", "lies on a line")],
    }, wrote | {"notebooks/scripts/ResNet50.py": b"import keras\nprint('mine')\n"} | run  # fmt: skip
    yield (
        NAMES[1],
        {
            "checks": checks(
                resnet50_5=judged("wrong", text=UPSIDE_DOWN.format(3.5)), slurm_3=judged("wrong", text="Not 4.")
            ),
            "answers": {"T5": WORDS},
            "findings": [finding("copy", "ResNet50_w1", COPIED.replace("002", "001")), finding("progress", "x", "y")],
        },
        {five: notebook(resnet50_5=CODE), f"{runs}/{dispute.FILE}": disputed(resnet50_5="Speedup is new over old.")},
    )
    blank = {id: judged("open", text="not done") for id in ("resnet50_8", "resnet50_9", "resnet50_10", "slurm_3", "T6")}
    yield NAMES[2], {"checks": checks(**blank)}, {five: notebook()}
    yield NAMES[3], {}, {}
    left = judged("open", "person", "not judged: it imports 'os'", code="import os\nepochs_together = 72")
    stopped = {id: judged("open", text="its cell was not reached") for id in ("slurm_2", "slurm_3")}
    yield NAMES[4], {
        "checks": checks(slurm_1=left, **stopped),
        "answers": {"T5": WORDS},
        "told": [f"{NOTEBOOKS[2]}, cell 31: NameError: name 'rows' is not defined in /tmp/labs/notebooks/own.py"],
    }, wrote  # fmt: skip


def write(out, platform="moodle"):
    """Write the folder of a grading, with its rubric."""
    from teaching.grading import rubric

    names, collected = {}, {}
    empty = {"checks": {}, "answers": {}, "findings": [], "told": [], "steps": [], "prints": {}, "alike": {}}
    for place, (who, found, contents) in enumerate(students(), 1):
        number = f"{place:03d}"
        names[number] = {"platform": platform, "id": str(4000 + place), "who": who}
        collected[number] = ["complete", "equal to the last byte: 002"] if contents else ["empty: no file is in it"]
        found = empty | {"key": number, "speedups": [], "tables": {}} | found
        files.write(out / f"submissions/{number}.zip", zipped(contents))
        files.write(out / f"checked/{number}.json", json.dumps(found))
    files.write(out / "names.json", json.dumps(names))
    files.write(out / "collection.json", json.dumps(collected))
    rubric.add(out, NOTEBOOKS)
    text = (out / "rubric.toml").read_text().replace("# copy = 5", "copy = 5")
    files.write(out / "rubric.toml", text)
    return out
