"""What srun does, on this machine: `python -m labs.jobs.srun OPTIONS COMMAND...` becomes what starts the ranks.

Of srun's options only the number of ranks has a meaning here.
"""

import os
import sys

from labs.jobs.launch import MORTAL, LaunchError, command

# Options of srun's that take no value, or only one that is written onto them ("--kill-on-bad-exit=1").
_FLAGS = {f"-{letter}" for letter in "lukKvQEX"} | {
    "--exact",
    "--exclusive",
    "--kill-on-bad-exit",
    "--label",
    "--overlap",
    "--preserve-env",
    "--quiet",
    "--unbuffered",
    "--verbose",
}


def split(arguments):
    """(number of ranks as a text, the command to start) of srun's arguments; without a number that of the job."""
    ranks, rest = os.environ.get("SLURM_NTASKS", "1"), list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        name, _, value = option.partition("=")
        if not option.startswith("--"):  # -n 2 or -n2
            name, value = option[:2], option[2:]
        if not value and name not in _FLAGS and rest:
            value = rest.pop(0)
        if name in ("-n", "--ntasks"):
            ranks = value
    return ranks, rest


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
