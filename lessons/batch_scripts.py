"""What the checks of batch scripts share: is a script right?

Its directives and the rules of its site are read (`labs slurm check`). Then the script is tried out: bash runs it where
it reaches nothing, and what it starts is judged, however it is written. Without a sandbox nothing is
said of what it starts.
"""

from pathlib import Path

from labs import blanks, presets
from labs.checks.judging import NotDone, OnlyRead
from labs.printed import several
from labs.slurm import check, directives, sites, trial
from labs.slurm.check import training

_TRIED = " (Bash ran the script, with stand-ins for Python, srun and the rest of what a cluster has.)"


def judge(path, trains, nodes=()):
    """Cases of a batch script that is to run the training script `trains`, as a judge yields them.

    nodes: on how many nodes it must be right too, when `sbatch` asks for them in the command line.
    The site is that of the script's folder, else the one in use. Raises NotDone for a script with blanks, OnlyRead for
    one without a mistake in what was read, where it cannot be tried out.
    """
    path = Path(path)
    for number, line in blanks.blanks_of_batch(path.read_text()):
        raise NotDone(f"Line {number} of {path.name} is still blank: {line}")
    site = sites.load(path.parent.name if path.parent.name in sites.names() else None)
    subject = check.look_at(path, site)
    errors = [one for one in subject.findings if not one.by_task]
    done, untried = subject.tried, subject.untried
    ends = done.error and done.certain
    if ends and not any(one.line_number <= (done.line_number or 0) for one in errors):
        yield True, f"{_tried(done, subject.trainings, trains, site)}{_assigned(subject.text, done)}{_TRIED}"
    more = f" ({several(len(errors) - 1, 'more mistake')} after this one.)" if len(errors) > 1 else ""
    how = f" (The script was read, and not tried out: {untried}.)" if untried else ""
    for first in errors:  # its fix is for `labs slurm check`
        yield True, f"Line {first.line_number}: {first.problem}{more}{how}"
    if untried:
        starts = f"What {path.name} starts was not looked at, since bash cannot try it out on this machine: {untried}."
        raise OnlyRead(f"its directives follow the site's rules. {starts}")
    if done.error and not ends:
        starts = f"What {path.name} starts was not seen to its end: {done.unknown[-1][1]}."
        raise OnlyRead(f"its directives follow the site's rules. {starts}")
    hint = _tried(done, subject.trainings, trains, site) or _elsewhere(subject, trains, nodes)
    yield hint, f"{hint}{_TRIED}"


def _assigned(text, done):
    """A sentence on how bash reads the assignment in which a script (trial.Tried) ended, or ""."""
    line = text.splitlines()[(done.line_number or 1) - 1].strip()
    name, equals, value = line.partition("=")
    if not equals or not name.strip().isidentifier() or "command not found" not in done.error:
        return ""
    if name != name.rstrip() or value != value.lstrip():
        return " Bash takes no space beside the `=`."
    if "$(" in value and "$((" not in value:
        return " `$( )` runs a command; `$(( ))` calculates."
    return " Bash calculates only inside `$(( ))`: elsewhere a space ends the value, and `*` means all files here."


def _tried(done, started, trains, site):
    """Hint for what a script did (trial.Tried) and started (Trainings), or None if it is right.

    It must come to its end, and start `trains` with the images that the site's preset has for each worker or rank.
    """
    if done.error:
        return f"Line {done.line_number}: {done.error}." if done.line_number else f"The script fails: {done.error}."
    trainings = [one for one in started if one.script.name == trains]
    if not trainings:
        others = ", ".join(dict.fromkeys(one.script.name for one in started))
        return f"The script starts no training with {trains}{f', but {others}' if others else ''}."
    local_batch = presets.PRESETS[site.preset].local_batch
    wrong = (_wrong(one, local_batch) for one in trainings)
    return next(filter(None, wrong), None) or _no_speedup(trainings, trains)


def _elsewhere(subject, trains, nodes):
    """Hint for a script that is right as it is, but not on one of these other numbers of nodes, or None."""
    here = subject.asked["nodes"]
    for count in [each for each in nodes if each != here]:
        options = [("nodes", str(count))]
        for option in ("ntasks", "gpus"):  # of the whole job, in proportion
            if number := directives.number(subject.script.value(option)):
                options.append((option, str(number * count // here)))
        tried = trial.try_out(subject.text, subject.name, subject.root, options)
        there = training.started(tried, subject.root)
        hint = None if tried.error else _does_not_follow(subject.trainings, there, trains, here)
        if hint := hint or _tried(tried, there, trains, subject.site):
            return f"Submitted with `sbatch {' '.join(f'--{name}={value}' for name, value in options)}`: {hint}"
    return None


def _does_not_follow(once, there, trains, here):
    """Hint for ranks or a batch that are on other numbers of nodes (there) what they were on `here` (once), or None."""
    for one, more in zip(once, there, strict=False):
        if one.script.name == trains and one.ranks == more.ranks:
            return (
                f"{trains} runs on {one.ranks} rank{'s' * (one.ranks != '1')}, as many as on {several(here, 'node')}."
            )
        if one.script.name == trains and one.global_batch == more.global_batch:
            return (
                f"{trains} runs on {more.ranks} ranks, and its global batch is {more.global_batch} as it was on "
                f"{one.ranks}: a rank takes a different number of images there."
            )
    return None


def _wrong(one, local_batch):
    """Hint for one training, or None."""
    trains, where = one.script.name, f"Line {one.line_number}" if one.line_number else "The script"
    shares, batch_size = one.sharing, one.options.get("batch_size")
    for option, text in (shares, ("--batch_size", batch_size)):
        if text is None:
            return f"{where} starts {trains} without {option}, so the script uses its own default."
        if directives.number(text) is None:
            number = "Which part does bash read as a number here, and which as text?"
            return f"{where} starts {trains} with {option} {text!r}, which is not a whole number. {number}"
    workers, global_batch = one.workers or 1, one.global_batch or 1
    if global_batch == workers * local_batch:
        return None
    of = several(workers, "rank" if shares[0] == "ranks" else "worker")
    return (
        f"{where} starts {trains} on {of} with a global batch of {global_batch}: {global_batch / workers:g} images for "
        f"each, where the script is to give each {local_batch}."
    )


def _no_speedup(trainings, trains):
    """Hint for trainings with MirroredStrategy that give no speedup; ranks over nodes are one training."""
    workers = {one.workers for one in trainings if one.sharing[0] != "ranks"}
    if workers and (len(workers) == 1 or 1 not in workers):
        counts = ", ".join(map(str, sorted(workers)))
        return f"{trains} is trained with --n_gpus {counts} only: a speedup needs 1 worker and another number."
    return None
