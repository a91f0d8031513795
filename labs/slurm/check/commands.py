"""Findings on what is started: the Python script, its launcher, batch and learning rate, modules."""

import difflib
import itertools
import os
import re

from labs import presets
from labs.printed import several
from labs.slurm import directives, trial
from labs.slurm.check import training
from labs.slurm.check.finding import finding


def findings(subject):
    """All findings of this theme."""
    for look in (_missing, _modules, _launcher, _srun_cores, _options):
        yield from look(subject)
    for look in (_container, _typographic, _conda, _alone, _visible, _numbers):
        yield from itertools.islice(look(subject), 1)
    for path in dict.fromkeys(one.script for one in subject.trainings):
        runs = [one for one in subject.trainings if one.script == path]
        yield from _batch(subject, runs)
        yield from _rate(runs)


def _missing(subject):
    first = {one.script: one for one in reversed(subject.trainings)}
    for script, one in first.items():
        if not one.exists and not training.made_up(str(script)):
            yield finding("no_script", one.line_number, script=script)


def _container(subject):
    """A container that does not see the GPUs."""
    for one in subject.trainings:
        for call in one.call.above() if one.kind and subject.site.gpus and subject.asked["gpus_per_node"] else ():
            name, flags = call.words[0], {"--nv", "--nvccli", "--rocm"}
            if name in ("singularity", "apptainer") and not flags & set(call.words):
                if not any(call.env.get(f"{prefix}_NV") for prefix in ("SINGULARITY", "APPTAINER")):
                    yield finding("no_nv", one.line_number, container=name, verb=call.words[1])


def _typographic(subject):
    """Dashes and quotation marks of a word processor, which bash takes for letters."""
    for one in subject.calls:
        wrong = next((word for word in one.words[1:] if directives.TYPOGRAPHIC.search(word) and len(word) < 100), None)
        if wrong and (one.words[0] in directives.LAUNCHERS or one in [each.call for each in subject.trainings]):
            yield finding("typographic", one.line_number, word=wrong)


def _conda(subject):
    """`conda activate` is a function, which a batch script's bash does not have by itself."""
    if re.match(r"#!.*\s-\w*[li]|#!.*--login", subject.lines[0]):
        return
    brought = [number for number, text in subject.code() if re.search(r"(^|[\s;&(])(source|\.|eval)\s", text)]
    for one in subject.calls:
        name, words = one.words[0], one.words[1:]
        loads = name in ("module", "ml") and re.search(r"(?i)conda|mamba|forge|python", " ".join(words))
        if loads or any(number <= (one.line_number or 0) for number in brought):
            return  # that may bring the function
        if name in ("conda", "mamba", "micromamba") and words[:1] == ["activate"]:
            yield finding("conda_hook", one.line_number, name=name)


def _alone(subject):
    """A training in the background, and the script ends before it."""
    training_of = {one.call: one for one in subject.trainings}
    started = [one for one in subject.calls if one in training_of or one.words[0] in directives.LAUNCHERS]
    for one in started:
        if not one.background or any(step > one.step for step in subject.tried.waits):
            continue
        known = any(each.kind for call, each in training_of.items() if one in (call, *call.above()))
        if known or one == started[-1]:
            name = training_of[one].script.name if one in training_of else " ".join(one.words[:4])
            yield finding("left_alone", one.line_number, name=name)


def _visible(subject):
    """More workers than the GPUs that CUDA_VISIBLE_DEVICES leaves."""
    for one in subject.trainings:
        visible = one.visible()
        seen = [word for word in (visible or "").split(",") if word.strip() not in ("", "-1", "NoDevFiles")]
        workers = one.workers if one.kind == "mirrored" else 1 if one.kind else None
        if workers and seen and workers > len(seen):
            gpus = several(len(seen), "GPU")
            yield finding("visible", one.line_number, one=one, visible=visible, workers=workers, gpus=gpus)


def _numbers(subject):
    """Workers or a batch that are not a number, unless that follows from what is told elsewhere."""
    told = subject.tried.not_found or subject.tried.unknown
    for one in subject.trainings:
        if one.kind and not told and (wrong := one.no_number()):
            yield finding("no_number", one.line_number, one=one, option=wrong[0], text=wrong[1][:60])


def _options(subject):
    """Options that the Python script does not have."""
    told = set()
    for one in subject.trainings:
        known = one.program.options
        if known is None:
            continue
        for name in one.options:
            meant = [option for option in known if option == name or option.startswith(name)]
            if name == "help" or name in meant or len(meant) == 1 or name in told:
                continue
            told.add(name)
            near = difflib.get_close_matches(name, known, 1, 0.6)
            near = near or [option for option in sorted(known) if name.replace("-", "_").strip("_") in option][:1]
            fix = f"Did you mean --{near[0]}?" if near else f"It has --{', --'.join(sorted(known))}."
            yield finding("no_such_option", one.line_number, script=one.script.name, option=name[:60], fix=fix)


def _modules(subject):
    """The site's modules: some are missing, or all of them and nothing else brings a Python."""
    wanted = {name.partition("/")[0]: name for name in subject.site.modules}
    if not wanted or not subject.calls or any(re.match(r"\s*(source|\.|eval)\s", text) for _, text in subject.code()):
        return  # that file may load them
    loads = [one for one in subject.calls if one.words[0] in ("module", "ml")]
    loaded = {word.partition("/")[0] for one in loads for word in one.words[1:]}
    missing = [full for name, full in wanted.items() if name not in loaded]
    brought = {"conda", "mamba", "micromamba", "uv", "spack", "shifter", "singularity", "apptainer", trial.UNKNOWN}
    if missing and not (brought - {*wanted}) & {one.words[0] for one in subject.calls}:
        line = loads[-1].line_number if loads else subject.script.first_command or 1
        more = {"commas": ", ".join(missing), "blanks": " ".join(missing), "site": subject.site}
        yield finding("not_loaded", line, severity="note" if len(missing) < len(wanted) else None, **more)


def _launcher(subject):
    site, asked, ranked = subject.site, subject.asked, [one for one in subject.trainings if one.kind == "horovod"]
    ranked = [one for one in ranked if one.ranks is not None]  # else its launcher is not known
    wrong = {one.line_number: one for one in reversed(ranked) if _alike(one.launcher_name) != site.launcher}
    for line, one in wrong.items():
        yield finding("other_launcher" if one.launcher else "no_launcher", line, one=one, site=site)
    tasks, counts = asked["tasks"], [one.tasks for one in ranked]
    if wrong or not tasks or not counts or None in counts or max(counts) == tasks:
        return
    if asked["gpus_per_node"] in (0, None, asked["tasks_per_node"]):  # else that is what is wrong
        most = max(ranked, key=lambda one: one.tasks)
        name = "idle_ranks" if most.tasks < tasks else "too_many_ranks"
        yield finding(name, most.line_number, most=most, tasks=tasks)


def _alike(launcher):
    return {"mpirun": "mpiexec"}.get(launcher, launcher)


def _srun_cores(subject):
    given = subject.asked["cpus_per_task"] or 1
    if given == 1 or "SRUN_CPUS_PER_TASK=" in subject.text or os.environ.get("SRUN_CPUS_PER_TASK"):
        return
    if any(re.search(r"\bSRUN_CPUS_PER_TASK\b", text) for _, text in subject.code()):
        return
    for one in subject.trainings:
        said = any(re.match(r"--cpus-per-task|-c", word) for word in one.launcher_options)
        copies = one.kind == "mirrored" and one.tasks != 1
        if one.launcher_name == "srun" and not said and not copies:
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
    elif len(workers) == 1 and most.workers > 1 and _fixed(subject, most):
        yield finding("constant_batch", line, most=most)


def _fixed(subject, one):
    """Is it the course's local batch, not multiplied; or computed from the job's size, and not from all of it?"""
    if one.global_batch == presets.PRESETS[subject.site.preset].local_batch:
        return True
    size = re.compile(r"(?i)batch.*SLURM_(N?TASKS|NPROCS|N?NODES|JOB_NUM_NODES|GPUS)")
    if one.kind != "horovod" or not any(size.search(text) for _, text in subject.code()):
        return False
    _, there = training.elsewhere(subject.text, subject.name, subject.root, subject.known)
    found = training.not_following(subject.trainings, there)
    return bool(found) and found[2] == "batch"


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
