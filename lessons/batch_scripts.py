"""What the checks of batch scripts share: is a script right?

Its directives and the rules of its site are read (`labs slurm check`). Then the script is tried out: bash runs it where
it reaches nothing, and what it starts is judged, however it is written. Without a sandbox nothing is
said of what it starts.
"""

from itertools import chain
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
    if done.error and done.certain and not any(one.line_number <= (done.line_number or 0) for one in errors):
        yield True, f"{_fails(done)}{_assigned(subject.text, done)}{_TRIED}"
    more = f" ({several(len(errors) - 1, 'more mistake')} after this one.)" if len(errors) > 1 else ""
    how = f" (The script was read, and not tried out: {untried}.)" if untried else ""
    for error in errors:  # its fix is for `labs slurm check`
        yield True, f"Line {error.line_number}: {error.problem}{more}{how}"
    if untried or done.error:
        seen = "looked at, since bash cannot try it out on this machine" if untried else "seen to its end"
        why = untried or done.unknown[-1][1]
        raise OnlyRead(f"its directives follow the site's rules. What {path.name} starts was not {seen}: {why}.")
    for wrong, hint in chain(_wrong(done, subject.trainings, trains, site), _elsewhere(subject, trains, nodes)):
        yield wrong, f"{hint}{_TRIED}"


def _fails(done):
    """Where and why a script (trial.Tried) does not come to its end."""
    return f"Line {done.line_number}: {done.error}." if done.line_number else f"The script fails: {done.error}."


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


def _wrong(done, started, trains, site):
    """Cases of a script that did something (trial.Tried) and started something (Trainings).

    It must come to its end, and start `trains` with the images that the site's preset has for each worker or rank.
    """
    yield done.error, _fails(done)
    trainings = [one for one in started if one.script.name == trains]
    others = ", ".join(dict.fromkeys(one.script.name for one in started))
    yield not trainings, f"The script starts no training with {trains}{f', but {others}' if others else ''}."
    for one in trainings:
        yield from _wrong_batch(one, presets.PRESETS[site.preset].local_batch)
    workers = {one.workers for one in trainings if one.sharing[0] != "ranks"}  # ranks over nodes are one training
    counts = ", ".join(map(str, sorted(workers)))
    none = workers and (len(workers) == 1 or 1 not in workers)
    yield none, f"{trains} is trained with --n_gpus {counts} only: a speedup needs 1 worker and another number."


def _wrong_batch(one, local_batch):
    """Cases of a training whose workers or ranks do not get `local_batch` images each."""
    shared, batch_size = one.sharing, one.options.get("batch_size")
    starts = f"Line {one.line_number}" if one.line_number else "The script"
    starts = f"{starts} starts {one.script.name}"
    for option, text in (shared, ("--batch_size", batch_size)):
        yield text is None, f"{starts} without {option}, so the script uses its own default."
        number = "Which part does bash read as a number here, and which as text?"
        no_number = directives.number(text) is None
        yield no_number, f"{starts} with {option} {text!r}, which is not a whole number. {number}"
    of = several(one.workers, "rank" if shared[0] == "ranks" else "worker")
    each = one.global_batch / one.workers
    given = f"{starts} on {of} with a global batch of {batch_size}: {each:g} images for each"
    yield each != local_batch, f"{given}, where the script is to give each {local_batch}."


def _elsewhere(subject, trains, nodes):
    """Cases of a script that is right as it is, but not on one of these other numbers of nodes."""
    here = subject.asked["nodes"]
    yield nodes and here < 2, f"The job gets {several(here, 'node')}, and this training is for several. See `--nodes`."
    for count in [each for each in nodes if each != here]:
        options = [("nodes", str(count))]
        for option in ("ntasks", "gpus"):  # of the whole job, in proportion
            if number := directives.number(subject.script.value(option)):
                options.append((option, str(number * count // here)))
        done = trial.try_out(subject.text, subject.name, subject.root, options)
        started = training.started(done, subject.root)
        there = f"Submitted with `sbatch {' '.join(f'--{name}={value}' for name, value in options)}`: "
        for one, more in zip(subject.trainings, started if not done.error else (), strict=False):
            same = one.script.name == trains and one.ranks == more.ranks
            as_here = f"{several(one.tasks, 'rank')}, as many as on {several(here, 'node')}"
            yield same, f"{there}{trains} runs on {as_here}."
        for wrong, hint in _wrong(done, started, trains, subject.site):
            yield wrong, f"{there}{hint}"
