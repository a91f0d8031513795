"""Findings on what would be started: the Python script, its launcher, batch and learning rate, modules."""

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from labs import presets
from labs.slurm import directives
from labs.slurm.check import program
from labs.slurm.check.finding import finding, several
from labs.slurm.check.starts import Command
from labs.slurm.check.words import UNKNOWN

_ALIKE = {"mpirun": "mpiexec"}


@dataclass(kw_only=True)
class Training(Command):
    """One start of a Python script. workers: what shares the global batch; rate: --learning_rate as text. None: not
    given or not to be told."""

    program: program.Program
    workers: int | None
    global_batch: int | None
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
        whole = {name: int(text) for name, text in one.options.items() if text.isdecimal() and int(text) > 0}
        workers = (one.tasks if one.launcher else 1) if read.kind == "horovod" else whole.get("n_gpus")
        rates = map(one.options.get, (read.option, "learning_rate", "lr"))
        more = {"workers": workers, "global_batch": whole.get("batch_size"), "rate": next(filter(None, rates), None)}
        found.append(Training(**vars(one), program=read, **more))
    return found


def findings(subject, started):
    """All findings of this theme. started: the Trainings that the script would start."""
    yield from _missing(subject)
    yield from _modules(subject)
    yield from _launcher(subject, started)
    yield from _srun_cores(subject, started)
    yield from _typographic(subject)
    yield from _conda(subject)
    yield from _alone(subject, started)
    yield from _visible(started)
    yield from _options(started)
    for path in dict.fromkeys(one.script for one in started):
        runs = [one for one in started if one.script == path]
        yield from _batch(subject, runs)
        yield from _rate(runs)


def _missing(subject):
    first = {one.script: one for one in reversed(subject.commands) if one.script}
    for script, one in first.items():
        written = str(script) in subject.reading.files
        if not written and not script.is_absolute() and not (subject.root / script).is_file():
            yield finding("no_script", one.line_number, script=script)


def _typographic(subject):
    """Dashes and quotation marks of a word processor, which bash takes for letters."""
    for one in subject.commands:
        wrong = next((word for word in one.words[1:] if directives.TYPOGRAPHIC.search(word) and len(word) < 100), None)
        if wrong and (one.script or one.launcher):
            yield finding("typographic", one.line_number, word=wrong)


def _conda(subject):
    """`conda activate` is a function, which a batch script's bash does not have by itself."""
    if re.match(r"#!.*\s-\w*[li]|#!.*--login", subject.lines[0]):
        return
    for one in subject.commands:
        name = one.words[0].rpartition("/")[2]
        loads = name in ("module", "ml") and re.search(r"(?i)conda|mamba|forge|python", " ".join(one.words[1:]))
        if name in ("source", "eval") or loads:
            return  # that may bring the function
        if name in ("conda", "mamba", "micromamba") and one.words[1:2] == ["activate"]:
            yield finding("conda_hook", one.line_number, name=name)
            return


def _alone(subject, started):
    """A training in the background, and the script ends before it."""
    after = [one for one in subject.commands if not one.alone and (one.script or one.launcher)]
    known = {(one.line_number, one.script) for one in started if one.kind}
    for one in subject.commands:
        if not one.alone or not (one.script or one.launcher):
            continue
        if (one.line_number, one.script) in known or not any(more.line_number > one.line_number for more in after):
            name = one.script.name if one.script else " ".join(one.words[:4])
            yield finding("left_alone", one.line_number, name=name)
            return


def _visible(started):
    """More workers than the GPUs that CUDA_VISIBLE_DEVICES leaves."""
    for one in started:
        if one.visible is None or UNKNOWN in one.visible:
            continue
        seen = [word for word in one.visible.split(",") if word.strip() not in ("", "-1", "NoDevFiles")]
        workers = one.workers if one.kind == "mirrored" else one.tasks if one.kind == "horovod" else None
        if workers and seen and workers > len(seen):
            yield finding("visible", one.line_number, one=one, workers=workers, gpus=several(len(seen), "GPU"))
            return


def _options(started):
    """Options that the Python script does not have."""
    told = set()
    for one in started:
        known = one.program.options
        if known is None:
            continue
        for name in one.options:
            meant = [option for option in known if option == name or option.startswith(name)]
            if UNKNOWN in name or not name or name == "help" or name in meant or len(meant) == 1 or name in told:
                continue
            told.add(name)
            near = difflib.get_close_matches(name, known, 1, 0.6)
            near = near or [option for option in sorted(known) if name.replace("-", "_").strip("_") in option][:1]
            fix = f"Did you mean --{near[0]}?" if near else f"It has --{', --'.join(sorted(known))}."
            yield finding("no_such_option", one.line_number, script=one.script.name, option=name[:60], fix=fix)


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
        yield finding("not_loaded", line, commas=", ".join(missing), blanks=" ".join(missing), site=subject.site)


def _launcher(subject, started):
    site, asked, ranked = subject.site, subject.asked, [one for one in started if one.kind == "horovod"]
    wrong = {
        one.line_number: one for one in reversed(ranked) if _ALIKE.get(one.launcher, one.launcher) != site.launcher
    }
    for line, one in wrong.items():
        yield finding("other_launcher" if one.launcher else "no_launcher", line, one=one, site=site)
    tasks, counts = asked["tasks"], [one.tasks for one in ranked]
    if wrong or not tasks or not counts or None in counts or max(counts) == tasks:
        return
    if asked["gpus_per_node"] in (0, None, asked["tasks_per_node"]):  # else that is what is wrong
        most = max(ranked, key=lambda one: one.tasks)
        name = "idle_ranks" if most.tasks < tasks else "too_many_ranks"
        yield finding(name, most.line_number, most=most, tasks=tasks)


def _srun_cores(subject, started):
    given = subject.asked["cpus_per_task"] or 1
    if given == 1 or "SRUN_CPUS_PER_TASK=" in subject.text or os.environ.get("SRUN_CPUS_PER_TASK"):
        return
    if any(re.search(r"\bSRUN_CPUS_PER_TASK\b", text) for _, text in subject.code()):
        return
    for one in started:
        said = any(re.match(r"--cpus-per-task|-c", word) for word in one.launcher_options)
        copies = one.kind == "mirrored" and one.tasks != 1
        if one.launcher == "srun" and not said and not copies:
            yield finding("one_core", one.line_number, cpus=given)


def _batch(subject, runs):
    """The first thing wrong with the global batches of one Python script."""
    runs = [one for one in runs if one.workers and one.global_batch]
    if not runs:
        return
    workers, most = sorted({one.workers for one in runs}), max(runs, key=lambda one: one.workers)
    line, uneven = most.line_number, [one for one in runs if one.global_batch % one.workers]
    if len(workers) > 1 and len({one.global_batch for one in runs}) == 1:
        yield finding("same_batch", line, most=most, counts=", ".join(map(str, workers)))
    elif uneven:
        yield finding("uneven_batch", uneven[0].line_number, one=uneven[0])
    elif len(workers) > 1 and len({one.global_batch / one.workers for one in runs}) > 1:
        pairs = ", ".join(f"{one.global_batch} on {one.workers}" for one in sorted(runs, key=lambda one: one.workers))
        yield finding("batch_does_not_follow", line, pairs=pairs)
    elif len(workers) == 1 and most.workers > 1 and not _follows(subject, most):
        yield finding("constant_batch", line, most=most)


def _follows(subject, one):
    """Does the batch of a script with one number of workers follow it? Twice the nodes tell; where they change
    nothing, the course's own local batch not multiplied is a batch that does not."""
    local_batch = presets.PRESETS[subject.site.preset].local_batch
    for more in trainings(subject.more().commands, subject.root):
        if more.line_number == one.line_number and more.global_batch and more.workers != one.workers:
            grows = more.global_batch * one.workers == one.global_batch * more.workers
            return grows or one.global_batch == local_batch * one.workers
    return one.global_batch != local_batch


def _rate(runs):
    runs = [one for one in runs if one.workers]
    most = max(runs, key=lambda one: one.workers, default=None)
    if not most or most.workers == 1 or most.program.rate is None:
        return
    made, rates, workers = most.program, {one.rate for one in runs}, sorted({one.workers for one in runs})
    line, where = most.line_number, f"{most.script.name} (line {made.line_number})"
    if not made.rate:
        yield finding("constant_rate", line, where=where, most=most)
    elif made.options is not None and made.option not in made.options and None not in rates:
        return  # it has no such option, which is told
    elif "workers" in made.rate and len(workers) > 1 and len(rates) > 1 and None not in rates:
        yield finding("rate_scaled_twice", line, where=where, most=most)
    elif made.rate == {"option"} and len(workers) > 1 and len(rates) == 1:
        rate, counts = most.rate or "the default", ", ".join(map(str, workers))
        yield finding("same_rate", line, where=where, rate=rate, counts=counts, option=made.option)
