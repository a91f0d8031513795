"""Findings on what would be started: the Python script, its launcher, batch and learning rate, modules."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from labs.slurm.check import program
from labs.slurm.check.finding import Finding

_ALIKE = {"mpirun": "mpiexec"}


@dataclass(frozen=True)
class Training:
    """One start of a Python script. kind: "horovod", "mirrored" or None; tasks: processes; workers: what shares the
    global batch; batch: the global batch; rate: --learning_rate as text. None: not given or not to be told."""

    line_number: int
    path: Path
    program: program.Program
    launcher: str | None
    launcher_options: tuple
    tasks: int | None
    workers: int | None
    batch: int | None
    rate: str | None

    @property
    def kind(self):
        return self.program.kind


def trainings(commands, root):
    """The Trainings among commands whose script is there, in order."""
    found = []
    for one in commands:
        if one.script is None or not (Path(root) / one.script).is_file():
            continue
        read = program.read(Path(root) / one.script)
        workers = one.tasks if one.launcher else 1
        if read.kind != "horovod":
            workers = _whole(one.options.get("n_gpus"))
        names = [read.option, "learning_rate", "lr"]
        rate = next((one.options[name] for name in names if one.options.get(name)), None)
        found.append(
            Training(
                one.line_number,
                one.script,
                read,
                one.launcher,
                tuple(one.launcher_options),
                one.tasks,
                workers,
                _whole(one.options.get("batch_size")),
                rate,
            )
        )
    return found


def _whole(text):
    return int(text) if text and text.isdigit() and int(text) > 0 else None


def findings(subject, started):
    """All findings of this theme. started: the Trainings that the script would start."""
    yield from _missing(subject)
    yield from _modules(subject)
    yield from _launcher(subject, started)
    yield from _srun_cores(subject, started)
    for path in dict.fromkeys(one.path for one in started):
        runs = [one for one in started if one.path == path]
        yield from _batch(subject, runs)
        yield from _rate(runs)


def _missing(subject):
    told = set()
    for one in subject.commands:
        if one.script is None or one.script in told or one.script.is_absolute():
            continue
        told.add(one.script)
        if not (subject.root / one.script).is_file():
            yield Finding(
                one.line_number,
                f"There is no {one.script}.",
                "The job starts in the folder from which you submit, the course's, and ends at this line.",
                "Check the path, or write that script first.",
            )


def _modules(subject):
    wanted = {name.partition("/")[0]: name for name in subject.site.modules}
    if not wanted or not subject.commands:
        return
    if any(re.match(r"\s*(source|\.)\s", text) for _, text in subject.code()):
        return  # that file may load them
    loads = [one for one in subject.commands if one.words[0] in ("module", "ml")]
    loaded = {word.partition("/")[0] for one in loads for word in one.words[1:]}
    missing = [full for name, full in wanted.items() if name not in loaded]
    if missing:
        line = loads[-1].line_number if loads else subject.script.first_command or 1
        yield Finding(
            line,
            f"Not loaded: {', '.join(missing)}.",
            f"{subject.site.name} has its software in modules; without them Python or a library is not found.",
            f"module load {' '.join(missing)}",
        )


def _launcher(subject, started):
    site, ranked = subject.site, [one for one in started if one.kind == "horovod"]
    wrong = set()
    for one in ranked:
        if _ALIKE.get(one.launcher, one.launcher) == site.launcher or one.line_number in wrong:
            continue
        wrong.add(one.line_number)
        if one.launcher is None:
            yield Finding(
                one.line_number,
                f"{one.path.name} starts without a launcher: one process.",
                "With a size of 1 all other tasks and GPUs idle, without an error.",
                f"Write {site.launcher} before Python.",
            )
        else:
            yield Finding(
                one.line_number,
                f"{one.launcher} starts ranks, not {site.launcher}.",
                f"At {site.name} another launcher does not know the job's nodes and tasks: it "
                "fails, or starts every rank alone.",
                f"Write {site.launcher}.",
            )
    tasks, counts = subject.asked["tasks"], [one.tasks for one in ranked if one.launcher]
    if wrong or not tasks or not counts or None in counts or max(counts) == tasks:
        return
    most = max((one for one in ranked if one.launcher), key=lambda one: one.tasks)
    if subject.asked["tasks_per_node"] != subject.asked["gpus_per_node"] and subject.asked["gpus_per_node"]:
        return  # that is what is wrong
    if most.tasks < tasks:
        yield Finding(
            most.line_number,
            f"{most.launcher} starts {most.tasks} of the {tasks} tasks that the job asks for.",
            "The GPUs of the others idle.",
            f"Start {tasks} at the end, or ask for fewer tasks.",
        )
    else:
        yield Finding(
            most.line_number,
            f"{most.launcher} starts {most.tasks} tasks, the job has {tasks}.",
            "srun refuses, or puts two ranks on one GPU.",
            "Start as many as --ntasks-per-node says, times the nodes.",
        )


def _srun_cores(subject, started):
    given = subject.asked["cpus_per_task"] or 1
    if given == 1 or "SRUN_CPUS_PER_TASK=" in subject.text or os.environ.get("SRUN_CPUS_PER_TASK"):
        return
    if any(re.search(r"\bSRUN_CPUS_PER_TASK\b", text) for _, text in subject.code()):
        return
    told = set()
    for one in started:
        said = any(re.match(r"--cpus-per-task|-c", word) for word in one.launcher_options)
        copies = one.kind == "mirrored" and one.tasks != 1
        if one.launcher == "srun" and not said and not copies and one.line_number not in told:
            told.add(one.line_number)
            yield Finding(
                one.line_number,
                f"srun gives each task 1 CPU of the {given} that the script asks for.",
                "Since SLURM 22.05 srun does not take --cpus-per-task from the job: each rank would feed its "
                "GPU with one core.",
                'Write export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK" before it, or srun --cpus-per-task=...',
            )


def _batch(subject, runs):
    runs = [one for one in runs if one.workers and one.batch]
    local = {one.batch / one.workers for one in runs}
    workers = {one.workers for one in runs}
    if not runs:
        return
    most = max(runs, key=lambda one: one.workers)
    why = (
        "--batch_size is the global batch: with it divided among more workers, each has less to do, and a speedup "
        "measures two things at once."
    )
    uneven = [one for one in runs if one.batch % one.workers]
    if len(workers) > 1 and len({one.batch for one in runs}) == 1:
        counts = ", ".join(map(str, sorted(workers)))
        yield Finding(
            most.line_number,
            f"The same global batch of {most.batch} on {counts} workers.",
            why,
            "Let it follow: batch=$((LOCAL * workers)), with the same local batch for all.",
        )
    elif uneven:
        one = uneven[0]
        yield Finding(
            one.line_number,
            f"A batch of {one.batch} cannot be divided among {one.workers} workers.",
            "Their shares must be equal, or the mean of their gradients is not that of the batch.",
            f"Take a multiple of {one.workers}.",
        )
    elif len(workers) > 1 and len(local) > 1:
        pairs = ", ".join(f"{one.batch} on {one.workers}" for one in sorted(runs, key=lambda one: one.workers))
        yield Finding(
            most.line_number,
            f"The global batch does not follow the workers: {pairs}.",
            why,
            "Let it follow: batch=$((LOCAL * workers)), with the same local batch for all.",
        )
    elif len(workers) == 1 and most.workers > 1 and not _follows(subject, most):
        yield Finding(
            most.line_number,
            f"A global batch of {most.batch} for {most.workers} workers, which does not follow their number.",
            why,
            "Compute it: batch=$((LOCAL * SLURM_NTASKS)), or LOCAL times the --n_gpus.",
        )


def _follows(subject, one):
    """Does the batch of a script with one number of workers follow it? Twice the nodes tell; where they change
    nothing, the course's own local batch not multiplied is a batch that does not."""
    from labs import presets

    usual = presets.PRESETS[subject.site.preset].local_batch
    for more in trainings(subject.more(), subject.root):
        if more.line_number == one.line_number and more.batch and more.workers != one.workers:
            return more.batch * one.workers == one.batch * more.workers or one.batch == usual * one.workers
    return one.batch != usual


def _rate(runs):
    runs = [one for one in runs if one.workers]
    workers = {one.workers for one in runs}
    if not runs or max(workers) == 1 or runs[0].program.rate is None:
        return
    made, name = runs[0].program, runs[0].path.name
    most = max(runs, key=lambda one: one.workers)
    rates = {one.rate for one in runs}
    text = f"{name} (line {made.line_number})"
    if not made.rate:
        yield Finding(
            most.line_number,
            f"{text} has a constant learning rate, on {most.workers} workers too.",
            "The global batch grows with the workers; by the linear rule the rate grows with it, or the "
            "training needs more epochs.",
            "Multiply it by the workers in the Python script.",
        )
    elif "workers" in made.rate and len(workers) > 1 and len(rates) > 1 and None not in rates:
        yield Finding(
            most.line_number,
            f"The learning rate is scaled twice: here, and in {text}.",
            f"With {most.workers} workers it would be {most.workers} times too large, and may diverge.",
            "Leave it to the Python script: give every run the rate of one worker.",
        )
    elif made.rate == {"option"} and len(workers) > 1 and len(rates) == 1:
        yield Finding(
            most.line_number,
            f"The same learning rate ({most.rate or 'the default'}) on {', '.join(map(str, sorted(workers)))} workers.",
            f"{text} takes it from --{made.option} as it "
            "is; the global batch grows with the workers, and the rate must follow.",
            f"Give --{made.option} the rate of one worker times the workers.",
        )
