"""Findings on what the trial saw: the Python script, its launcher, its batch; where bash ends it."""

import re

from labs.printed import several
from labs.slurm import trial
from labs.slurm.check.finding import ScriptFinding

# What brings a Python of its own; a program that is not known may, too.
_BRING_PYTHON = {"conda", "mamba", "micromamba", "uv", "spack", "shifter", "singularity", "apptainer", trial.UNKNOWN}


def findings(subject):
    """All findings of this theme; of most kinds the first one."""
    yield from _fails(subject)
    for look in (_missing, _modules, _launcher, _numbers):
        yield from [found for found in look(subject)][:1]
    for path in dict.fromkeys(training.script for training in subject.trainings):
        yield from _batch([training for training in subject.trainings if training.script == path])


def _missing(subject):
    for missing in [training for training in subject.trainings if not training.exists]:
        problem = f"There is no {missing.script}, seen from the course's folder, where you submit."
        yield ScriptFinding(missing.line_number, problem, "Check the path of the script.")


def _modules(subject):
    """None of the site's modules is loaded, and nothing else brings a Python."""
    calls, wanted = subject.tried.calls, {name.partition("/")[0] for name in subject.site.modules}
    loads = [call for call in calls if call.words[0] == "module"]
    loaded = {word.partition("/")[0] for load in loads for word in load.words[1:]}
    brought = {call.words[0] for call in calls} & (_BRING_PYTHON - wanted)
    if calls and wanted and not brought and not wanted & loaded:
        modules = subject.site.modules
        problem = f"Not loaded: {', '.join(modules)}. {subject.site.name} has its software in modules."
        yield ScriptFinding((loads or calls)[-1].line_number, problem, f"module load {' '.join(modules)}")


def _launcher(subject):
    """Ranks without a launcher, by two, or as many as the job does not have."""
    asked, ranked = subject.asked, [one for one in subject.trainings if one.kind == "horovod" and one.ranks is not None]
    most = max((training.tasks or 0 for training in ranked), default=0)
    for training in ranked:
        launchers = [call.words[0] for call in training.call.launchers]
        # Of tasks that are not as many as the GPUs, `resources` tells.
        tasks = asked["tasks"] if asked["gpus_per_node"] in (0, asked["tasks_per_node"]) else None
        if not launchers:
            problem = f"{training.script.name} starts without a launcher: one process, and all other tasks are idle."
            yield ScriptFinding(training.line_number, problem, f"Write {subject.site.launcher} before Python.")
        elif len(launchers) > 1:
            problem = f"{launchers[-1]} starts {launchers[-2]}: each task starts all the ranks once more."
            yield ScriptFinding(training.line_number, problem, f"Remove {launchers[-2]} and its options.")
        elif tasks and training.tasks == most != tasks:
            what = "GPUs" if asked["gpus_per_node"] else "cores"
            problem = f"{launchers[0]} starts {several(most, 'task')}, the job has {tasks}: {what} are idle, or shared."
            yield ScriptFinding(training.line_number, problem, f"Start {tasks}.")


def _numbers(subject):
    """Workers or a batch that are not a number, unless that may follow from what is told elsewhere."""
    for training in [one for one in subject.trainings if one.kind and not subject.tried.unknown]:
        for name, text in (training.sharing, ("--batch_size", training.options.get("batch_size"))):
            if text is not None and not text.strip().isdecimal():
                problem = f"{training.script.name} gets {name} {text[:60]!r}, which is not a whole number. "
                problem += "Which part does bash read as a number here, and which as text?"
                fix = "bash computes only inside $((...)), such as batch=$((LOCAL * workers))."
                yield ScriptFinding(training.line_number, problem, fix, by_task=True)


def _batch(runs):
    """A global batch that is not the workers' number times one local batch."""
    runs = sorted((run for run in runs if run.workers and run.global_batch), key=lambda run: run.workers)
    shares = {run.global_batch / run.workers for run in runs}
    several_workers = len({run.workers for run in runs}) > 1
    if any(share % 1 for share in shares) or (several_workers and len(shares) > 1):
        pairs = ", ".join(f"{run.global_batch} on {several(run.workers, 'worker')}" for run in runs)
        problem = f"The global batch does not follow the workers: {pairs}. They share it in equal parts; if a part "
        problem += "changes with their number, a speedup measures two things at once."
        fix = "Compute it: batch=$((LOCAL * workers)), with one LOCAL for all runs."
        yield ScriptFinding(runs[-1].line_number, problem, fix, by_task=True)


def _fails(subject):
    """Where bash ends the script at every site."""
    tried = subject.tried
    if not tried.error or not tried.certain:
        return
    problem, fix = f"The script ends here: {tried.error}.", "`bash FILE` in a terminal shows the same."
    if "command not found" in tried.error:
        fix = "Check its name. A line begins with a program or name=value, without blanks around the =; $((...)) "
        fix += "computes; no blank follows a \\ at the end of a line."
    elif unset := re.fullmatch(r"(\w+)(\[.*\])?: unbound variable", tried.error):
        problem = f"${unset[1]}{unset[2] or ''} is not set, neither in the script nor here: the script ends here."
        fix = _assign("\n".join(subject.lines), *unset.groups())
    yield ScriptFinding(tried.line_number, problem, fix, by_task=True)


def _assign(text, name, index):
    """What to write where a variable, or an array's element, is not set."""
    if index:
        return f"Compare the length of {name} with --array, or with the numbers of the loop; the first index is 0."
    if name.startswith("SLURM_"):
        return f"Add #SBATCH --{name.removeprefix('SLURM_').lower().replace('_', '-')}=..., or write ${{{name}:-1}}."
    near = trial.similar_variable(name, text)
    return (
        f"Did you mean ${near}?" if near else f"Set it above by {name}=VALUE, without $, or write ${{{name}:-VALUE}}."
    )
