"""A made class: submissions of 20 students for notebooks 01, 05 and 06, from the solutions and from synthetic runs.

    python tests/grading/made_class.py FOLDER      writes the export of a learning platform, class.zip, into it

No run is a recorded one: step times are drawn with the noise that measured ones have, for each student anew.
"""

import hashlib
import io
import json
import random
import sys
import tempfile
import zipfile
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from math import exp
from pathlib import Path

from labs import files, recorded, report
from labs.checks import tasks
from labs.course.release import digest
from labs.report.archive import zipped
from labs.results import run as records
from labs.results.record import Configuration
from labs.results.run import Epoch, Run
from teaching.author import regions, render, sources

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ("01_basic_concepts", "05_resnet50_scaling", "06_a_job_for_slurm")
MACHINE = {"cpu": "AMD EPYC", "cores": 2, "memory": 24 << 30, "gpus": [], "platform": "Linux x86_64"}
VERSIONS = {"python": "3.11.7", "tensorflow": "2.21.0", "keras": "3.15.1", "horovod": None, "labs": "0.1.0"}
RUNS = "notebooks/runs/"
WRONG = ("resnet50_5", "resnet50_9", "slurm_3")  # and resnet50.12, which is right for the numbers of the notebook only
_WRITERS = count(1)
WORDS = """the a of in is and one each both all worker core gradient step epoch batch image network memory ring server
bandwidth speedup efficiency waits sends adds takes grows falls slower faster larger because while so but where twice
half less more time rounds noise interval loss accuracy measured predicted baseline""".split()
SECOND_HALF = ("T6", "resnet50_8", "resnet50_9", "resnet50_10", "resnet50_11", "resnet50_12", "slurm_1", "slurm_3")


@cache
def notebook(name, solved):
    """The text of a notebook: the complete form, or the student's."""
    pair = sources.pair(ROOT, ROOT / f"solutions/{name}.py")
    return sources.as_text(pair[0] if solved else pair[1])


def script(name="ResNet50.py"):
    path = ROOT / "solutions/scripts" / name
    return regions.strip_markers(path.read_text(encoding="utf-8"), name)


@cache
def batch_script():
    return render.scripts(ROOT)["solutions/slurm/local/ResNet50.sh"].encode()


def cell(text, id, new):
    """The notebook `text` with the source of the cell of item `id` changed by the function `new`."""
    data = json.loads(text)
    (found,) = [c for c in data["cells"] if c["metadata"].get("labs", {}).get("id") == id]
    found["source"] = new("".join(found["source"])).splitlines(keepends=True)
    return json.dumps(data)


def swap(text, id, old, new):
    """The same, with one piece of its source replaced."""

    def swapped(source):
        assert old in source, (id, old, source)
        return source.replace(old, new)

    return cell(text, id, swapped)


def study(seed, speed=1.0, machine=None, smooth=0.06):
    """{name: Run} of 1 and 2 workers in turns, with noise of their own."""
    draw = random.Random(seed)
    began = datetime(2026, 11, 2, 9, tzinfo=UTC) + timedelta(minutes=draw.randrange(9999))
    made, total = {}, 0.0
    for workers, step in ((1, 0.85), (2, 1.15)):
        has = Configuration(
            model="ResNet50V2", strategy="mirrored", workers=workers, nodes=1, global_batch=64 * workers,
            local_batch=64, learning_rate=0.01 * workers, dataset="digits", images=512, image_size=32,
            precision="float32", seed=0, repeats=1, epochs_per_repeat=7,
        )  # fmt: skip
        record = Run(
            name=f"ResNet50_w{workers}", state="finished", configuration=has, epochs=[], steps=8 // workers,
            dataset_images=512, oversubscribed=False, study=f"s{seed}", sharing="turns", machine=machine or MACHINE,
            versions=VERSIONS, command=["scripts/ResNet50.py", "--n_gpus", str(workers)],
            script_sha256=digest(script().encode()), started=began.isoformat(),
        )  # fmt: skip
        drift = 0.0
        for number in range(7):
            drift = 0.7 * drift + draw.gauss(0, smooth / 2)
            steps = [step / speed * exp(drift + draw.gauss(0, smooth)) for _ in range(8 // workers)]
            steps[0] += 6.0 / speed if number == 0 else 0
            learnt = 1 - exp(-0.5 * (number + 1)) + draw.gauss(0, 0.01)
            metrics = {"accuracy": min(0.99, 0.1 + 0.88 * learnt), "loss": 2.3 * (1.05 - learnt)}
            whole = sum(steps) + abs(draw.gauss(0.0006, 0.0002))
            record.epochs.append(
                Epoch(
                    epoch=number, round=number or None, order=0 if number else None, seconds=whole, images=512,
                    step_seconds=steps, metrics=metrics,
                )
            )  # fmt: skip
            total += whole
        made[record.name] = record
    for record in made.values():
        record.finished = (began + timedelta(seconds=int(total) + 20)).isoformat()
    return made


def log(record):
    """What Keras prints of a run."""
    has, lines = record.configuration, []
    lines += [f"Model {has.model} {has.workers} workers", "Strategy: mirrored", f"Batch_size: {has.global_batch}"]
    lines += [f"N_replicas: {has.workers}", f"Images: {has.images}", f"Learning_rate: {has.learning_rate}"]
    for epoch in record.epochs:
        steps = len(epoch.step_seconds) or record.steps
        each = epoch.seconds / steps
        rate = f"{each:.0f}s" if each >= 1 else f"{each * 1e3:.0f}ms"
        said = " - ".join(f"{key}: {value:.4f}" for key, value in epoch.metrics.items())
        lines += [f"Epoch {epoch.epoch + 1}/7", f"{steps}/{steps} - {epoch.seconds:.0f}s - {rate}/step - {said}"]
    return "\n".join(lines) + "\n"


def written(runs, with_records=True):
    """{path: bytes} of runs, each with its log."""
    made = {}
    for name, record in runs.items():
        made[f"{RUNS}{name}.out"], made[f"{RUNS}{name}.err"] = log(record).encode(), b""
        if with_records:
            made[f"{RUNS}{name}.json"] = record.model_dump_json(indent=1).encode()
    return made


def progress(**states):
    """progress.json in which every check of these notebooks is said to be right, but for those named, as resnet50_5."""
    lessons = (tasks.load(ROOT / f"lessons/{name.partition('_')[2]}/tasks.toml") for name in NOTEBOOKS)
    items = {
        item.id: {
            "state": states.get(item.id.replace(".", "_"), "right"),
            "points": item.points,
            "attempts": 1,
            "when": "2026-11-02T12:00:00+00:00",
        }
        for lesson in lessons
        for item in lesson.task
        if isinstance(item, tasks.Check)
    }
    return json.dumps({"version": 1, "items": items}).encode()


def own_words(text, who, begin=""):
    """The notebook with written answers of somebody's own, `who`, behind the words `begin`."""
    data = json.loads(text)
    for each in data["cells"]:
        if each["metadata"].get("labs", {}).get("kind") == "answer":
            heading = "".join(each["source"]).partition("\n")[0]
            draw = random.Random(f"{who} {heading}")
            each["source"] = f"{heading}\n\n{begin}{' '.join(draw.choices(WORDS, k=80))}."
    return json.dumps(data)


def work(runs=None, notebooks=None, solved=True, said=None, writer=None, begin=""):
    """{path: bytes} of a student's work. said: of progress.json; writer, begin: of `own_words`."""
    texts = {name: notebook(name, solved) for name in NOTEBOOKS} | (notebooks or {})
    if solved:
        who = writer or next(_WRITERS)
        texts = {name: own_words(text, who, begin) for name, text in texts.items()}
    made = {f"notebooks/{name}.ipynb": text.encode() for name, text in texts.items()}
    made |= {"notebooks/scripts/ResNet50.py": script().encode(), f"{RUNS}progress.json": progress(**said or {})}
    made |= {"slurm/local/ResNet50.sh": batch_script()}
    return made | written(runs or {})


def packed(contents):
    """submission.zip as `labs report` makes it of some work."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            files.write(Path(folder, name), content)
        made = report.make(Path(folder, "out"), start=Path(folder, "notebooks"), runs=Path(folder, RUNS))
        return made.zip.read_bytes()


def repacked(packed, **changed):
    """A submission.zip with some of its files changed, and a manifest that agrees with them."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents |= {name: content for name, content in changed.items() if content is not None}
    contents = {name: content for name, content in contents.items() if name not in changed or changed[name] is not None}
    named = {
        name: {"sha256": hashlib.sha256(content).hexdigest()}
        for name, content in contents.items()
        if name != "manifest.json"
    }
    return zipped(contents | {"manifest.json": json.dumps({"version": 1, "files": named}).encode()})


def inside(packed, name):
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return archive.read(name)


def scaled(runs, factor):
    """Runs of somebody else, faster by a factor and with the dates moved."""
    made = {}
    for name, record in runs.items():
        made[name] = record = record.model_copy(deep=True)
        record.study = "mine"
        for epoch in record.epochs:
            epoch.seconds, epoch.step_seconds = epoch.seconds * factor, [s * factor for s in epoch.step_seconds]
        for key in ("started", "finished"):
            moved = datetime.fromisoformat(getattr(record, key)) + timedelta(days=1)
            setattr(record, key, moved.isoformat())
    return made


def edited(runs):
    """Runs of which the second was made faster in its record, and nowhere else."""
    runs = {name: record.model_copy(deep=True) for name, record in runs.items()}
    for epoch in runs["ResNet50_w2"].epochs:
        epoch.seconds *= 0.7
    return runs


def recorded_as_own():
    made = {}
    for path in recorded.laptop():
        record = records.load(path.with_suffix(".json"))
        record.name = f"ResNet50_w{record.configuration.workers}"
        made[record.name] = record.model_copy(update={"kind": "measured"})
    return made


def constant(runs):
    runs = {name: record.model_copy(deep=True) for name, record in runs.items()}
    for record in runs.values():
        for epoch in record.epochs:
            epoch.step_seconds = [epoch.seconds / len(epoch.step_seconds)] * len(epoch.step_seconds)
    return runs


def wrong():
    """Notebooks 05 and 06 with mistakes that students make."""
    text = swap(notebook(NOTEBOOKS[1], True), "resnet50.5", "[one / p for", "[p / one for")
    text = swap(text, "resnet50.12", "return fmean(max(one, other) for one in steps for other in steps)", "return 1.5")
    text = swap(text, "resnet50.9", 'why = "c"', 'why = "a"')
    later = swap(notebook(NOTEBOOKS[2], True), "slurm.3", "gpus_of_the_late_line = 0", "gpus_of_the_late_line = 4")
    return {NOTEBOOKS[1]: text, NOTEBOOKS[2]: later}


def half():
    """Notebook 05 of which the second half is still blank, and 05b as blank as it was given."""
    data, blank = (json.loads(notebook(NOTEBOOKS[1], solved)) for solved in (True, False))
    middle = len(data["cells"]) // 2
    first = json.dumps(data | {"cells": data["cells"][:middle] + blank["cells"][middle:]})
    return {NOTEBOOKS[1]: first, NOTEBOOKS[2]: notebook(NOTEBOOKS[2], False)}


def students():
    """{who: bytes of the file that was handed in}, in an order that says nothing."""
    one, two, three = (study(seed) for seed in (1, 2, 3))
    other = study(4) | {
        "ResNet50_w2": study(4, speed=2.5, machine=MACHINE | {"cpu": "Intel Xeon", "cores": 8})["ResNet50_w2"]
    }
    good = packed(work(one))
    faster = packed(work(scaled(study(12), 0.9)))
    made = {
        "Honest One": good,
        "Honest Two": packed(work(two)),
        "Honest Three": packed(work(three)),
        "Other Machine": packed(work(other)),
        "Half Done": packed(work(study(5), half(), said=dict.fromkeys(SECOND_HALF, "open"))),
        "Wrong Ways": packed(work(study(6), wrong(), said=dict.fromkeys(WRONG, "wrong"))),
        "Copied Runs": packed(work(scaled(one, 1.0))),
        "Scaled Runs": packed(work(scaled(two, 0.8))),
        "Recorded Own": packed(work(recorded_as_own())),
        "Edited Pdf": repacked(packed(work(study(12))), **{"report.pdf": inside(faster, "report.pdf")}),
        "Edited Record": packed(work(writer="pair") | written(study(13)) | {
            f"{RUNS}ResNet50_w2.json": edited(study(13))["ResNet50_w2"].model_dump_json().encode()
        }),
        "Edited Json": repacked(
            packed(work(study(14), writer="pair", begin="To begin with: ")),
            **{"report.json": inside(faster, "report.json")},
        ),
        "Empty Zip": zipped({}),
        "Damaged Zip": good[: len(good) // 2],
        "Log Only": repacked(packed(work()), **written(study(17), with_records=False)),
        "Too Smooth": packed(work(constant(study(18)))),
        "Too Fast": packed(work(study(19, speed=400.0))),
        "Forged Progress": packed(work(study(20), solved=False)),
    }  # fmt: skip
    made["Two Times"] = made["Half Done"]
    made["=cmd|'calc'!A0"] = packed(work(study(21)))
    return made


def export(folder):
    """class.zip in a folder, as Moodle exports it. Returns its path."""
    entries = {
        f"{who}_{4000 + number}_assignsubmission_file_/submission.zip": content
        for number, (who, content) in enumerate(students().items())
    }
    path = Path(folder, "class.zip")
    files.write(path, zipped(entries))
    return path


if __name__ == "__main__":
    print(export(sys.argv[1]))
