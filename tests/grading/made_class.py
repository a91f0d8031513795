"""A made class: submissions of a few students for notebooks 01, 05 and 06, from the solutions and from synthetic runs.

No run is a recorded one: step times are drawn with the noise that measured ones have, for each student anew.
"""

import json
import random
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from math import exp
from pathlib import Path

from labs import files, report
from labs.checks import tasks
from labs.files import digest
from labs.report.archive import zipped
from labs.results.run import Configuration, Epoch, Run
from teaching.author import regions, render, sources

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ("01_basic_concepts", "05_resnet50_scaling", "06_a_job_for_slurm")
MACHINE = {"cpu": "AMD EPYC", "cores": 2, "memory": 24 << 30, "gpus": [], "platform": "Linux x86_64"}
VERSIONS = {"python": "3.11.7", "tensorflow": "2.21.0", "keras": "3.15.1", "horovod": None, "labs": "0.1.0"}
RUNS = "notebooks/runs/"
_WRITERS = count(1)
WORDS = """the a of in is and one each both all worker core gradient step epoch batch image network memory ring server
bandwidth speedup efficiency waits sends adds takes grows falls slower faster larger because while so but where twice
half less more time rounds noise interval loss accuracy measured predicted baseline""".split()


@cache
def notebook(name, solved):
    """The text of a notebook: the complete form, or the student's."""
    pair = sources.pair(ROOT, ROOT / f"solutions/{name}.py")
    return sources.as_text(pair[0] if solved else pair[1])


def script(name="ResNet50.py"):
    path = ROOT / "solutions/scripts" / name
    return regions.strip_markers(path.read_text(encoding="utf-8"), name)


def swap(text, id, old, new):
    """The notebook `text` with a piece of the source of the cell of item `id` replaced."""
    data = json.loads(text)
    (cell,) = [each for each in data["cells"] if each["metadata"].get("labs", {}).get("id") == id]
    assert old in (source := "".join(cell["source"])), (id, old, source)
    cell["source"] = source.replace(old, new)
    return json.dumps(data)


def study(seed, speed=1.0, smooth=0.06):
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
            dataset_images=512, oversubscribed=False, study=f"s{seed}", machine=MACHINE,
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
            place = {"epoch": number, "round": number or None, "order": 0 if number else None, "images": 512}
            record.epochs.append(Epoch(**place, seconds=whole, step_seconds=steps, metrics=metrics))
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
        each = epoch.seconds / record.steps
        rate = f"{each:.0f}s" if each >= 1 else f"{each * 1e3:.0f}ms"
        said = " - ".join(f"{key}: {value:.4f}" for key, value in epoch.metrics.items())
        head = f"Epoch {epoch.epoch + 1}/7\n{record.steps}/{record.steps}"
        lines.append(f"{head} - {epoch.seconds:.0f}s - {rate}/step - {said}")
    return "\n".join(lines) + "\n"


def written(runs, with_records=True):
    """{path: bytes} of runs, each with its log."""
    made = {}
    for name, record in runs.items():
        made[f"{RUNS}{name}.out"], made[f"{RUNS}{name}.err"] = log(record).encode(), b""
        if with_records:
            made[f"{RUNS}{name}.json"] = record.model_dump_json(indent=1).encode()
    return made


def progress():
    """progress.json in which every check of these notebooks is said to be right."""
    lessons = (tasks.load(ROOT / f"lessons/{name.partition('_')[2]}/tasks.toml") for name in NOTEBOOKS)
    checks = [item for lesson in lessons for item in lesson.task if isinstance(item, tasks.Check)]
    right = {"state": "right", "attempts": 1, "when": "2026-11-02T12:00:00+00:00"}
    return json.dumps({"version": 1, "items": {item.id: right | {"points": item.points} for item in checks}}).encode()


def own_words(text, who):
    """The notebook with written answers of somebody's own, `who`."""
    data = json.loads(text)
    for each in data["cells"]:
        if each["metadata"].get("labs", {}).get("kind") == "answer":
            heading = "".join(each["source"]).partition("\n")[0]
            draw = random.Random(f"{who} {heading}")
            each["source"] = f"{heading}\n\n{' '.join(draw.choices(WORDS, k=80))}."
    return json.dumps(data)


def work(runs=None, notebooks=None, writer=None):
    """{path: bytes} of a student's work. writer: of `own_words`."""
    texts, who = {name: notebook(name, True) for name in NOTEBOOKS} | (notebooks or {}), writer or next(_WRITERS)
    made = {f"notebooks/{name}.ipynb": own_words(text, who).encode() for name, text in texts.items()}
    made |= {"notebooks/scripts/ResNet50.py": script().encode(), f"{RUNS}progress.json": progress()}
    made["slurm/local/ResNet50.sh"] = render.scripts(ROOT)["solutions/slurm/local/ResNet50.sh"].encode()
    return made | written(runs or {})


def packed(contents):
    """submission.zip as `labs report` makes it of some work."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.items():
            files.write(Path(folder, name), content)
        made = report.make(Path(folder, "out"), start=Path(folder, "notebooks"))
        return made.zip.read_bytes()


def scaled(runs, factor):
    """Runs of somebody else, faster by a factor and with the dates moved."""
    made = {name: record.model_copy(deep=True, update={"study": "mine"}) for name, record in runs.items()}
    for record in made.values():
        for epoch in record.epochs:
            epoch.seconds, epoch.step_seconds = epoch.seconds * factor, [s * factor for s in epoch.step_seconds]
        for key in ("started", "finished"):
            moved = datetime.fromisoformat(getattr(record, key)) + timedelta(days=1)
            setattr(record, key, moved.isoformat())
    return made


def wrong():
    """Notebook 05 with mistakes that students make, and 06 as it was given."""
    text = swap(notebook(NOTEBOOKS[1], True), "resnet50.5", "[one / p for", "[p / one for")
    text = swap(text, "resnet50.14", "return fmean(max(one, other) for one in steps for other in steps)", "return 1.5")
    text = swap(text, "resnet50.11", 'why = "c"', 'why = "a"')
    return {NOTEBOOKS[1]: text, NOTEBOOKS[2]: notebook(NOTEBOOKS[2], False)}


def export(folder):
    """class.zip in a folder, as Moodle exports it, in an order that says nothing. Returns its path."""
    one, path = study(1), Path(folder, "class.zip")
    students = {"Honest One": work(one), "=cmd|'calc'!A0": work(study(2)), "Scaled Runs": work(scaled(one, 0.8))}
    students["Wrong Ways"] = work(study(4), wrong())
    handed = {f"{who}_{n}_assignsubmission_file_": packed(of) for n, (who, of) in enumerate(students.items(), 4000)}
    files.write(path, zipped({f"{folder}/submission.zip": content for folder, content in handed.items()}))
    return path
