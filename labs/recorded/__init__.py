"""Recorded runs that come with the kit: for comparison, and to go on with while your own runs are not done."""

from pathlib import Path

HERE = Path(__file__).parent
CTE_POWER = HERE / "cte-power-resnet50v2.out"


def laptop():
    """Logs (.out, each with its record beside it) of ResNet50V2 on 1 and 2 workers of a machine with 2 cores."""
    return sorted((HERE / "laptop").glob("*.out"))


def laptop_horovod():
    """Logs (.out, each with its record beside it) of ResNet50V2 with Horovod on 1 and 2 ranks of the same machine."""
    return sorted((HERE / "laptop_horovod").glob("*.out"))


def horovod_timeline():
    """Timeline (see labs.timeline) of 3 training steps of ResNet50V2 on 2 ranks, of the same machine."""
    return HERE / "horovod_timeline.json.gz"
