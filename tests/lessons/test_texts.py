"""What the texts of the lessons say in numbers, computed again; and which intervals they call 95 %."""

import ast
import math
import re
from pathlib import Path

import pytest

from labs import recorded
from labs.checks import tasks

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted((ROOT / "solutions").glob("[0-9]*.py"))
ABSOLUTE = re.compile(r"epoch times?\b|images?(?:/| per )second|images/s\b|seconds", re.IGNORECASE)


def texts(file):
    """The text of each Markdown cell of a lesson, in one line."""
    cells = re.split(r"^# %%", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [re.sub(r"\s*\n# ?", " ", cell.partition("\n")[2]) for cell in cells if cell.startswith(" [markdown]")]


def found(pattern, name):
    """The groups of a pattern in a lesson's texts, as numbers."""
    (match,) = re.finditer(pattern, " ".join(texts(next((ROOT / "solutions").glob(f"{name}_*.py")))))
    return [float(group.replace(",", "")) for group in match.groups()]


def test_memory_of_a_network_of_175_billion_weights():
    bytes_each, weights, gradients, kept, gigabytes = found(
        r"Adam needs (\d+) bytes for each weight: (\d+) for the weight and (\d+) for its gradient, in 16 bits, "
        r"and (\d+) for a copy.*? That makes ([\d,]+) GB",
        "01",
    )
    assert weights + gradients + kept == bytes_each
    assert gigabytes == 175 * bytes_each


def test_the_newer_device_gives_what_the_number_of_devices_does_not():
    years, days, devices, times, most, rest = found(
        r"\*\*(\d+) years on one V100\*\*.*?\*\*(\d+) days on (\d+) A100\*\*.*? That is (\d+) times as fast\. The "
        r"number of devices accounts for a factor of (\d+) at best. The rest, a factor of ([\d.]+) or more",
        "01",
    )
    assert times == pytest.approx(years * 365 / days, rel=1e-3)
    assert most == devices and rest == pytest.approx(times / devices, abs=0.05)


def test_batch_up_to_which_the_state_of_vgg16_takes_more_than_its_activations():
    (batch,) = found(r"up to a batch size of (\d+), its weights, gradients and momentum take more", "01")
    parameters, activations = recorded.networks()["VGG16"]
    assert batch * activations < 3 * 4 * parameters < (batch + 1) * activations
    assert activations < recorded.networks()["ResNet50V2"][1]


def test_messages_of_a_tree():
    workers, tree, ring = found(
        r"takes 2 log2 K successive messages .*?: for (\d+) workers, (\d+) instead of (\d+)", "02b"
    )
    assert (tree, ring) == (2 * math.log2(workers), 2 * (workers - 1))


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)
def test_intervals_of_seconds_and_images_hold_in_these_minutes_only(file):
    for text in texts(file):
        for sentence in re.split(r"(?<=[.:?!]) ", text):
            if re.search(r"95 % interval", sentence) and ABSOLUTE.search(sentence):
                assert "these minutes" in sentence or "the same few minutes" in sentence, sentence


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)
def test_a_quotation_has_its_mark_at_each_line_and_nowhere_else(file):
    for block in re.findall(r"(?m)^# > .*\n(?:# .*\n)*", file.read_text(encoding="utf-8")):
        assert all(re.match(r"# >(?!.* > )", line) for line in block.splitlines()), f"wrapped as a paragraph: {block}"


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)
def test_a_cell_that_fills_a_list_begins_it(file):
    """Or its rows double when the cell runs again."""
    for cell in re.split(r"(?m)^# %%.*\n", file.read_text(encoding="utf-8")):
        nodes = list(ast.walk(ast.parse(cell)))
        added = [node.target for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)]
        calls = [n.func for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
        filled = {ast.unparse(call.value) for call in calls if call.attr in ("append", "extend")}
        begun = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in added}
        begun |= {argument.arg for argument in nodes if isinstance(argument, ast.arg)}
        names = {name for name in filled | set(map(ast.unparse, added)) if name.isidentifier()}
        assert names <= begun, f"{sorted(names - begun)} is filled here and begun in another cell"


@pytest.mark.parametrize("name", ["22_when_workers_do_not_help", "23_large_batches"])
def test_no_setting_of_a_measurement_is_given_in_two_cells(name):
    """Cells may run in another order: then a run would take the steps of another, and its outcome would be wrong."""
    given = []
    for cell in re.split(r"(?m)^# %%.*\n", (ROOT / f"solutions/{name}.py").read_text(encoding="utf-8")):
        targets = {n.id for n in ast.walk(ast.parse(cell)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        given += sorted(targets & {"count", "steps", "rounds", "seeds", "rates", "batches"})
    assert given and sorted(set(given)) == sorted(given)


def test_the_runs_of_notebook_06_take_turns():
    """Those on 1 and on 2 ranks, or the report would say of their speedup that it has no repeats."""
    places = "solutions/07_horovod_sharding.py", "lessons/horovod_sharding/experiments.py"
    trees = [ast.parse((ROOT / place).read_text(encoding="utf-8")) for place in places]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.func) for call in calls]
    assert names.count("jobs.Turns") == 1 and names.count("experiments.on_1_and_2_ranks") == 2
    compared = [call for call in calls for each in call.keywords if each.arg == "name" and "_w" in ast.unparse(each)]
    assert [ast.unparse(call.func) for call in compared] == ["turns.start"]


def test_a_text_that_names_the_strategy_of_several_machines_says_that_it_fails():
    readme = (ROOT / "docs/students/horovod.md").read_text(encoding="utf-8")
    named = [text for text in (readme, *(text for file in LESSONS for text in texts(file))) if "MultiWorker" in text]
    assert len(named) == 3 and readme in named
    assert all("20585" in text for text in named)


ONLY = "**Paths:** only *everything* contains this notebook."


def path_line(lesson):
    """What the top of a notebook says of the ways through the course: where each goes on, and which leaves it out."""
    on, out = [], []
    for path, name in (("afternoon", "an afternoon"), ("practical", "the practical")):
        lessons = tasks.on_path(path)
        if lesson not in lessons:
            out.append(f"*{name}*")
            continue
        later = lessons[lessons.index(lesson) + 1 :]
        on.append(f"*{name}* ({f'next: `{later[0].notebook}`' if later else 'its last notebook'})")
    left = f"; {out[0]} leaves this notebook out" if out else ""
    return f"**Paths:** {', '.join([*on, '*everything*'])}{left}." if on else ONLY


@pytest.mark.parametrize("lesson", tasks.lessons().values(), ids=lambda lesson: lesson.notebook)
def test_a_notebook_says_on_which_paths_it_lies(lesson):
    text = (ROOT / f"solutions/{lesson.notebook}.py").read_text(encoding="utf-8")
    assert text.count(f"\n# {path_line(lesson)}\n") == 1, f"its first cell lacks: {path_line(lesson)}"
    lessons = list(tasks.lessons().values())
    for later in lessons[lessons.index(lesson) + 1 :][:1]:
        told = text.rpartition("Next: ")[2].partition("# %%")[0]
        assert later.optional or f"`{later.notebook}`" in told, f"ends without: Next: `{later.notebook}`"
