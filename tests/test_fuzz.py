"""Files and command lines that nobody would write: no traceback, no hang, valid JSON, exit codes as documented."""

import contextlib
import copy
import io
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labs import checks, cli
from labs.checks import kept, tasks
from labs.costs import machine
from labs.errors import LabsError
from labs.results import failures, log
from labs.results import run as records
from labs.slurm import sites

ROOT = Path(__file__).parents[1]
QUICK = settings(
    max_examples=400 if os.environ.get("MORE") else 100,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)

NUMBERS = st.one_of(
    st.integers(), st.floats(), st.sampled_from([0, -1, 1, 10**400, 1e308, -1e308, 5e-324, 2**53, True])
)
ATOMS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
JSON = st.recursive(ATOMS, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=6), part))
ODD = (
    st.sampled_from(["", "x", "\x1b[31m", "\ud800", [], {}, [[]], None, *[0, -1, 10**400, 1e308, float("nan")]]) | JSON
)


def changed(whole):
    """The value with some of its parts replaced by odd ones, or left out."""
    places = []

    def look(part, way):
        if way:
            places.append(way)
        for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
            look(value, (*way, key))

    look(whole, ())

    def change(changes):
        made = json.loads(json.dumps(whole))
        for (*way, last), odd, drop in changes:
            part = made
            with contextlib.suppress(KeyError, IndexError, TypeError):
                for key in way:
                    part = part[key]
                if drop:
                    del part[last]
                else:
                    part[last] = copy.deepcopy(odd)  # or two changes would make a circle of one object
        return made

    return st.lists(st.tuples(st.sampled_from(places), ODD, st.booleans()), min_size=1, max_size=3).map(change)


def cut(text):
    """Bytes of a text with pieces cut out or replaced."""
    data = text.encode()
    place = st.integers(0, len(data))
    change = st.tuples(place, place, st.binary(max_size=6))

    def apply(changes):
        made = data
        for begin, end, instead in changes:
            made = made[: min(begin, end)] + instead + made[max(begin, end) :]
        return made

    return st.lists(change, max_size=2).map(apply)


def run(*words):
    """(exit code, standard output) of a command line of `labs`; argparse's end is one, too."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(map(str, words)))
        except SystemExit as end:
            code = end.code
    assert code in (0, 1, 2), code
    assert code == 0 or err.getvalue().strip() or out.getvalue().strip(), "a refusal says why"
    assert "\x1b" not in out.getvalue() + err.getvalue()
    return code, out.getvalue()


def epoch(number):
    metrics = {"loss": 1.0 / (number + 1), "accuracy": 0.1 * number}
    made = {"repeat": 0, "epoch": number, "round": number or None, "order": 0, "seconds": 3.0 + number / 9}
    return made | {"images": 64, "step_seconds": [1.5, 1.5], "metrics": metrics}


def whole_record(workers):
    configuration = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": 32 * workers}
    made = {"version": 2, "name": "a", "kind": "measured", "state": "finished", "configuration": configuration}
    made |= {"steps": 2, "dataset_images": 64, "study": "s", "machine": {"cpu": "c", "gpus": []}, "job_id": None}
    return made | {"epochs": [epoch(number) for number in range(4)], "versions": {"python": "3"}, "command": ["a"]}


@QUICK
@given(changed(whole_record(2)), changed(whole_record(1)) | st.just(whole_record(1)))
def test_records(two, one):
    with tempfile.TemporaryDirectory() as folder:
        for name, made in (("one", one), ("two", two), ("good", whole_record(1) | {"study": "good"})):
            Path(folder, f"{name}.json").write_text(json.dumps(made))
        code, out = run("results", "--json", folder)
        assert code == 0
        rows = json.loads(out, parse_constant=pytest.fail)["runs"]
        assert any(row["source"] == "good.json" and row["images_per_second"] for row in rows)
        assert run("results", folder)[0] == 0
        with contextlib.suppress(LabsError):
            records.save(Path(folder, "again.json"), records.load(Path(folder, "two.json")))


@QUICK
@given(cut(json.dumps(whole_record(2))))
def test_cut_records(data):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.json").write_bytes(data)
        code, out = run("results", "--json", folder)
        assert code == 2 or json.loads(out, parse_constant=pytest.fail)


LOG = """\
Model ResNet50V2 2 GPUs
Batch_size: 512
[1,0]<stdout>:Epoch 1/2
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626
Epoch 2/2
196/196 - 44s - 224ms/step - accuracy: 0.4536 - loss: 1.5626
Traceback (most recent call last):
  File "a.py", line 3, in <module>
ValueError: no
srun: error: node1: task 1: Exited with exit code 7
"""


@QUICK
@given(cut(LOG) | st.text(alphabet="0123456789/ -s.:Epoch\n\r\b\x1b[]<>e", max_size=300).map(str.encode))
def test_logs(data):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.out").write_bytes(data)
        Path(folder, "a.err").write_bytes(data[::-1])
        code, out = run("results", "--json", Path(folder, "a.out"))
        assert code in (0, 2) and (code or json.loads(out, parse_constant=pytest.fail))
        found = failures.failure(Path(folder, "a.out"))
        assert found is None or found["line_number"] >= 1
        with contextlib.suppress(log.LogError):
            log.read(Path(folder, "a.out"))


CHECK = next(item for lesson in tasks.lessons().values() for item in lesson.task if isinstance(item, tasks.Check))
ITEM = {"state": "right", "points": 1, "attempts": 2, "when": "2026", "answer": "'x'"}
PROGRESS = {"version": 1, "items": {"01.2": ITEM, CHECK.id: ITEM | {"state": "open"}}}


@QUICK
@given(
    changed(PROGRESS).map(json.dumps).map(str.encode) | cut(json.dumps(PROGRESS)) | JSON.map(json.dumps).map(str.encode)
)
def test_progress(data):
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.environ["LABS_RUNS"], before = folder, os.environ.get("LABS_RUNS")
        try:
            kept.progress_file().write_bytes(data)
            checks.progress(folder)
            kept.keep(CHECK, "right", ["answer"])
            assert json.loads(kept.progress_file().read_text())["items"][CHECK.id]["state"] == "right"
            left = [path.read_bytes() for path in Path(folder).glob("progress.json.bad-*")]
            assert left in ([], [data])
            if not left:
                assert json.loads(data)["items"].keys() <= kept.read_progress().keys()
        finally:
            os.environ.pop("LABS_RUNS") if before is None else os.environ.update(LABS_RUNS=before)


SITE, MACHINE = ROOT / "slurm/sites/local.toml", ROOT / "labs/machines/laptop.toml"


@QUICK
@given(st.sampled_from([SITE, MACHINE]).flatmap(lambda path: st.tuples(st.just(path), cut(path.read_text()))))
def test_sites_and_machines(file):
    path, data = file
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "slurm", "sites")
        place.mkdir(parents=True)
        made = place / "mine.toml"
        made.write_bytes(data)
        with contextlib.suppress(LabsError):
            sites.load("mine", folder) if path == SITE else machine.load_machine(made)


VALUES = st.sampled_from(
    ["", "x", "-1", "0", "1e9", "nan", "1000000000000", "\x1b[31m", "--", "-", "9" * 400, "2", "é"]
)
SIZES = ["--workers", "--images", "--model", "--preset", "--image_size"]
OPTIONS = [  # of commands that start no job and count no network when all is well
    (["results", ROOT / "labs/recorded/cte-power-resnet50v2.out"], [*SIZES, "--global_batch"]),
    (["slurm", "sites"], ["--json", "--site"]),
    (["predict", "--model", "ResNet50V2", "--machine", "cte-power", "--workers", "2"],
     ["--workers", "--images", "--local_batch", "--precision", "--one_worker", "--machine", "--input"]),
    (["study", "--dataset", "nope"], [*SIZES, "--repeats", "--seed", "--models", "--epochs"]),
]  # fmt: skip


@QUICK
@given(st.sampled_from(OPTIONS).flatmap(
    lambda command: st.tuples(
        st.just(command[0]), st.lists(st.tuples(st.sampled_from(command[1]), VALUES), min_size=1, max_size=2)
    )
))  # fmt: skip
def test_command_lines(asked):
    command, options = asked
    code, _ = run(*command, *(word for pair in options for word in pair))
    assert command[0] != "study" or code in (1, 2)
