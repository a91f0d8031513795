"""Small courses to report on: a release with notebooks, scripts and runs that are made from the recorded ones."""

import json
import os

from labs import files, recorded
from labs.checks import tasks
from labs.course import release
from labs.results import run as records

SCRIPT = "import keras\nrate = ...  # your code here\nmodel.fit()\n"
DONE = SCRIPT.replace("...  # your code here", "0.01")
MACHINE = {"cpu": "AMD EPYC", "cores": 2, "gpus": []}


def notebook(*cells):
    """The text of a notebook: cells are dicts with cell_type and source, and what else they hold."""
    of = {"code": {"outputs": [], "execution_count": None}, "markdown": {}}
    filled = [{"id": f"c{n}", "metadata": {}} | of[cell["cell_type"]] | cell for n, cell in enumerate(cells)]
    return json.dumps({"cells": filled, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def answer(id, text):
    """A written answer's cell."""
    source = f"### {id}: your answer\n{text}"
    return {"cell_type": "markdown", "source": source, "metadata": {"labs": {"id": id, "kind": "answer"}}}


def written(answers):
    """{path: text} of all lessons' notebooks, with {id: Markdown} as their written answers, the others left open."""
    made, still_open = {}, "*Write your answer here.*"
    for lesson in tasks.lessons().values():
        ids = [item.id for item in lesson.task if item.kind == "answer"]
        made[f"notebooks/{lesson.notebook}.ipynb"] = notebook(*(answer(id, answers.get(id, still_open)) for id in ids))
    return made


def course(root, answers=None, contents=None):
    """A course in a folder, with some written answers, and files beside them or instead: {path: text}."""
    fresh = written({}) | {"labs/__init__.py": "", "notebooks/scripts/ResNet50.py": SCRIPT}
    fresh["slurm/local/ResNet50.sh"] = "#!/bin/bash\n#SBATCH --nodes=...\n"
    bytes_of = {name: text.encode() for name, text in fresh.items()}
    for name, content in (bytes_of | release.stamped("1.0", "2026-01-01T00:00:00Z", bytes_of)).items():
        files.write(root / name, content)
    for name, text in (written(answers or {}) | (contents or {})).items():
        files.write(root / name, text)
    (root / "notebooks/runs").mkdir(exist_ok=True)
    return root


def study(number=0, network="ResNet50V2", name="ResNet50"):
    """Runs of a network on 1 and 2 workers in turns, as if measured here: {name: Run}."""
    found = {}
    for workers, path in enumerate((path for path in recorded.laptop_two_networks() if network in path.name), 1):
        run = records.load_record(path)
        run.name, run.kind, run.study = f"{name}_w{workers}", "measured", f"study{number}"
        run.machine, run.command = dict(MACHINE), [f"scripts/{name}.py", "--n_gpus", str(workers)]
        run.started, run.finished = "2026-01-02T10:00:00+00:00", "2026-01-02T10:10:00+00:00"
        found[run.name] = run
    assert len(found) == 2, "the recorded study of two networks has changed"
    return found


def keep(root, runs, log=True):
    """Write {name: Run} into a course's folder of runs, each with a log."""
    text = "Model ResNet50V2 {} workers\nEpoch 1/1\n4/4 - 5s - 1s/step - accuracy: 0.5000 - loss: 1.5000\n"
    for name, run in runs.items():
        records.save_record(root / f"notebooks/runs/{name}.json", run)
        for ending, content in (("out", text.format(run.workers)), ("err", "")) if log else ():
            files.write(root / f"notebooks/runs/{name}.{ending}", content)
    return root


def changed(run, **values):
    """A copy of a run with other values; configuration={...} changes some of its configuration."""
    configuration = run.configuration.model_copy(update=values.pop("configuration", {}))
    return run.model_copy(update={"configuration": configuration} | values, deep=True)


def saved(root, when):
    """Say that all notebooks were last saved at a time, as seconds since 1970."""
    for path in (root / "notebooks").glob("*.ipynb"):
        os.utime(path, (when, when))
    return root
