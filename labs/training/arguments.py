"""The command line of a training script: the options that all scripts of the course share."""

import argparse
import os
import sys
from pathlib import Path

from labs import blanks, files
from labs.errors import UseError
from labs.printed import printable


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that every training script of the course shares.

    Data set, images and their size, repeats, seed, name and folder of the run record.
    """
    add = parser.add_argument
    add("--dataset", default="digits", help="digits, cifar10 or synthetic (default: digits)")
    add("--image_size", type=int, default=32, help="pixels per side that the network sees (default: 32)")
    add("--images", type=int, help="train on this many images only (default: all)")
    add("--repeats", type=int, default=1, help="train this many times, each from new weights (default: 1)")
    add("--seed", type=int, default=0, help="seed of weights and shuffling (default: 0)")
    add("--run", help="name of the run record (default: made from model, workers and batch)")
    add("--runs", default=os.environ.get("LABS_RUNS") or "runs", help="folder of the run records (default: runs)")


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments of this program's command line. A script that still has blanks stops here (SystemExit) with one
    clear line; so does one with an unknown option, as argparse has it."""
    script = Path(sys.argv[0])
    args = parser.parse_args()
    for line, text in blanks.blanks(script)[:1]:
        sys.exit(f"{script.name}, line {line}: not done yet: {text.strip()}")
    return args


def check_arguments(args: argparse.Namespace) -> None:
    """Raise UseError for less than 1 of what there must be, and for a name that no run can have."""
    for what in ("epochs", "repeats", "batch_size", "images", "image_size"):
        value = getattr(args, what)
        if value is not None and value < 1:
            raise UseError(f"{value} {what}: nothing would be trained. Pass --{what} 1 or more.")
    if args.run is not None and (problem := files.name_problem(args.run)):
        raise UseError(f"--run {printable(args.run)} {problem}. The run record gets this name: choose another.")
