"""One start of a Python script by a batch script, from the calls that its trial saw: on how many ranks or workers, with
which global batch."""

import argparse
import os
import re
from pathlib import Path

from labs.sandbox.walls import WORK
from labs.slurm import directives


class Training:
    """One start of a Python script.

    call: its Call. script: its path below the course's folder, or an absolute one. exists: is it there? An absolute
    path, of a site, is taken to be. kind: "horovod"
    (its ranks share the global batch), "mirrored" (its --n_gpus do) or None. options: {"n_gpus", "batch_size": text},
    of which one may be missing. ranks: how many processes its launcher makes, as text. tasks, workers, global_batch: as
    numbers. None where not known.
    """

    def __init__(self, call, script, words, root):
        self.call, self.line_number = call, call.line_number
        self.script = Path(os.path.normpath(Path(WORK, call.folder, script)).removeprefix(f"{WORK}/"))
        there = not self.script.is_absolute() and (root / self.script).is_file()
        self.exists = there or self.script.is_absolute()
        self.kind = _kind((root / self.script).read_text(errors="replace") if there else "")
        parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
        for name in ("--n_gpus", "--batch_size"):
            parser.add_argument(name, nargs="?", default=argparse.SUPPRESS)
        self.options = vars(parser.parse_known_args(words)[0])
        self.ranks = call.ranks

    @property
    def tasks(self):
        return directives.number(self.ranks)

    @property
    def sharing(self):
        """(what shares the global batch, its number as text or None where it is not given or not known)."""
        unread = self.kind is None and "n_gpus" not in self.options and "horovod" in self.script.name
        ranks = self.kind == "horovod" or unread
        return ("ranks", self.ranks) if ranks else ("--n_gpus", self.options.get("n_gpus"))

    @property
    def workers(self):
        return directives.number(self.sharing[1])

    @property
    def global_batch(self):
        return directives.number(self.options.get("batch_size"))


def _kind(text):
    if re.search(r"(?m)^\s*(import|from)\s.*\b(hvd|horovod)\b", text):
        return "horovod"
    return "mirrored" if "MirroredStrategy" in text else None


def started(tried, root):
    """The Trainings among what a script starts (trial.Tried), in order: its Python scripts."""
    scripts = ((call, *_script(call)) for call in tried.calls)
    return [Training(call, script, words, Path(root)) for call, script, words in scripts if script is not None]


def _script(call):
    """(the Python script that a call starts as text, the words behind it), or (None, [])."""
    name, *words = call.words
    for index, word in enumerate(words if name.startswith("python") else ()):
        if word in ("-c", "-m"):
            break
        if word.endswith(".py"):
            return word, words[index + 1 :]
    return None, []
