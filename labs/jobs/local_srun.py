"""What srun does, on this machine: `python -m labs.jobs.local_srun OPTIONS COMMAND...` becomes what starts the ranks.

Of srun's options only the number of ranks has a meaning here.
"""

import os
import sys

from labs.errors import UseError
from labs.jobs.launch import MORTAL, command
from labs.slurm.directives import launched


def main(arguments):
    """Become the command that starts the ranks; a text for the error stream where that cannot be."""
    ranks, _, program = launched(arguments)
    ranks = ranks or os.environ.get("SLURM_NTASKS") or os.environ.get("SLURM_TASKS_PER_NODE", "1")
    if not program or not ranks.isdecimal():
        return "usage: srun [--ntasks=RANKS] COMMAND..."
    try:
        whole = [*command(int(ranks)), *MORTAL, *program]
    except UseError as problem:
        return f"labs.jobs.local_srun: {problem}"
    os.execv(whole[0], whole)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
