"""What the checks of batch scripts share: is a script right?

Its directives and the rules of its site are read (`labs slurm check`). Then the script is tried out: bash runs it where
it reaches nothing, and what it starts is judged, however it is written. Where there is no sandbox it is only read; each
hint says which of the two was done.
"""

import os
import tomllib
from pathlib import Path, PurePosixPath

from labs import blanks, presets
from labs.checks.judging import NotDone
from labs.slurm import check, directives, sites, trial
from labs.slurm.check import starts

_TRIED = " (Bash ran the script, with stand-ins for Python, srun and what else a cluster has.)"
# Findings that only reading needs: a try-out sees for certain what these guess.
_GUESSES = ("unset", "same_batch", "uneven_batch", "batch_does_not_follow", "constant_batch")
_TEXTS = tomllib.loads(Path(check.__file__).with_name("findings.toml").read_text(encoding="utf-8"))


def judge(path, trains, nodes=()):
    """Hint for a batch script that is to run the training script `trains`, or None if it is right.

    nodes: on how many nodes it must be right too, when `sbatch` asks for them in the command line.
    The site is that of the script's folder, else the one in use. Raises NotDone for a script with blanks.
    """
    path = Path(path)
    text = path.read_text()
    for number, line in blanks.blanks_of_batch(text):
        raise NotDone(f"Line {number} of {path.name} is still blank: {line}")
    site = sites.load(path.parent.name if path.parent.name in sites.names() else None)
    findings = check.check(path, site)
    untried = trial.missing(text)
    done = None if untried else trial.run(text, path.name, known=os.environ)
    if done:
        findings = [one for one in findings if one.why not in (_TEXTS[name]["why"] for name in _GUESSES)]
    if done and done.error and not any(one.line_number <= (done.line_number or 0) for one in findings):
        return tried(done, trains, site) + _TRIED
    if findings:
        first, more = findings[0], f" ({len(findings) - 1} more after this one.)" if len(findings) > 1 else ""
        how = " (The script was read.)" if done else f" (The script was read, and not tried out: {untried}.)"
        return f"Line {first.line_number}: {first.problem} {first.why}{more}{how}"  # the fix is for `labs slurm check`
    if done:
        hint = tried(done, trains, site) or _elsewhere(text, path.name, done, trains, site, nodes)
        return hint and hint + _TRIED
    hint = _read(text, trains, nodes)
    return hint and f"{hint} (The script was read, and not tried out: {untried}.)"


def _read(text, trains, nodes):
    """Hint for what reading alone tells of a script that has no findings, or None."""
    once, twice = (
        [one for one in starts.read(text, scale=scale).commands if one.script and Path(one.script).name == trains]
        for scale in (1, 2)
    )
    if not once:
        return f"The script starts no training with {trains}."
    for one, more in zip(once, twice if nodes else [], strict=False):
        batch = one.options.get("batch_size", "")
        if batch.isdecimal() and batch == more.options.get("batch_size") and one.tasks != more.tasks:
            return f"On twice as many nodes {trains} has {more.tasks} ranks, and a global batch of {batch} as before."
    return None


def tried(done, trains, site):
    """Hint for what a script did (trial.Tried), or None if it is right.

    It must come to its end, and start `trains` with the images that the site's preset has for each worker or rank.
    """
    if done.error:
        return f"Line {done.line_number}: {done.error}." if done.line_number else f"The script fails: {done.error}."
    trainings = [call for call in done.calls if _script(call) == trains]
    if not trainings:
        others = ", ".join(dict.fromkeys(name for call in done.calls if (name := _script(call))))
        return f"The script starts no training with {trains}{f', but {others}' if others else ''}."
    local_batch = presets.PRESETS[site.preset].local_batch
    wrong = (_wrong(call, trains, local_batch) for call in trainings)
    return next(filter(None, wrong), None) or _no_speedup(trainings, trains)


def _elsewhere(text, name, done, trains, site, nodes):
    """Hint for a script that is right as it is (done), but not on one of these other numbers of nodes, or None."""
    script = directives.read(text).meant()
    asked = script.resources()
    here = -(-(asked["tasks"] or 1) // (asked["tasks_per_node"] or 1))
    for count in [each for each in nodes if each != here]:
        options = [("nodes", str(count))]
        for option in ("ntasks", "gpus"):  # of the whole job
            if given := directives.number(script.value(option)):
                options.append((option, str(given * count // here)))
        more = trial.run(text, name, known=os.environ, options=options)
        submitted = f"Submitted with `sbatch {' '.join(f'--{option}={value}' for option, value in options)}`: "
        if not more.error and (hint := _does_not_follow(done, more, trains, here)):
            return submitted + hint
        if hint := tried(more, trains, site):
            return submitted + hint
    return None


def _does_not_follow(done, more, trains, here):
    """Hint for ranks or a batch that are on other numbers of nodes (more) what they were on `here` (done), or None."""
    told = [
        [(call.ranks(), _options(call.words).get("batch_size")) for call in one.calls if _script(call) == trains]
        for one in (done, more)
    ]
    for (ranks, batch), (ranks_there, batch_there) in zip(*told, strict=False):
        if ranks == ranks_there:
            several = "s" * (ranks != "1"), "s" * (here > 1)
            return f"{trains} runs on {ranks} rank{several[0]}, as many as on {here} node{several[1]}."
        if batch == batch_there:
            return (
                f"{trains} runs on {ranks_there} ranks, and its global batch is {batch} as it was on {ranks}: "
                "each rank takes another number of images than before."
            )
    return None


def _wrong(call, trains, local_batch):
    """Hint for one training, or None."""
    options, where = _options(call.words), f"Line {call.line_number}" if call.line_number else "The script"
    horovod = "n_gpus" not in options and "horovod" in trains
    name, workers = ("ranks", call.ranks()) if horovod else ("--n_gpus", options.get("n_gpus"))
    batch = options.get("batch_size")
    for option, value in ((name, workers), ("--batch_size", batch)):
        if value is None:
            return f"{where} starts {trains} without {option}, so the script's own default counts."
        if not value.isascii() or not value.isdigit() or int(value) == 0:
            number = "What does bash see as a number here, and what as a text?"
            return f"{where} starts {trains} with {option} {value!r}, which is no whole number. {number}"
    workers, batch = int(workers), int(batch)
    if batch == workers * local_batch:
        return None
    of = f"{workers} {'rank' if horovod else 'worker'}{'s' * (workers > 1)}"
    return (
        f"{where} starts {trains} on {of} with a global batch of {batch}: {batch / workers:g} images for each, where "
        f"the script is to give each {local_batch}."
    )


def _no_speedup(trainings, trains):
    """Hint for trainings with MirroredStrategy that give no speedup; ranks over nodes are one training."""
    workers = {int(_options(call.words)["n_gpus"]) for call in trainings if "n_gpus" in _options(call.words)}
    if workers and (len(workers) == 1 or 1 not in workers):
        counts = ", ".join(map(str, sorted(workers)))
        return f"{trains} is trained with --n_gpus {counts} only: a speedup needs 1 worker and another number."
    return None


def _script(call):
    """Name of the Python script that a call starts, or None."""
    if not PurePosixPath(call.words[0]).name.startswith("python"):
        return None
    return next((PurePosixPath(word).name for word in call.words[1:] if word.endswith(".py")), None)


def _options(words):
    """{name: value} of the options of a course's script; argparse takes the beginning of a name for it."""
    found, names = {}, ("n_gpus", "batch_size")
    for word, after in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        meant = [name for name in names if len(option) > 2 and f"--{name}".startswith(option)]
        if meant:
            found[meant[0]] = value if equals else after
    return found
