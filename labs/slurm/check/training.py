"""What a batch script starts, judged from the calls that its trial saw: which Python script, on how many ranks or
workers, with which options and which global batch."""

import functools
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from labs.sandbox.walls import WORK
from labs.slurm import directives, trial
from labs.slurm.check import program
from labs.slurm.trial import Call

_OPTIONS = frozenset({"n_gpus", "batch_size"})  # of a script that does not tell its own


@dataclass(frozen=True)
class Training:
    """One start of a Python script.

    call: its Call. script: its path below the course's folder, or an absolute one. program: what its text says; exists:
    is it there? options: {full name: text} without dashes. launcher: the Call of srun, mpiexec, ... or None. ranks: how
    many processes that makes, as text; None if not known.
    """

    call: Call
    script: Path
    program: program.Program
    exists: bool
    options: dict[str, str]
    launcher: Call | None
    ranks: str | None

    @property
    def line_number(self):
        return self.call.line_number

    @property
    def kind(self):
        """ "horovod": its ranks share the global batch; "mirrored": its --n_gpus do; None if not known."""
        return self.program.kind

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
        return whole(self.sharing[1])

    @property
    def global_batch(self):
        return whole(self.options.get("batch_size"))

    @property
    def rate(self):
        """Its learning rate as text, or None."""
        names = (self.program.option, "learning_rate", "lr")
        return next((self.options[name] for name in names if self.options.get(name)), None)

    @property
    def launcher_options(self):
        """The words between launcher and program."""
        return directives.launched(self.launcher.words[1:])[1] if self.launcher else []

    @property
    def launcher_name(self):
        return self.launcher and self.launcher.words[0]

    def no_number(self):
        """(option, text) of a number of workers or a global batch that is not a whole number, or None."""
        for name, text in (self.sharing, ("--batch_size", self.options.get("batch_size"))):
            if text is not None and not whole(text) and not made_up(text):
                return name, text
        return None

    def gpus(self, known):
        """How many GPUs its step gets on a node: what srun is told, else `known`, what the job has; or None."""
        if not known or self.launcher is None or self.launcher_name != "srun":
            return known
        told = directives.read("#!\n#SBATCH " + " ".join(word for word in self.launcher_options if "#" not in word))
        if not told.find("gres", "gpus", "gpus-per-node", "gpus-per-task"):
            return known
        nodes, tasks = told.value("nodes") or self.launcher.env.get("SLURM_NNODES", "1"), self.tasks or 1
        nodes = min(directives.number(nodes) or 1, tasks)
        size = [directives.Directive(0, "nodes", str(nodes)), directives.Directive(0, "ntasks", str(tasks))]
        return told._replace(directives=[*told.directives, *size]).resources()["gpus_per_node"]

    def visible(self):
        """The CUDA_VISIBLE_DEVICES that the script itself sets, or None. In a step each rank may have its own."""
        around = [self.call, *self.call.above()]
        named = [word for one in around for word in one.words if word.startswith("CUDA_VISIBLE_DEVICES=")]
        if named and self.kind == "mirrored":  # env, apptainer --env
            return named[0].partition("=")[2]
        env = (self.launcher if self.kind == "horovod" and self.launcher else self.call).env
        there = env.get("CUDA_VISIBLE_DEVICES")
        return there if there != env.get("SLURM_JOB_GPUS") else None


def whole(text):
    """A whole number of at least 1 as Python's int() reads it, or None."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) else None


def made_up(text):
    """Does it come from a file or variable that only a site has, so that the trial made it up?"""
    return text.startswith(("#!/bin/sh", "/tmp/"))


def started(tried, root):
    """The Trainings among what a script starts (trial.Tried), in order: its Python scripts."""
    root = Path(root).resolve()
    found = []
    for call in tried.calls:
        script, words = _script(call, root)
        if script is None:
            continue
        path = Path(os.path.normpath(PurePosixPath(WORK, call.folder, script)))
        for top in (Path(WORK), root):
            path = path.relative_to(top) if path.is_relative_to(top) else path
        there = not path.is_absolute() and (root / path).is_file()
        read = _program(root / path, (root / path).stat().st_mtime_ns) if there else program.Program(None, None)
        options = _named(words, read.options)
        exists = there or path.is_absolute() or str(path) in tried.files
        found.append(Training(call, path, read, exists, options, call.starts_ranks(), call.ranks()))
    return found


def elsewhere(text, name, root, known=None, count=None):
    """(the Tried, its Trainings) of a script on `count` nodes, or on twice those that it asks for."""
    tried = trial.try_out(text, name, root, known, options_for(text, count))
    return tried, started(tried, root)


def options_for(text, count=None):
    """The options of sbatch, [(long name, value)], that ask for `count` nodes (default: twice those of the script), and
    for all else in proportion."""
    script = directives.read(text).meant()
    asked = script.resources()
    here, tasks = asked["nodes"] or 1, asked["tasks"] or 1
    here = -(-tasks // (asked["tasks_per_node"] or 1)) if tasks > 1 else here
    count = count or 2 * here
    options = [("nodes", str(count))]
    for option in ("ntasks", "gpus"):  # of the whole job
        if given := directives.number(script.value(option)):
            options.append((option, str(given * count // here)))
    return options


def not_following(once, there):
    """(Training, the same on other nodes, what) of the first that does not follow the nodes, else None. what: "ranks",
    if they are as many as before; "batch", if it is not in proportion to them."""
    for one, more in zip(once, there, strict=False):
        if one.ranks == more.ranks:
            return one, more, "ranks"
        if (more.global_batch or 0) * (one.workers or 0) != (one.global_batch or 0) * (more.workers or 0):
            return one, more, "batch"
    return None


@functools.lru_cache(maxsize=64)
def _program(path, _time):
    return program.read(path)


def _script(call, root):
    """(the Python script that a call starts as text, the words behind it), or (None, [])."""
    name, *words = call.words
    if call.starts_ranks() and ":" in words:  # srun's next part of a heterogeneous job
        words = words[: words.index(":")]
    if name == trial.UNKNOWN and words and words[0].endswith(".py"):
        return words[0], words[1:]
    if PurePosixPath(name).name.startswith("python"):
        for index, word in enumerate(words):
            if word == "-m" and index + 1 < len(words):
                path = words[index + 1].replace(".", "/") + ".py"
                return (path, words[index + 2 :]) if (root / call.folder / path).is_file() else (None, [])
            if word == "-c":
                break
            if word.endswith(".py"):
                return word, words[index + 1 :]
    return None, []


def _named(words, known):
    """{name: value} of `--name value` and `--name=value`, by full names: argparse takes the beginning of one for it.
    "" for an option without a value."""
    found = {}
    for word, after in itertools.zip_longest(words, words[1:], fillvalue=""):
        if not word.startswith("--") or len(word) < 3:
            continue
        name, equals, value = word[2:].partition("=")
        names = _OPTIONS if known is None else known
        meant = [name] if name in names else [option for option in names if option.startswith(name)]
        full = meant[0] if len(meant) == 1 else name
        found[full] = value if equals or re.match(r"--[A-Za-z]", after) else after
    return found
