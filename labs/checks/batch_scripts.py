"""What the checks of batch scripts share: a script is right when `labs slurm check` has nothing to say."""

from pathlib import Path

from labs.checks.judging import NotDone


def judge(path, trains):
    """Hint for a batch script that is to run the training script `trains`, or None if it is right.

    The site is that of the script's folder, else the one in use. Raises NotDone for a script with blanks.
    """
    from labs import blanks
    from labs.slurm import check, sites
    from labs.slurm.check import starts

    path = Path(path)
    text = path.read_text()
    for number, line in blanks.blanks_of_batch(text):
        raise NotDone(f"Line {number} of {path.name} is still blank: {line}")
    site = sites.load(path.parent.name if path.parent.name in sites.names() else None)
    findings = check.check(path, site)
    if findings:
        first, more = findings[0], f" ({len(findings) - 1} more after this one.)" if len(findings) > 1 else ""
        return f"Line {first.line_number}: {first.problem} {first.why}{more}"  # the fix is for `labs slurm check`
    if not any(command.script and Path(command.script).name == trains for command in starts.read(text).commands):
        return f"The script starts no training with {trains}."
    return None
