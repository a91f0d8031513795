"""Batch scripts from their sources and the files of the sites (`teach build` writes them).

    solutions/slurm/X.sh -> solutions/slurm/<site>/X.sh (complete) and slurm/<site>/X.sh (with blanks)

In a source `@NAME@` stands for what the site says. A line that holds nothing else vanishes where a site says nothing.
"""

import dataclasses
import re
import shlex
import textwrap
from pathlib import Path

from labs import presets
from labs.blanks import BuildError
from labs.printed import several
from labs.slurm import sites
from labs.slurm.check.form import syntax
from teaching.author.regions import blank_batch, strip_markers

_FIELD = re.compile(r"@([A-Z_0-9]+)@")


def sources(root):
    """The sources of the batch scripts by file name, in order."""
    return {path.name: path for path in sorted((Path(root) / "solutions" / "slurm").glob("*.sh"))}


def fields(site, script):
    """What each `@NAME@` stands for at a site, for the script of this file name; values may have several lines."""
    sizes = presets.PRESETS[site.preset]
    # One after the other in one job, and not in turns: so each is repeated from new weights.
    sizes = dataclasses.replace(sizes, repeats=3, epochs=5 if site.gpus and site.preset == "course" else 3)
    top = min(max(site.workers), site.gpus or max(site.workers))
    count = site.gpus or top
    spans = {gpus: " to ".join(map(str, dict.fromkeys(site.cpus_for(gpus)))) for gpus in sorted(site.cpus_per_gpus)}
    rule = ", ".join(f"{several(gpus, 'GPU')}: {span}" for gpus, span in spans.items())
    names = [str(count) for count in site.workers]
    contained = len(site.python) > 1  # no step of SLURM's can be started from inside a container
    alone = "# One node only: Python runs in a container here, which cannot start ranks on other nodes."
    more = alone if contained else f"# More nodes: sbatch --nodes=4 slurm/{site.id}/{script}"
    study_nodes = 1 if contained else site.nodes
    wanted = {"account": site.account, "QOS": site.qos}
    personal = "# This site needs your {}, which does not belong in a script: export SBATCH_{}=..."
    gres = {gpus: f"#SBATCH --gres=gpu:{gpus}" if site.gpus else "" for gpus in (1, top, count)}
    # CPUs per node: the least of the rule, or all it allows where the least is one (a share that leaves none idle).
    cpus = {gpus: least if (least := site.cpus_for(gpus)[0]) > 1 else site.cpus_for(gpus)[1] for gpus in gres}
    return {
        "SITE": site.name,
        "PATH": f"slurm/{site.id}/{script}",
        "PERSONAL": "\n".join(personal.format(word, word.upper()) for word in wanted if wanted[word]),
        "PARTITION": f"#SBATCH --partition={site.partition}" if site.partition else "",
        "TIME": site.time,
        "RULE": f"{rule}." if rule else "any number.",
        "TASKS": top,
        "GRES": gres[top],
        "CPUS": cpus[top],
        "CPUS_PER_RANK": cpus[top] // top,
        "NODE_TASKS": count,
        "NODE_GRES": gres[count],
        "CPUS_PER_TASK": cpus[count] // count,
        "GRES_ONE": gres[1],
        "CPUS_ONE": cpus[1],
        "NODES": site.nodes,
        "STUDY_NODES": study_nodes,
        "STUDY_NODES_TEXT": several(study_nodes, "node"),
        "MORE_NODES": more,
        "STUDY_LAUNCHER": "" if contained else _study_launcher(site),
        "PRESET": site.preset,
        "WORKERS": " ".join(names),
        "WORKERS_TEXT": " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])),
        "LOCAL_BATCH": sizes.local_batch,
        "IMAGE_SIZE": sizes.image_size,
        "SIZES": " ".join(sizes.arguments()),
        "SETUP": _setup(site),
        "HOROVOD": _horovod(site),
        "LAUNCH": _launch(site, "$SLURM_NTASKS"),
        "LAUNCH_RANKS": _launch(site, "$ranks"),
    }


def _setup(site):
    """Modules, Python, folders, and what the log says about the job first."""
    lines = []
    if site.modules:
        folded = textwrap.wrap(" ".join(site.modules), 100, break_long_words=False, break_on_hyphens=False)
        lines = ["module purge", "module load " + " \\\n    ".join(folded)]
    lines.append(f"python=({_quoted(site.python)})")
    for name, value in (("LABS_DATA", site.data), ("TMPDIR", site.scratch)):
        if value and value.strip("${}") != name:
            lines.append(f'export {name}="{value}"')
    return "\n".join([*lines, Path(__file__).with_name("begin.sh").read_text(encoding="utf-8").rstrip()])


def _quoted(words):
    """Words as bash reads them, with the variables in them filled. labs.slurm.sites lets none pass that quotes do not
    hold."""
    return " ".join(f'"{word}"' if re.search(r"[^\w./=+-]", word) else word for word in words)


def _horovod(site):
    """Settings of the Horovod scripts."""
    hosts = 'hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/$/:$SLURM_NTASKS_PER_NODE/" | paste -sd,)'
    lines = {  # since SLURM 22.05 srun does not take the number of CPUs from the job
        'export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"': site.launcher == "srun",
        f"export NCCL_SOCKET_IFNAME={site.interface}": site.interface,
        hosts: site.launcher == "horovodrun",
    }
    return "\n".join(line for line, wanted in lines.items() if wanted)


def _launch(site, ranks):
    """The launcher with its options; `ranks` as bash says it."""
    own = {
        "srun": f'--kill-on-bad-exit=1 --label --ntasks="{ranks}"',
        "mpiexec": f'-n "{ranks}"',
        "horovodrun": f'-np "{ranks}" -H "$hosts"',
    }
    return f"{_quoted([site.launcher, *site.launcher_options])} {own[site.launcher]}"


def _study_launcher(site):
    """The option of `labs study` that says how ranks start in a job of SLURM's; without SLURM it chooses itself."""
    words = shlex.join([site.launcher, *site.launcher_options])
    return f'[ -z "${{SLURM_JOB_ID:-}}" ] || study+=("--launcher={words}")'


def fill(text, values, name="script"):
    """The text with its fields filled. Raises BuildError for a field that nobody knows."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        if unknown := [field for field in _FIELD.findall(line) if field not in values]:
            raise BuildError(f"{name}:{number}: @{unknown[0]}@ is not known; known are {', '.join(sorted(values))}")
        whole = _FIELD.fullmatch(line.strip())
        if not whole or str(values[whole[1]]):
            lines.append(_FIELD.sub(lambda match: str(values[match[1]]), line))
    return "\n".join(lines)


def scripts(root):
    """{path below `root`: text} of all batch scripts, complete and with blanks. Raises BuildError, UseError."""
    made = {}
    for site in (sites.load(id, root) for id in sites.names(root)):
        for name, path in sources(root).items():
            label = f"solutions/slurm/{name}"
            text = fill(path.read_text(encoding="utf-8"), fields(site, name), label)
            both = {f"solutions/slurm/{site.id}/{name}": strip_markers(text, label)}
            both[f"slurm/{site.id}/{name}"] = blank_batch(text, label)
            for path, text in both.items():
                if broken := syntax(text):
                    said = f"{path}:{broken.line_number}: {broken.problem}"
                    raise BuildError(f"{said} Look into slurm/sites/{site.id}.toml.")
            made |= both
    return made
