"""Which programs a batch script would start, found by going through it in bash without starting any.

bash itself does the loops, the arithmetic and the functions, with SLURM's variables as the directives would give them;
rehearse.bash keeps it from starting a program or writing a file. What only a program could tell (`$(nvidia-smi ...)`)
is empty then.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from labs.slurm import directives, sites

LAUNCHERS = (*sites.LAUNCHERS, "mpirun")
LIMIT = 5  # seconds
_HERE = Path(__file__).with_name("rehearse.bash")
# a redirection of output, but not >( ...
_WRITES = r"(?:\d*|&)>[>|]?(?!\()[ \t]*(?:&[\d-]|\"[^\"\n]*\"|[^\s;|&<>()\"]+)"


@dataclass
class Command:
    """A program that a script would start.

    line_number: in the script. words: all of it, as text, with variables filled. launcher: "srun", "mpiexec", "mpirun",
    "horovodrun" or None. tasks: how many processes that makes (None: not to be told). script: the Python script as a
    Path below the course's folder or absolute, or None. options: those of the Python script, {"n_gpus": "2", ...},
    without dashes. launcher_options: the words between launcher and program.
    """

    line_number: int
    words: list
    launcher: str | None = None
    tasks: int | None = 1
    script: Path | None = None
    options: dict = field(default_factory=dict)
    launcher_options: list = field(default_factory=list)


def rehearse(text, root=None, env=None, scale=1):
    """The Commands that the text of a batch script would start, in order; [] if bash cannot read it.

    root: the course's top folder, where the script would be submitted. env: what is set there (default: this process's
    environment). scale: as if it were submitted with that many times the nodes and tasks. Nothing is started or
    written. A script that does not end within 5 s gives what was found until then.
    """
    root = Path(root or sites.find_root())
    bash = shutil.which("bash")
    if not bash or re.search(r"/dev/(tcp|udp)/", text):
        return []
    script = directives.read(text).meant()
    asked = script.resources()
    asked |= {name: asked[name] and asked[name] * scale for name in ("nodes", "ntasks", "tasks")}
    env = _environment(script, asked, text, env)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("notebooks", "labs", "slurm", "solutions", ".venv"):
            if (root / name).exists():
                (Path(folder) / name).symlink_to((root / name).resolve())
        Path(folder, "script.sh").write_text(_calm(text), encoding="utf-8", newline="")
        output = _run([bash, "--noprofile", "--norc", "script.sh"], folder, env | {"TMPDIR": folder})
    items, found = output.decode("utf-8", "replace").split("\0"), []
    while len(items) > 3 and items[0].isdigit() and items[2].isdigit():
        line_number, place, count = items[0], items[1], int(items[2])
        found.append(_command(int(line_number), place, items[3 : 3 + count], asked))
        items = items[3 + count :]
    return found


def _calm(text):
    """The text without the redirections of loops, groups and functions, which the trap cannot leave out."""
    functions = re.findall(r"^\s*(?:function\s+)?([A-Za-z_][\w-]*)\s*\(\)", text, re.MULTILINE)
    before = r"(?:^|[;&|{(]|\b(?:do|then|else)\b)[ \t]*"
    ends = r"\b(?:done|fi|esac)\b|[})]" + "".join(rf"|{before}{name}\b[^\n;|&<>]*?" for name in functions)
    return re.sub(rf"({ends})(?:[ \t]*{_WRITES})+", r"\1 ", text, flags=re.MULTILINE)


def _run(command, folder, env):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env=env, start_new_session=True, **pipes)
    try:
        return process.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def _environment(script, asked, text, env):
    """The variables of a job with these directives; whatever the script demands from outside has some value."""
    env = os.environ if env is None else env
    inner = re.compile(r"SLURM_|SBATCH_|BASH|SHELL|ENV$|PROMPT_COMMAND|PS\d|POSIXLY")
    kept = {name: value for name, value in env.items() if not inner.match(name)}
    nodes, gpus = asked["nodes"] or 1, asked["gpus_per_node"] or 0
    hosts = f"node[1-{nodes}]" if nodes > 1 else "node1"
    told = dict.fromkeys(("JOB_ID", "JOBID"), 1) | dict.fromkeys(("NODEID", "PROCID", "LOCALID"), 0)
    told |= dict.fromkeys(("NNODES", "JOB_NUM_NODES"), nodes) | dict.fromkeys(("NODELIST", "JOB_NODELIST"), hosts)
    told |= {
        "JOB_NAME": script.value("job-name") or "script.sh",
        "SUBMIT_DIR": ".",
        "CPUS_ON_NODE": asked["cpus_per_node"] or 1,
        "TASKS_PER_NODE": asked["tasks_per_node"] or 1,
        "CPUS_PER_TASK": asked["cpus_per_task"],
        "NTASKS_PER_NODE": asked["ntasks_per_node"],
        "GPUS_ON_NODE": gpus or None,
        # SLURM sets it only for a script that names its tasks
        "NTASKS": asked["tasks"] if asked["ntasks"] or asked["ntasks_per_node"] else None,
    }
    wanted = {name: f"the-{name.lower()}" for name in re.findall(r"\$\{([A-Za-z_]\w*):?\?", text)}
    return (
        wanted
        | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}
        | kept
        | {f"SLURM_{name}": str(value) for name, value in told.items() if value is not None}
        | {"PATH": "/nonexistent", "BASH_ENV": str(_HERE), "LC_ALL": "C.UTF-8"}
    )


def _command(line_number, folder, words, asked):
    names = [word.rpartition("/")[2] for word in words]
    found = Command(line_number, words)
    start = next((index for index, name in enumerate(names) if name.endswith(".py")), None)
    limit = len(words) if start is None else start
    launch = next((index for index, name in enumerate(names[:limit]) if name in LAUNCHERS), None)
    if launch is not None:
        found.launcher = names[launch]
        count, found.launcher_options, _ = directives.launched(words[launch + 1 : limit])
        found.tasks = asked["tasks"] if count is None else directives.number(count)
    if start is not None:
        found.script = Path(os.path.normpath(Path(folder) / words[start]))
        found.options = _options(words[start + 1 :])
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
