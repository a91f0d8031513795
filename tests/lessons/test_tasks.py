"""Every self-checked question: the right answers are accepted, plausible wrong ones get a hint of their own.

ANSWERS is the one table: add a row for every question that you register. `secret` is what a hint must not say.
"""

import copy
import json
import os
import re
import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import numpy as np
import pytest
from batch_scripts import ANSWERS as ANSWERS_SLURM
from nb01 import ANSWERS as ANSWERS01
from nb02 import ANSWERS as ANSWERS02
from nb06 import ANSWERS as ANSWERS06
from nb07 import ANSWERS as ANSWERS07
from nb08 import ANSWERS as ANSWERS08

from labs import blanks
from labs.author import regions
from labs.checks import judging as checks
from labs.results.run import Epoch, Run

checks.load_lessons()
ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "solutions/scripts/ResNet50.py").read_text()
RUN = Run("w1.out", repeats=[[Epoch(8.2), Epoch(5.1), Epoch(5.0), Epoch(5.2)], [Epoch(6.0), Epoch(5.0)]])
ROWS = [
    {
        "workers": n,
        "steps": s,
        "epoch_seconds": t,
        "images_per_second": 768 / t,
        "speedup": 9.1 / t,
        "kind": "measured",
        "source": f"w{n}.json",
        "failure": None,
        "truncated": False,
    }
    for n, s, t in ((1, 12, 9.1), (2, 6, 5.6), (4, 3, 5.2))
]
TRAINABLE, FROZEN = 23_539_850, 45_440  # parameters of ResNet50V2 with 10 classes (tests/test_models.py)
OOM = "OOM when allocating tensor with shape[512,64,8,8] and type float on device:CPU:0 by allocator cpu"
ERR = [
    "Traceback (most recent call last):",
    '  File "labs/measure/maxbatch.py", line 180, in _trials',
    "tensorflow.errors_impl.ResourceExhaustedError: Graph execution error:",
    "",
    f"  {OOM}",
]


def changed(rows, number, **values):
    rows = copy.deepcopy(rows)
    rows[number] |= values
    return rows


def figure(rows=ROWS, panels=3, label=True, speedup=itemgetter("speedup")):
    from matplotlib.figure import Figure

    result = Figure()
    draw = {key: itemgetter(key) for key in ("epoch_seconds", "images_per_second")} | {"speedup": speedup}
    for axis, (name, value) in zip(result.subplots(1, panels), draw.items(), strict=False):
        axis.plot([row["workers"] for row in rows], [value(row) for row in rows], "o-")
        if label:
            axis.set(xlabel="workers", ylabel=name)
    return result


def kits_figure():
    from labs.show import plots

    extra = {"model": "ResNet50V2", "strategy": "mirrored"}
    return plots.scaling([row | extra for row in ROWS])


def swapped(*pairs):
    """The solution script with some text replaced, in the files of the running test."""

    def write(folder):
        text = SCRIPT
        for old, new in pairs:
            assert old in text, f"ResNet50.py has changed: {old!r} is no more in it"
            text = text.replace(old, new)
        return (path_of(folder, "ResNet50.py", text),)

    return write


def path_of(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def evidence(line, found=True):
    def write(folder):
        err = path_of(folder, "search.err", "\n".join(ERR))
        return line, {"evidence": {"file": str(err), "line_number": 5, "line": OOM} if found else None}

    return write


def outside_scope(text=SCRIPT):
    """The script with its network created before the scope."""
    start = text.index("    ### BEGIN SOLUTION\n    network")
    end = text.index("### END SOLUTION\n", start) + len("### END SOLUTION\n")
    block, scope = text[start:end], "with strategy.scope()"
    moved = block.replace("\n    ", "\n").removeprefix("    ") + scope
    return lambda folder: (path_of(folder, "ResNet50.py", text.replace(block, "").replace(scope, moved)),)


def distance(reduce, pairs=lambda copies: [(c, copies[0]) for c in copies], absolute=np.abs):
    return lambda copies: reduce([np.max(absolute(a - b)) for a, b in pairs(copies)])


# Answers are tuples, or functions of a folder that give a tuple; for 03.3 and 03.9 the text of an expression.
ANSWERS = {
    "00.1": dict(
        right=[("core",), (" Core ",), ("a CPU core",)],
        wrong=[("gpu",), ("cpu",), ("process",), ("machine",)],
        secret=r"\bcore",
    ),
    "03.2": dict(right=[(1,), (1.0,)], wrong=[(4,), (0,), (2,)], secret=r"\b1\b|\bone\b device"),
    "03.3": dict(
        right=["mirrored"],
        wrong=["tf.Variable([1.0, 2.0, 3.0])", "on_two", "other_shape", "zeros", "[1.0, 2.0, 3.0]"],
        secret=None,
    ),
    "03.4": dict(right=[(4,), ([4, 4, 4, 4],), (np.int32(4),)], wrong=[(16,), (64,), (8,)], secret=r"\b4\b"),
    "03.5": dict(
        right=[(lambda x, n: np.sum(x) / n,), (lambda x, n: sum(x / n),)],
        wrong=[
            (lambda x, n: np.mean(x),),
            (lambda x, n: np.sum(x),),
            (lambda x, n: np.mean(x) / n,),
            (lambda x, n: np.max(x),),
        ],
        secret=r"\b16\b|global",
    ),
    "03.6": dict(
        right=[(distance(max),), (distance(max, lambda c: [(a, b) for a in c for b in c]),)],
        wrong=[
            (distance(max, lambda c: [(c[-1], c[0])]),),
            (distance(max, absolute=lambda x: x),),
            (distance(max, absolute=lambda x: -x),),
            (distance(np.mean),),
            (lambda copies: 1.0,),
        ],
        secret=r"\b5\b",
        same=[(1, 2)],  # the two signs of one mistake
    ),
    "03.7": dict(
        right=[(4 * TRAINABLE,), (4.0 * TRAINABLE,)],
        wrong=[(TRAINABLE,), (4 * (TRAINABLE + FROZEN),), (8 * TRAINABLE,), (32 * TRAINABLE,), (25_600_000,)],
        secret=r"94[.,\s]?1\d\d",
        same=[(2, 3)],  # twice too many: workers or bits
    ),
    "03.8": dict(right=[("b",), ("B)",)], wrong=[("a",), ("c",), ("d",), ("e",)], secret=None),
    "03.9": dict(
        right=["compiled(scope=True)", "compiled(scope=True, jit_compile='auto')"],
        wrong=[
            "compiled(scope=False)",
            "in_scope",
            "compiled(scope=True, jit_compile=True)",
            "half",
            "late",
            "keras.Sequential()",
            "'model'",
        ],
        secret=None,
    ),
    "04.1": dict(right=[("d",)], wrong=[("a",), ("b",), ("c",)], secret=None),
    "04.2": dict(
        right=[(4 * (TRAINABLE + FROZEN),)],
        wrong=[
            (TRAINABLE + FROZEN,),
            (2 * (TRAINABLE + FROZEN),),
            (8 * (TRAINABLE + FROZEN),),
            (32 * (TRAINABLE + FROZEN),),
            (4 * TRAINABLE,),
        ],
        secret=r"94[.,\s]?3\d\d",
    ),
    "04.4": dict(
        right=[(lambda fits, fails: (fits + fails) // 2,), (lambda fits, fails: fits + (fails - fits) / 2,)],
        wrong=[
            (lambda a, b: a,),
            (lambda a, b: a + 1,),
            (lambda a, b: 2 * b,),
            (lambda a, b: 96,),
            (lambda a, b: b - 1,),
        ],
        secret=r"\b96\b|\b112\b",
    ),
    "04.5": dict(
        right=[evidence(OOM), evidence(f"  {OOM}\n")],
        wrong=[
            evidence(ERR[0]),
            evidence("OOM"),
            evidence("I ran out of memory"),
            evidence(ERR[1]),
            evidence(OOM, found=False),
        ],
        secret=r"allocating",
        same=[(1, 2), (0, 3)],  # neither is a line of the file; both are about where Python was
    ),
    "04.6": dict(
        right=[(1024, 0.04), (4 * 256, 4 * 0.01)],
        wrong=[(256, 0.04), (64, 0.04), (512, 0.04), (1024, 0.01), (1024, 0.02), (1024, 0.0025), (1024, 0.4)],
        secret=r"1024|0\.04\b",
    ),
    "04.7": dict(
        right=[(7, 848), (np.int64(7), 848.0)],
        wrong=[(6, 848), (6.1, 848), (7, 8192), (7, 7344)],
        secret=r"\b7\b|\b848\b|\bseven\b",
    ),
    "04.8": dict(right=[("c",)], wrong=[("a",), ("b",), ("d",)], secret=None),
    "05.3": dict(
        right=[
            swapped(),
            swapped(("0.01 * args.n_gpus", "0.01 * strategy.num_replicas_in_sync")),
            swapped(("0.01 * args.n_gpus", "args.n_gpus / 100")),
        ],
        wrong=[
            swapped(("tf.distribute.MirroredStrategy(devices=workers)", "tf.distribute.get_strategy()")),
            swapped(("MirroredStrategy(devices=workers)", "MirroredStrategy()")),
            swapped(("0.01 * args.n_gpus", "0.01")),
            swapped(("0.01 * args.n_gpus", "0.01 * args.n_gpus ** 0.5")),
            swapped(("0.01 * args.n_gpus", "0.1 * args.n_gpus")),
            outside_scope(),
            swapped((", callbacks=[recorder]", "")),
            swapped(("verbose=2", "verbose=1")),
            swapped(("keras.applications.ResNet50V2(", "keras.applications.ResNet50(")),
            swapped(("model.fit(", "model.evaluate(")),
        ],
        secret=r"0\.04\b|devices=workers",
    ),
    "05.4": dict(
        right=[(5.1, RUN), (5, RUN), (15.3 / 3, RUN)],
        wrong=[(23.5 / 4, RUN), (8.2, RUN), (15.3, RUN), (2.0, RUN)],
        secret=r"\b5\.1",
    ),
    "05.5": dict(
        right=[(lambda images, seconds: images / seconds,)],
        wrong=[(lambda i, s: s / i,), (lambda i, s: i * s,), (lambda i, s: i,)],
        secret=r"1111",
    ),
    "05.6": dict(
        right=[(lambda one, p: one / p,)],
        wrong=[(lambda one, p: p / one,), (lambda one, p: one - p,), (lambda one, p: one,)],
        secret=r"3\.75",
    ),
    "05.7": dict(
        right=[(lambda s, p: s / p,)],
        wrong=[(lambda s, p: s * p,), (lambda s, p: p / s,), (lambda s, p: s,), (lambda s, p: p,)],
        secret=r"0?\.9375|93\.75",
        same=[(0, 1)],  # both give more than 1
    ),
    "05.8": dict(
        right=[(ROWS,), (ROWS[:2],)],
        wrong=[
            (ROWS[1:],),
            (ROWS[:1],),
            (changed(ROWS, 1, truncated=True),),
            ("runs/w1.out",),
            (changed(ROWS, 1, kind="recorded"),),
        ],
        secret=None,
    ),
    "05.9": dict(right=[(12, 6, ROWS)], wrong=[(12, 12, ROWS), (6, 12, ROWS), (768, 384, ROWS)], secret=r"\b(12|6)\b"),
    "05.10": dict(
        right=[(0.89, 0.989), (44.5 / 12.5 / 4, 45.5 / 11.5 / 4)],
        wrong=[(0.9375, 0.9375), (0.9, 0.978), (0.967, 0.91), (3.56, 3.957), (0.915, 0.958)],
        secret=r"0?\.89\b|0?\.98\d?",
        same=[(3, 4)],  # the formula is told for both
    ),
    "05.11": dict(right=[("c",)], wrong=[("a",), ("b",), ("d",)], secret=None),
    "T6": dict(
        right=[(figure(), ROWS), (kits_figure(), ROWS)],
        wrong=[
            (figure(panels=2), ROWS),
            (figure(label=False), ROWS),
            (figure(ROWS[::-1]), ROWS),
            (figure(speedup=lambda row: 1 / row["speedup"]), ROWS),
            (figure(speedup=lambda row: row["speedup"] / row["workers"]), ROWS),
        ],
        secret=None,
    ),
}
ANSWERS |= ANSWERS01 | ANSWERS02 | ANSWERS06 | ANSWERS07 | ANSWERS08 | ANSWERS_SLURM

ON_FOUR_DEVICES = """
import json, sys
from labs import devices, models
from labs.checks import judging as checks
import keras
import tensorflow as tf
tf.get_logger().setLevel("ERROR")
workers = devices.workers(4, pin=False, kind="cpu")
strategy = tf.distribute.MirroredStrategy(devices=workers)
with strategy.scope():
    mirrored, other_shape, zeros = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([1.0, 2.0]), tf.Variable([0.0] * 3)
with tf.distribute.MirroredStrategy(devices=workers[:2]).scope():
    on_two = tf.Variable([1.0, 2.0, 3.0])


def compiled(scope, jit_compile=False, optimizer=None):
    with strategy.scope() if scope else tf.device("CPU:0"):
        model = models.build("SmallCNN", image_size=32, classes=10)
        model.compile(optimizer or keras.optimizers.SGD(0.04), "sparse_categorical_crossentropy",
                      jit_compile=jit_compile)
    return model


outside, late = models.network("SmallCNN", 32, 10), compiled(True, optimizer=keras.optimizers.SGD(0.04))
with strategy.scope():
    in_scope = models.build("SmallCNN", 32, 10)
    half = keras.Sequential([outside, keras.layers.Dense(10)])
    half.compile("sgd", "mse", jit_compile=False)
print(json.dumps({text: checks.judge(id, eval(text)) for id, text in json.loads(sys.argv[1])}))
"""


@pytest.fixture(scope="module")
def four_devices():
    """What is said to the answers of notebook 03 that need 4 devices: their number is fixed once in a process."""
    texts = [(id, text) for id in ("03.3", "03.9") for text in ANSWERS[id]["right"] + ANSWERS[id]["wrong"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", ON_FOUR_DEVICES, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def judge(request, tmp_path, monkeypatch):
    """judge(id, answer) -> (state, text)"""
    from labs import devices

    monkeypatch.setattr(devices, "gpus", lambda: [])

    def judge(id, answer):
        if isinstance(answer, str):
            return request.getfixturevalue("four_devices")[answer]
        return checks.judge(id, *(answer(tmp_path) if callable(answer) else answer))

    return judge


CHECKED = sorted(id for id, item in checks.REGISTRY.items() if item.kind == "check")


def test_every_question_is_in_the_table_with_two_wrong_answers_or_more():
    assert sorted(ANSWERS) == CHECKED
    assert [id for id, row in ANSWERS.items() if not row["right"] or len(row["wrong"]) < 2] == []


@pytest.mark.parametrize("id", ANSWERS)
def test_right_answers_are_accepted(id, judge):
    for number, answer in enumerate(ANSWERS[id]["right"]):
        assert list(judge(id, answer)) == ["right", checks.REGISTRY[id].why], f"{id}, right answer {number}"
    assert checks.REGISTRY[id].why  # what is right is explained, too


@pytest.mark.parametrize("id", ANSWERS)
def test_wrong_answers_get_a_hint_of_their_own(id, judge):
    row, hints = ANSWERS[id], []
    for number, answer in enumerate(row["wrong"]):
        state, hint = judge(id, answer)
        assert state == "wrong", f"{id}: wrong answer {number} is taken for right"
        assert hint.strip().rstrip(")").endswith((".", "?")) and "\n" not in hint and len(hint) > 25
        assert "cannot be read" not in hint, f"{id}: wrong answer {number} breaks the check: {hint}"
        hints.append(hint)
    alike = {frozenset(pair) for pair in row.get("same", ())}
    for one in range(len(hints)):
        for other in range(one):
            if frozenset((one, other)) not in alike:
                assert hints[one] != hints[other], f"{id}: wrong answers {other} and {one} get the same hint"
    assert len(set(hints)) >= 2


@pytest.mark.parametrize("id", [id for id in ANSWERS if ANSWERS[id]["secret"]])
def test_hints_do_not_give_the_answer_away(id, judge):
    for answer in ANSWERS[id]["wrong"]:
        _, hint = judge(id, answer)
        given = " ".join(map(repr, answer)) if isinstance(answer, tuple) else ""
        told = [word for word in re.findall(ANSWERS[id]["secret"], hint) if str(word) not in given]
        assert not told, f"{id}: the hint {hint!r} tells {told}"


@pytest.mark.parametrize("id", ANSWERS)
def test_blank_answers_are_open_not_wrong(id):
    assert checks.judge(id, ...)[0] == "open"


@pytest.mark.parametrize("id", ANSWERS)
@pytest.mark.parametrize("nonsense", ["", "x", -1, 3.7, [], {}, object()])
def test_nonsense_never_breaks_a_check_nor_passes_it(id, nonsense):
    item = checks.REGISTRY[id]
    count = item.judge.__code__.co_argcount - len(item.judge.__defaults__ or ())
    state, text = checks.judge(id, *[nonsense] * count)
    assert state == "wrong" and text


def test_script_with_blanks_is_open_and_names_the_line(tmp_path):
    path = path_of(tmp_path, "ResNet50.py", regions.blank(SCRIPT))
    state, text = checks.judge("05.3", path)
    assert state == "open" and f"Line {blanks.blanks(path)[0][0]} of ResNet50.py is still blank" in text


def test_points_and_ids():
    for item in checks.REGISTRY.values():
        assert re.fullmatch(r"[THS]\d+|\d\d\.\d+", item.id)
        assert item.title and (ROOT / "solutions" / f"{item.notebook}.py").exists()
        assert (item.points > 0) == (item.kind != "prediction")
        assert not re.fullmatch(r"\d\d\..*", item.id) or item.notebook.startswith(item.id[:2])
