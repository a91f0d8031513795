"""What a batch script starts, judged from the calls that its trial saw: which Python script, on how many ranks or
workers, with which options and which global batch."""

import os
from pathlib import Path, PurePosixPath

from labs.sandbox.walls import WORK
from labs.slurm import directives, trial
from labs.slurm.check.program import PythonScript

FOLDERS = ("", "notebooks", "notebooks/scripts")  # of the course, from which a script may be submitted


class Training:
    """One start of a Python script.

    call: its Call. script: its path below the course's folder, or an absolute one. program: a PythonScript; kind:
    its kind. exists: is it there? submitted: the folder of FOLDERS from which the job finds it. options: {full
    name: text} without dashes; rest, refused: as PythonScript.take. launcher: the Call of srun, mpiexec, ... or None;
    launcher_name; part: of a heterogeneous job. step: what its srun asks for, as a BatchScript, or None where srun does
    not start it. ranks: how many processes that makes, as text; None if not known.
    """

    def __init__(self, call, script, words, tried, root):
        path = Path(os.path.normpath(PurePosixPath(WORK, call.folder, script)))
        for top in (Path(WORK), root):
            path = path.relative_to(top) if path.is_relative_to(top) else path
        below = () if path.is_absolute() else FOLDERS
        submitted = next((folder for folder in below if (root / folder / path).is_file()), None)
        self.call, self.line_number, self.script, self.submitted = call, call.line_number, path, submitted or ""
        self.exists = submitted is not None or path.is_absolute() or str(path) in tried.files
        self.program = PythonScript(root / self.submitted / path)
        self.kind = self.program.kind
        self.options, self.rest, self.refused = self.program.take(words)
        self.launcher, self.ranks = call.starts_ranks(), call.ranks()
        self.launcher_name = self.launcher and self.launcher.words[0]
        self.part = self.launcher.part() if self.launcher else 0
        self.step = self.launcher.step() if self.launcher and self.launcher_name == "srun" else None

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

    def no_number(self):
        """(option, text) of a number of workers or a global batch that is not a whole number, or None."""
        for name, text in (self.sharing, ("--batch_size", self.options.get("batch_size"))):
            if text is not None and not whole(text) and not made_up(text):
                return name, text
        return None

    def gpus(self, known):
        """How many GPUs its step gets on a node: what srun is told, else `known`, what the job has; or None."""
        step = self.step
        if not known or not step or not step.find("gres", "gpus", "gpus-per-node", "gpus-per-task"):
            return known
        nodes = min(directives.number(step.value("nodes")) or 1, self.tasks or 1)
        return step.with_options([("nodes", str(nodes)), ("ntasks", str(self.tasks or 1))]).resources()["gpus_per_node"]

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
    scripts = ((call, *_script(call, root)) for call in tried.calls)
    return [Training(call, script, words, tried, root) for call, script, words in scripts if script is not None]


def elsewhere(text, name, root, known=None, count=None):
    """(the Tried, its Trainings) of a script on `count` nodes, or on twice those that it asks for."""
    tried = trial.try_out(text, name, root, known, options_for(text, count))
    return tried, started(tried, root)


def options_for(text, count):
    """The options of sbatch, [(long name, value)], that ask for `count` nodes, and for all else in proportion."""
    script = directives.read(text).meant()
    asked = script.resources()
    here = asked["nodes"]
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
