"""What srun does, on this machine: `python -m labs.jobs.srun RANKS COMMAND...` becomes what starts the ranks."""

import os
import sys

from labs.jobs.launch import MORTAL, LaunchError, command


def main(arguments):
    """Become the command that starts the ranks; a text for the error stream where that cannot be."""
    if len(arguments) < 2 or not arguments[0].isdecimal():
        return "usage: python -m labs.jobs.srun RANKS COMMAND..."
    try:
        whole = [*command(int(arguments[0])), *MORTAL, *arguments[1:]]
    except LaunchError as problem:
        return f"labs.jobs.srun: {problem}"
    os.execv(whole[0], whole)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
