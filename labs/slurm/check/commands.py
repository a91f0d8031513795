"""Findings on what is started: the Python script and its options, its launcher, its batch, modules and containers."""

import difflib
import itertools
import os
import re

from labs.printed import several
from labs.slurm import directives, trial
from labs.slurm.check import training
from labs.slurm.check.finding import error, note


def findings(subject):
    """All findings of this theme; of most kinds the first one."""
    yield from _missing(subject)
    for look in (_modules, _launcher, _step, _options, _container, _typographic, _left, _numbers):
        yield from itertools.islice(look(subject), 1)
    for path in dict.fromkeys(one.script for one in subject.trainings):
        yield from _batch([one for one in subject.trainings if one.script == path])


def _missing(subject):
    first = {one.script: one for one in reversed(subject.trainings)}
    for script, one in first.items():
        if not one.exists and not training.made_up(str(script)):
            why = "The job starts in the folder from which you submit, and ends at this line."
            yield error("no_script", one.line_number, f"There is no {script}.", why, "Check the path of the script.")
    for one in subject.tried.calls:
        options = all(word.startswith("-") and word not in ("-", "-c", "-m") for word in one.words[1:])
        if options and one.words[0].startswith("python") and one.starts_ranks():
            why = "What `sbatch FILE ...` has behind the name is $1, $2, ... here; without it nothing is trained."
            yield note(
                "no_script", one.line_number, "Python starts without a script.", why, 'Write its name, and "$@".'
            )


def _modules(subject):
    """None of the site's modules is loaded, and nothing else brings a Python."""
    wanted, calls = subject.site.modules, subject.tried.calls
    brought = {"conda", "mamba", "micromamba", "uv", "spack", "shifter", "singularity", "apptainer", trial.UNKNOWN}
    brought -= {name.partition("/")[0] for name in wanted}
    if not wanted or brought & {one.words[0] for one in calls}:
        return
    loads = [one for one in calls if one.words[0] == "module"]
    loaded = {word.partition("/")[0] for one in loads for word in one.words[1:]}
    read = any(re.match(r"\s*(source|\.|eval)\s", text) for _, text in subject.code())  # that file may load them
    if calls and not read and not loaded & {name.partition("/")[0] for name in wanted}:
        problem = f"Not loaded: {', '.join(wanted)}."
        why = f"{subject.site.name} has its software in modules; without them Python or a library is not found."
        line = loads[-1].line_number if loads else subject.script.first_command
        yield error("not_loaded", line, problem, why, f"module load {' '.join(wanted)}")


def _launcher(subject):
    """Ranks without a launcher, by another one than the site's, by two, or as many as the job does not have."""
    site, ranked = subject.site, [one for one in subject.trainings if one.kind == "horovod" and one.ranks is not None]
    for one in ranked:
        launchers = [call.words[0] for call in one.call.above() if call.words[0] in directives.LAUNCHERS]
        asked, line = subject.asked[min(one.part, len(subject.asked) - 1)], one.line_number
        tasks = (
            asked["tasks"] if asked["gpus_per_node"] in (0, None, asked["tasks_per_node"]) else None
        )  # else it is told
        most = max((each.tasks or 0 for each in ranked if each.part == one.part), default=0)
        if not launchers:
            problem = f"{one.script.name} starts without a launcher: one process."
            why = "With a size of 1, all other tasks and GPUs are idle, and no error says so."
            yield error("no_launcher", line, problem, why, f"Write {site.launcher} before Python.")
        elif len(launchers) > 1:
            problem = f"{launchers[-1]} starts {launchers[-2]}, which starts ranks itself."
            fix = f"Remove {launchers[-2]} and its options."
            yield error("two_launchers", line, problem, "Each task starts all the ranks once more.", fix)
        elif tasks and one.tasks == most != tasks:
            problem = f"{launchers[0]} starts {most} of the {tasks} tasks that the job asks for."
            why = "The GPUs of the others are idle."
            if most > tasks:
                problem = f"{launchers[0]} starts {several(most, 'task')}, the job has {tasks}."
                why = "The launcher refuses, or puts two ranks on one GPU."
            yield error("ranks", line, problem, why, f"Start {tasks}.")
    for one in ranked:
        name = one.launcher_name or site.launcher
        if {"mpirun": "mpiexec"}.get(name, name) != site.launcher:
            why = f"At {site.name} another launcher may not know the job's nodes and tasks."
            fix = f"Write {site.launcher} in place of {name} and its options."
            yield note("other_launcher", one.line_number, f"{name} starts ranks, not {site.launcher}.", why, fix)


def _step(subject):
    """What srun does not take from the job by itself: its environment, its cores."""
    for one in subject.trainings:
        step = one.step
        if step is None:
            continue
        exported = one.launcher.env.get("SLURM_EXPORT_ENV", "ALL")
        if "ALL" not in exported.split(",") and not step.find("export"):
            problem = f"srun hands the script's variables to no task, by --export={exported}."
            why = "The tasks have no PATH and nothing that modules set: they find no Python, or another one."
            yield error("no_environment", one.line_number, problem, why, "Write srun --export=ALL.")
        given = subject.asked[0]["cpus_per_task"] or 1
        there = one.launcher.env.get("SRUN_CPUS_PER_TASK") or os.environ.get("SRUN_CPUS_PER_TASK")
        if (
            given > 1
            and not there
            and not step.find("cpus-per-task")
            and not (one.kind == "mirrored" and one.tasks != 1)
        ):
            problem = f"srun gives each task 1 CPU of the {given} that the script asks for."
            why = (
                "Since SLURM 22.05 srun does not take --cpus-per-task from the job: a rank feeds its GPU with one core."
            )
            fix = 'Write export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK" before it, or srun --cpus-per-task=...'
            yield note("one_core", one.line_number, problem, why, fix)


def _options(subject):
    """Words that the Python script does not take, as its argparse says."""
    for one in subject.trainings:
        odd, names = next((word for word in one.rest if word != "--"), ""), one.program.names()
        if not one.program.known or directives.TYPOGRAPHIC.search(odd) or not (odd.strip() or one.refused):
            continue
        option, word = odd.startswith("-") and "--" not in one.rest, odd.partition("=")[0].replace("-", "_").strip("_")
        near = [name for name in names if word and word in name][:1]
        near = difflib.get_close_matches(f"--{word}", names, 1, 0.6) or near
        problem = f"{one.script.name}: {one.refused}."
        if odd:
            problem = f"{one.script.name} has no {'option' if option else 'place for'} {odd.partition('=')[0][:60]}."
        fix = f"Did you mean {near[0]}?" if near else f"It has {', '.join(names)}."
        fix = "Remove `--`: what stands behind it is not read as options." if "--" in one.rest else fix
        why = "It ends at its start with an error in its command line."
        yield error("no_such_option", one.line_number, problem, why, fix)


def _container(subject):
    """A container that does not see the GPUs."""
    for one in subject.trainings:
        for call in one.call.above() if one.kind and subject.site.gpus else ():
            name, flags = call.words[0], {"--nv", "--nvccli", "--rocm"}
            if name in ("singularity", "apptainer") and not flags & set(call.words):
                if not any(call.env.get(f"{prefix}_NV") for prefix in ("SINGULARITY", "APPTAINER")):
                    why = "The container does not see the GPUs: TensorFlow trains on the cores, slowly, or stops."
                    fix = f"Write {name} {call.words[1]} --nv ..."
                    yield error("no_nv", one.line_number, f"{name} without --nv.", why, fix)


def _typographic(subject):
    """Dashes and quotation marks of a word processor, which bash takes for letters."""
    for one in subject.tried.calls:
        wrong = next((word for word in one.words[1:] if directives.TYPOGRAPHIC.search(word) and len(word) < 100), None)
        if wrong and (one.words[0] in directives.LAUNCHERS or one in [each.call for each in subject.trainings]):
            problem = f"`{wrong}` contains a dash, quotation mark or blank from a word processor."
            why = "bash and the program read it as a letter, and see no option."
            yield error("typographic", one.line_number, problem, why, "Type it again.")


def _left(subject):
    """A training in the background, and the script ends before it."""
    for one in subject.trainings:
        if one.call.left:
            problem = f"{one.script.name} starts in the background (&), and nothing waits for it."
            why = "SLURM ends the job, and everything that runs in it, when the script ends."
            yield error("left_alone", one.line_number, problem, why, "Write `wait` after it, or leave out the &.")


def _numbers(subject):
    """Workers or a batch that are not a number, unless that follows from what is told elsewhere."""
    told = subject.tried.not_found or subject.tried.unknown
    for one in subject.trainings:
        if one.kind and not told and (wrong := one.no_number()):
            problem = f"{one.script.name} gets {wrong[0]} {wrong[1][:60]!r}, which is not a whole number."
            why = "Which part does bash read as a number here, and which as text? The Python script ends at its start."
            fix = "bash computes only inside $((...)), such as batch=$((LOCAL * workers))."
            yield error("no_number", one.line_number, problem, why, fix)


def _batch(runs):
    """A global batch that is not the workers' number times one local batch."""
    runs = sorted((one for one in runs if one.workers and one.global_batch), key=lambda one: one.workers)
    workers = sorted({one.workers for one in runs})
    uneven = [one for one in runs if one.global_batch % one.workers]
    if len(workers) > 1 and len({one.global_batch for one in runs}) == 1:
        problem = f"The same global batch of {runs[-1].global_batch} on {', '.join(map(str, workers))} workers."
        line = runs[-1].line_number
    elif uneven:
        problem = f"A batch of {uneven[0].global_batch} cannot be divided among {uneven[0].workers} workers."
        line = uneven[0].line_number
    elif len(workers) > 1 and len({one.global_batch / one.workers for one in runs}) > 1:
        pairs = ", ".join(f"{one.global_batch} on {one.workers}" for one in runs)
        problem, line = f"The global batch does not follow the workers: {pairs}.", runs[-1].line_number
    else:
        return
    why = "--batch_size is the global batch, in equal shares for all workers; if a share changes with their number, a "
    why += "speedup measures two things at once."
    yield error("batch", line, problem, why, "Compute it: batch=$((LOCAL * workers)), with one LOCAL for all runs.")
