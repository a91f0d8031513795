"""labs.hvd's collectives on real ranks, and what students write with them: equal to one process alone."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from labs.jobs import launch
from lessons import connected
from lessons.faster_steps import by_hand

ROOT = Path(__file__).parents[2]
LAUNCHES = [(2, "mpiexec"), (4, "horovodrun")]


def start(count, launcher, *command):
    """What `count` ranks print."""
    done = subprocess.run(
        [*launch.command(count, launcher), sys.executable, *map(str, command)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{done.stdout[-1000:]}"
    return done.stdout


@pytest.fixture(scope="module", params=LAUNCHES, ids=lambda param: f"{param[0]} ranks, {param[1]}")
def found(request, tmp_path_factory, needs_horovod):
    folder = tmp_path_factory.mktemp("collectives")
    start(*request.param, ROOT / "tests/programs/collectives.py", folder)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(request.param[0])]


def rows(size, factor=1.0):
    return np.arange(2 * (2 * size + 1), dtype="float32").reshape(-1, 2) * factor


def test_collectives_give_each_rank_what_their_docstrings_say(found):
    size = len(found)
    mean = rows(size, (size + 1) / 2)
    parts, summed = np.array_split(mean, size), np.array_split(mean * size, size)
    joined = np.concatenate([rows(size, rank + 1)[: rank + 1] for rank in range(size)])
    for rank, each in enumerate(found):
        assert np.allclose(each["allreduce"], mean) and np.allclose(each["sum"], mean * size)
        assert np.allclose(each["grouped"], mean[0])
        assert np.allclose(each["reducescatter"], parts[rank]) and len(parts[0]) == 3 and len(parts[-1]) == 2
        assert np.allclose(each["reducescatter_sum"], summed[rank])
        assert np.allclose(each["allgather"], joined) and np.allclose(each["broadcast"], rows(size, 2))
        assert np.allclose(each["slices"], np.full((2, 2), [0.5, 1.0]))
        assert np.allclose(each["graph"], 3 * mean)
        assert [text.split()[0] for text in each["refused"]] == ["reducescatter", "allgather"]


def test_the_world_of_the_checks_gives_what_horovod_gives(found):
    """lessons.connected stands in for Horovod: the same values on every rank."""
    size = len(found)
    world = connected.World(size)

    def program():
        mine = rows(size, world.rank() + 1)
        return {
            "allreduce": world.allreduce(mine),
            "grouped": world.grouped_allreduce([mine, mine[0]])[1],
            "reducescatter": world.reducescatter(mine),
            "reducescatter_sum": world.reducescatter(mine, op=world.Sum),
            "allgather": world.allgather(mine[: world.rank() + 1]),
            "broadcast": world.broadcast(mine, 1),
        }

    for real, played in zip(found, world.play(program), strict=True):
        for name, values in played.items():
            assert np.allclose(real[name], values), name


FOUR = pytest.mark.more("the sharded optimizer on four ranks, with two more networks")


@pytest.mark.parametrize(
    "script, ranks, network",
    [
        *itertools.product(("accumulated.py", "sharded_optimizer.py"), LAUNCHES[:1], ("dense", "frozen", "tied")),
        ("sharded_optimizer.py", LAUNCHES[1], "tied"),
        *(pytest.param("sharded_optimizer.py", LAUNCHES[1], network, marks=FOUR) for network in ("dense", "frozen")),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value[0]} ranks",
)
def test_what_students_write_trains_as_one_process_does(script, ranks, network, needs_horovod):
    said = start(*ranks, ROOT / "solutions/scripts" / script, "--model", network, "--hidden", 32)
    assert f"trained weights identical on all {ranks[0]} ranks: True" in said
    told = by_hand.told(said)
    apart, fixed, moved = (float(told[key]) for key in ("apart", "fixed", "moved"))
    assert told["alike"] == "True" and apart < 1e-5 and fixed == 0.0 and moved > 1e-3


def test_batch_normalisation_sees_the_passes(needs_horovod):
    said = start(2, "mpiexec", ROOT / "solutions/scripts/accumulated.py", "--model", "batch_norm", "--hidden", 32)
    assert float(re.search(r"largest difference to one process.*: ([-+.e\d]+)", said)[1]) > 1e-3


@pytest.mark.parametrize(
    "script, line, wrong",
    [
        ("accumulated.py", "each / passes for each in total]", "each for each in total]"),
        ("sharded_optimizer.py", "self.momentum * self.velocity - self.rate", "-self.rate"),
        ("sharded_optimizer.py", "begin, padded = hvd.rank() * self.share", "begin, padded = 0"),
    ],
)
def test_a_mistake_trains_another_network(script, line, wrong, tmp_path, needs_horovod):
    text = (ROOT / "solutions/scripts" / script).read_text()
    assert line in text
    (tmp_path / script).write_text(text.replace(line, wrong))
    said = start(2, "mpiexec", tmp_path / script, "--hidden", 32)
    assert float(re.search(r"largest difference to one process.*: ([-+.e\d]+)", said)[1]) > 1e-3
