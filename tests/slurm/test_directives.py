"""Directives as `sbatch --test-only -vv` (SLURM 22.05) was seen to read them, and what they ask for."""

import math

from labs.slurm import directives

READ = [
    ("#SBATCH -N2 --job-name=a", {"nodes": "2", "job-name": "a"}),
    ("#SBATCH --nodes 2 -c4 --tasks-per-node 2", {"nodes": "2", "cpus-per-task": "4", "ntasks-per-node": "2"}),
    ("#SBATCH --job-name=a # --nodes=2", {"job-name": "a"}),
    ('#SBATCH --job-name="a b" --exclusive=user', {"job-name": "a b", "exclusive": "user"}),
    ("#SBATCH--nodes=2", {"nodes": "2"}),
    ("#SBATCH --job-n=a", {"job-name": "a"}),
    ("#SBATCH -J a -J b", {"job-name": "b"}),
    ("\n \t\n#\n#SBATCH -Q --exclusive -J z", {"quiet": "", "exclusive": "", "job-name": "z"}),
    ("##SBATCH -N2", {}),
    (" #SBATCH -N2", {}),
    ("echo\n#SBATCH -N2", {}),
]


def test_directives_are_those_that_sbatch_takes():
    for line, expected in READ:
        script = directives.read(f"#!/bin/bash\n{line}\n")
        assert {one.option: script.value(one.option) for one in script.directives} == expected, line
        assert not script.refused, line


REFUSED = [
    ("--nods=2", "--nods not recognized"),
    ("nodes=2", "nodes=2 is not an option"),
    ("--nodes", "requires argument"),
    ('--job-name="a', "not closed"),
]


def test_directives_that_sbatch_refuses():
    for line, words in REFUSED:
        ((number, reason, _),) = directives.read(f"#!/bin/bash\n#SBATCH {line}\n").refused
        assert number == 2 and words in reason, line


def test_comments_are_not_meant_as_directives():
    comments = ["##SBATCH -N2", "# SBATCH lines are read", "# sbatch --time=5 x.sh", "# Batch - a word", "# --nodes=2"]
    assert directives.read("\n".join(["#!/bin/bash", *comments])).ignored == []


RESOURCES = [
    ("-N2 --ntasks-per-node=2 --gres=gpu:2 -c4", {"tasks": 4, "gpus_per_node": 2, "cpus_per_node": 8}),
    ("-n8 --ntasks-per-node=4", {"nodes": 2, "tasks": 8, "tasks_per_node": 4}),
    ("-N2 --gpus=3", {"gpus_per_node": 2}),  # one of the nodes has both
    ("-N2 --gpus=1", {"gpus_per_node": 1}),
    ("-N2 -n8 --gpus-per-task=1", {"gpus_per_node": 4}),
    ("-N2 --gpus-per-node=4 --ntasks-per-gpu=1", {"tasks": 8, "tasks_per_node": 4}),
    ("-n4 --ntasks-per-gpu=2", {"tasks": 4, "gpus_per_node": 2}),
    ("--gpus=2 --gpus-per-task=1", {"tasks": 2, "gpus_per_node": 2}),
    ("--gres=gpu:v100:3,tmp:5", {"gpus_per_node": 3, "cpus_per_node": 1}),
    ("--gpus-per-node=a100:4 --cpus-per-gpu=20", {"gpus_per_node": 4, "cpus_per_node": 80}),
    ("-t 1-12:00:00 -N 1-3", {"time_minutes": 2160, "nodes": 3}),
    ("", {"nodes": 1, "tasks": 1, "gpus_per_node": 0, "cpus_per_node": 1}),
]


def test_resources():
    for line, expected in RESOURCES:
        asked = directives.read(f"#!/bin/bash\n#SBATCH {line}\n").resources()
        assert {key: asked[key] for key in expected} == expected, line


def test_times_and_numbers():
    assert [directives.number(text) for text in ("2", "1-3", "0", "x", None)] == [2, None, None, None, None]
    times = {"30": 30, "30:30": 30.5, "1:00:00": 60, "1-12": 2160, "1-12:30": 2190, "2-00:00:00": 2880, "00:00:30": 0.5}
    assert {text: directives.minutes(text) for text in times} == times
    assert {directives.minutes(text) for text in ("", "an hour", "1:2:3:4", "30m")} == {None}
    assert {directives.minutes(text) for text in ("UNLIMITED", "infinite", "-1")} == {math.inf}
