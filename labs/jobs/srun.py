"""What srun does, on this machine: `python -m labs.jobs.srun OPTIONS COMMAND...` becomes what starts the ranks.

Of srun's options only the number of ranks has a meaning here.
"""

import os
import sys

from labs.jobs.launch import MORTAL, LaunchError, command
from labs.slurm.directives import launched


def split(arguments):
    """(number of ranks as a text, the command to start) of srun's arguments; without a number that of the job."""
    ranks, _, rest = launched(arguments)
    return os.environ.get("SLURM_NTASKS", "1") if ranks is None else ranks, rest


def main(arguments):
    """Become the command that starts the ranks; a text for the error stream where that cannot be."""
    ranks, program = split(arguments)
    if not program or not ranks.isdecimal():
        return "usage: srun [--ntasks=RANKS] COMMAND..."
    try:
        whole = [*command(int(ranks)), *MORTAL, *program]
    except LaunchError as problem:
        return f"labs.jobs.srun: {problem}"
    os.execv(whole[0], whole)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
