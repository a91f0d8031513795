"""Which programs a batch script would start, with SLURM's variables as its directives would give them. It is only
read: nothing of it is run."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from labs.slurm import directives, sites, variables
from labs.slurm.check.bash import Shell
from labs.slurm.check.words import UNKNOWN

# What a script cannot know before it runs.
_TOLD_TO_THE_JOB = re.compile(
    r"SLURM_(?:(?:ARRAY_.*|JOB_?ID|(?:NODE|PROC|LOCAL)ID|JOB_(?:PARTITION|USER|GPUS)|CLUSTER_NAME|SUBMIT_HOST)$)"
)
_SHELLS = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-\S+\s+)*)?(bash|sh|dash|ksh)(?:\s|$)|(?!#!)")


@dataclass
class Command:
    """A program that a script would start.

    line_number: in the script. words: all of it, as text, with variables filled; words.UNKNOWN stands for what only
    running it would tell. launcher: "srun", "mpiexec", "mpirun", "horovodrun" or None. tasks: how many processes that
    makes (None: not to be told). script: the Python script as a Path below the course's folder or absolute, or None.
    options: those of the Python script, {"n_gpus": "2", ...}, without dashes. launcher_options: the words between
    launcher and program. visible: the CUDA_VISIBLE_DEVICES that the script sets, or None. beside: in the background;
    alone: and nothing waits for it.
    """

    line_number: int
    words: list
    launcher: str | None = None
    tasks: int | None = 1
    script: Path | None = None
    options: dict = field(default_factory=dict)
    launcher_options: list = field(default_factory=list)
    visible: str | None = None
    beside: bool = False
    alone: bool = False

    def unknown(self):
        """What of it is not known, in words for people; [] if all is."""
        told = [f"--{name}" for name, value in self.options.items() if UNKNOWN in value]
        told += ["the number of tasks"] if self.launcher and self.tasks is None else []
        return told + (["which script"] if any(UNKNOWN in word and word.endswith(".py") for word in self.words) else [])


@dataclass
class Reading:
    """commands: in order. unset: [(line number, name)] of variables that `set -u` would stop at. files: paths of those
    that it writes with `cat`. whole: False if the script is too long or too deep to be read to its end, or its shell is
    none that is read."""

    commands: list
    unset: list = field(default_factory=list)
    files: list = field(default_factory=list)
    whole: bool = True


def readable(text):
    """Is a script's text one for bash, or a shell of its kind, by its first line?"""
    return bool(_SHELLS.match(text))


def read(text, root=None, env=None, scale=1):
    """The Reading of a batch script's text.

    root: the course's top folder, where the script would be submitted. env: what is set there (default: this process's
    environment). scale: as if it were submitted with that many times the nodes and tasks.
    """
    if not readable(text):
        return Reading([], whole=False)
    script = directives.read(text).meant()
    asked = script.resources()
    asked |= {name: asked[name] and asked[name] * scale for name in ("nodes", "ntasks", "tasks")}
    shell = Shell(_environment(script, asked, os.environ if env is None else env))
    visible = shell.variables.get("CUDA_VISIBLE_DEVICES")
    shell.nounset = bool(re.match(r"#!\s*\S+\s+-\w*u", text))
    shell.read(text.replace(UNKNOWN, ""))
    root = Path(root or sites.find_root()).resolve()
    found = []
    for one in shell.starts:
        command = _command(one, asked, root)
        set_here = one.variables.get("CUDA_VISIBLE_DEVICES")
        command.visible = set_here if isinstance(set_here, str) and set_here != visible else None
        said = [word for word in one.words if word.startswith("CUDA_VISIBLE_DEVICES=")]  # env, apptainer --env
        command.visible = said[-1].partition("=")[2] if said else command.visible
        found.append(command)
    return Reading(found, shell.unsets, list(shell.files), not shell.cut)


def _environment(script, asked, env):
    """The variables of a job with these directives; what only the job itself is told is UNKNOWN."""
    inner = re.compile(r"SLURM_|SBATCH_|BASH|SHELL|ENV$|PROMPT_COMMAND|PS\d|POSIXLY|IFS$|CUDA_VISIBLE_DEVICES$")
    kept = {name: value for name, value in env.items() if not inner.match(name)}
    told = variables.of_job(script, "script.sh", ".", asked)
    told |= {name: UNKNOWN for name in told if _TOLD_TO_THE_JOB.search(name)}
    told |= dict.fromkeys(("SLURM_JOB_ACCOUNT", "SLURM_MEM_PER_NODE"), UNKNOWN)
    counts = {
        "CPUS_PER_TASK": "cpus_per_task",
        "NTASKS_PER_NODE": "ntasks_per_node",
        "NTASKS": "tasks",
        "NPROCS": "tasks",
    }
    told |= {f"SLURM_{name}": UNKNOWN for name, what in counts.items() if f"SLURM_{name}" in told and not asked[what]}
    here = dict.fromkeys(("TMPDIR", "HOSTNAME", "USER", "HOME", "RANDOM", "SECONDS", "UID", "LINENO"), UNKNOWN)
    return here | {"CUDA_VISIBLE_DEVICES": "", "PWD": "."} | kept | told


def _command(start, asked, root):
    names = [word.rpartition("/")[2] for word in start.words]
    found = Command(start.line_number, start.words, beside=start.beside, alone=start.alone)
    place = next((index for index, name in enumerate(names) if name.endswith(".py")), None)
    limit = len(names) if place is None else place
    launch = next((index for index, name in enumerate(names[:limit]) if name in directives.LAUNCHERS), None)
    if launch is not None:
        found.launcher = names[launch]
        count, found.launcher_options, _ = directives.launched(start.words[launch + 1 : limit])
        unsure = any(UNKNOWN in word for word in start.words[launch + 1 : limit][: len(found.launcher_options) + 1])
        found.tasks = directives.number(count) if count is not None else None if unsure else asked["tasks"]
    if place is not None:
        script = start.words[place]
        path = os.path.normpath(Path(start.folder) / script)
        if not re.search(rf"[*?\[{UNKNOWN}]", path):
            path = Path(path)
            inside = path.is_absolute() and path.resolve().is_relative_to(root)
            found.script = path.resolve().relative_to(root) if inside else path
        found.options = _options(start.words[place + 1 :])
    return found


def _options(words):
    """{name: value} of `--name value` and `--name=value`; "" for an option without a value."""
    found = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            after = words[index + 1] if index + 1 < len(words) else ""
            found[name] = value if equals or after.startswith("--") else after
    return found
