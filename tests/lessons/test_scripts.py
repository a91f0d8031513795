"""Training scripts in many styles: what does the right thing is right, and a mistake gets the hint that names it."""

import copy
import re
from pathlib import Path

import pytest
from making import SOLUTIONS, edited, solution

from labs import blanks, checks, devices
from lessons import training_scripts
from lessons.training_scripts import lines_of
from teaching.author import regions

STEPS = {f"horovod.{number + 6}": number for number in range(1, 7)}  # of ResNet50_horovod.py
IMPORTS = """import horovod.tensorflow as horovod
import keras
from labs.hvd import DistributedOptimizer, rank, size
from labs.hvd.callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback
"""


def in_a_function(path):
    """The statements after the imports of a script stand in main(), which a guard calls."""
    head, middle, body = path.read_text().partition("parser = argparse")
    lines = "\n".join(f"    {line}" if line.strip() else line for line in (middle + body).split("\n"))
    path.write_text(f'{head}def main() -> None:\n{lines}\n\nif __name__ == "__main__":\n    main()\n')


STYLE = [  # names of one's own for what is watched, at once with all else that a style may do otherwise
    *((f"# {number}. ", "# ") for number in STEPS.values()),
    ("import keras\n", IMPORTS),
    ("\nranks.agree(", "\nhvd.broadcast(hvd.allreduce([1.0]), root_rank=0)  # all have come here\nranks.agree("),
    ("numbers.shard(hvd.size(), hvd.rank())", "(lambda each: each.shard(index=rank(), num_shards=size()))(numbers)"),
    ("0.01 * hvd.size()", "0.01 * horovod.size()"),
    ("hvd.DistributedOptimizer(", "DistributedOptimizer("),
    ("[hvd.callbacks.BroadcastGlobalVariablesCallback(0), ", "(BroadcastGlobalVariablesCallback(root_rank=0), "),
    ("hvd.callbacks.MetricAverageCallback()]", "MetricAverageCallback(), keras.callbacks.TerminateOnNaN())"),
]


def test_a_script_of_ranks_is_right_in_another_style(tmp_path):
    (path,) = edited("horovod.7", *sum(STYLE, ()))(tmp_path)
    in_a_function(path)
    assert {id: checks.judge(id, path) for id in STEPS} == {id: ("right", checks.task(id).why, None) for id in STEPS}


@pytest.mark.parametrize("id", ["horovod.4", *STEPS])
def test_a_blank_is_named_and_a_step_is_right_while_the_others_are_blank(id, tmp_path):
    name, _, text = solution(id)
    path = tmp_path / Path(name).name
    path.write_text(regions.blank(text))
    first = lines_of(path, STEPS[id])[0] if id in STEPS else path.read_text().partition("def distr")[0].count("\n")
    line = min(line for line, _ in blanks.blanks(path) if line > first)
    state, hint, _ = checks.judge(id, path)
    assert state == "open" and f"Line {line} of {path.name} is still blank" in hint
    if id in STEPS:
        head, begin, rest = text.partition(f"# {STEPS[id]}. ")
        filled = rest.replace("### BEGIN SOLUTION\n", "", 1).replace("### END SOLUTION\n", "", 1)
        path.write_text(regions.blank(head + begin + filled))
        assert blanks.blanks(path) and checks.judge(id, path)[0] == "right"


def test_a_strategy_that_takes_whatever_devices_there_are_is_wrong(tmp_path):
    state, hint, _ = checks.judge("resnet50.3", *edited("resnet50.3", "devices=workers", "")(tmp_path))
    assert state == "wrong" and "MirroredStrategy has" in hint, hint


def test_names_of_gpus_are_right_on_a_machine_that_has_them(tmp_path, monkeypatch):
    path = edited("resnet50.3", "devices=workers", '[f"GPU:{n}" for n in range(args.n_gpus)]')(tmp_path)
    for gpus, state in (["GPU:0", "GPU:1"], "right"), ([], "wrong"):
        monkeypatch.setattr(devices, "gpus", lambda gpus=gpus: gpus)
        assert checks.judge("resnet50.3", *path)[0] == state


ERROR = {"line": None, "code": "", "says": "It broke."}
NO_LIST = {"line": 7, "code": "MirroredStrategy(args.n_gpus)", "says": "TypeError: 'int' object is not iterable."}
FACTS = [  # what the right script does, with a fact changed: of all ("*"), of the ranks ("r"), of one by its number
    ("resnet50.3", {"* networks 0 weights": "imagenet"}, "weights='imagenet': pass weights=None"),
    ("resnet50.3", {"* networks 0 logits": True}, "no probabilities"),
    ("resnet50.3", {"* fits 0 outputs": [10]}, "gives 10 numbers for an image, but the data set has 100 classes"),
    ("resnet50.3", {"* fits 0 mirrored": False}, "made outside `strategy.scope"),
    ("resnet50.3", {"* fits 0 optimizer name": "Adam"}, "The optimizer is Adam"),
    ("resnet50.3", {"1 fits 0 rate": 0.01 / 3}, "with 0.003333. That of one worker is 0.01"),
    ("resnet50.3", {"1 fits 0 passes 0": lambda _, steps: steps[:1] * 2}, "read more than once"),
    ("resnet50.3", {"1 fits 0 passes 0": lambda _, steps: steps[:1]}, "reads 36 of 100 images"),
    ("resnet50.3", {"1 fits 0 epochs": 5}, "With --epochs 3, `fit` is asked for 5 epochs"),
    ("resnet50.3", {"* fits 0 verbose": 0}, "verbose=2"),
    ("resnet50.3", {"1 strategies 0": ["CPU:0"]}, "With --n_gpus 3 MirroredStrategy has 1 replica: give"),
    ("resnet50.3", {"1 error": NO_LIST}, r"line 7: .*TypeError: .* It takes the list `workers`"),
    ("resnet50.3", {"1 error": ERROR}, "With 3 workers, outside your script: It broke."),
    ("resnet50.3", {"* networks": []}, "No network of keras.applications is created: where is ResNet50V2"),
    ("resnet50.3", {"1 log": "Model ResNet50V2 1 workers\n"}, "With 3 workers .* the log .* `Model ResNet50V2 1"),
    ("resnet50.3", {"* record": None}, "left no record"),
    ("resnet50.3", {"1 record state": "failed"}, "The record is failed after 1 epoch of 100 images"),
    ("horovod.8", {"* hvd pins 0 local_rank": lambda n, _: n - 1}, "counts over all nodes: rank 5 is on the second"),
    ("horovod.8", {"r hvd pins": [{"local_size": 1}], "3 error": ERROR}, "As rank 2 of 6, outside your script: "),
    ("horovod.9", {"r fits 0 passes 0": lambda n, _: [[*range((n - 1) % 3, 48, 3)]]}, "ranks of both, 0 and 3, read"),
    ("horovod.9", {"6 fits 0 passes 0": lambda _, steps: steps[:-1]}, "With 6 ranks on 2 nodes: "),
    ("horovod.9", {"* fits 0 counted": False}, "does not know how many steps it has"),
    ("horovod.9", {"r fits 0 passes 0": lambda _, steps: [sum(steps, [])]}, "24, a rank takes 8 in a step"),
    ("horovod.9", {"r fits": []}, "ends without calling `fit`"),
    ("horovod.9", {"3 fits": [], "3 error": ERROR}, "As rank 2 of 6, outside your script: It broke."),
    ("horovod.10", {"* fits 0 optimizer gradient_accumulation_steps": 4}, "gradient_accumulation_steps=4"),
    ("horovod.10", {"r fits 0 rate": 0.03}, "which is 0.03 on 6 ranks"),
    ("horovod.11", {"r fits 0 callbacks": lambda _, each: [each[1], each[2], each[0]]}, "comes before"),
    ("horovod.11", {"r fits 0 callbacks": lambda _, each: [each[0], each[2], each[1]]}, "comes before"),
]


@pytest.mark.parametrize(("id", "changes", "says"), FACTS, ids=range(len(FACTS)))
def test_a_mistake_is_named_by_what_a_script_does(id, changes, says, monkeypatch):
    monkeypatch.setattr(devices, "gpus", list)
    real, path = training_scripts.try_out_script, SOLUTIONS / solution(id)[0]
    assert checks.judge(id, path)[0] == "right"  # the kit remembers for all rows what the script does

    def tried(*asked):
        plays = copy.deepcopy(real(*asked))
        for place, value in changes.items():
            which, *way, last = [int(word) if word.isdecimal() else word for word in place.split()]
            for number, facts in enumerate(plays):
                if which in ("*", number) or (which == "r" and number):
                    for key in way:
                        facts = facts[key]
                    facts[last] = value(number, facts[last]) if callable(value) else value
        return plays

    monkeypatch.setattr(training_scripts, "try_out_script", tried)
    state, hint, _ = checks.judge(id, path)
    assert state == "wrong" and re.search(says, hint), hint
