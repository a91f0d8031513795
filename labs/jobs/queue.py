"""SLURM's queue through its own commands: submit a job, ask for its state, cancel it."""

import re
import shutil
import subprocess
from typing import NamedTuple

from labs.errors import LabsError

# SLURM's words for a job that has not ended (the others are ends), and among them those of a job that waits.
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
NOT_ENDED = (*WAITING, "RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT")
UNKNOWN = "UNKNOWN"
_LOOK = "Look with `squeue --me` what it did before you try again."


class SlurmError(LabsError):
    """SLURM refused something; the text begins with its own words."""


class NoAnswerError(LabsError):
    """SLURM did not answer, or not clearly: what was asked for may be done all the same."""


class State(NamedTuple):
    """A job's state in SLURM's word, such as "TIMEOUT" ("UNKNOWN" where SLURM has forgotten the job); the reason for
    it in SLURM's word, or ""; exit code and signal as numbers, None where they are not known."""

    state: str
    reason: str = ""
    code: int | None = None
    signal: int | None = None


def available() -> bool:
    """True where `sbatch` is on the PATH and SLURM's controller answers within 10 seconds."""
    if not shutil.which("sbatch"):
        return False
    try:
        return re.search(r"\bUP\b", _run(["scontrol", "ping"], 10)) is not None
    except LabsError:
        return False


def submit(script, *arguments, options=(), folder=None, environment=None):
    """Submit a batch script in `folder` with these options of sbatch; returns the job's id as a text.

    Raises SlurmError with sbatch's own message, NoAnswerError where the job may have been submitted nevertheless.
    """
    command = ["sbatch", "--parsable", *options, str(script), *map(str, arguments)]
    answer = _run(command, 60, cwd=folder, env=environment).strip().split("\n")[-1]
    job_id = answer.split(";")[0]  # "12" or "12;cluster"
    if not job_id.isdecimal():
        raise NoAnswerError(f"sbatch answered {answer!r}, which is not a job id. {_LOOK}")
    return job_id


def state(job_id: str) -> State:
    """State of a job, also some minutes after its end.

    Raises SlurmError or NoAnswerError if SLURM does not tell: the job itself may go on.
    """
    try:
        said = _run(["scontrol", "--oneliner", "show", "job", job_id]).split("\n")[0]
        fields = dict(re.findall(r"(\w[\w:/]*)=(.*?)(?= \w[\w:/]*=|\s*$)", said))
        if "JobState" not in fields:
            raise SlurmError(f"scontrol tells no state of job {job_id}: {said!r:.200}. Look with `squeue --me`.")
        reason = fields.get("Reason", "None")
        return State(fields["JobState"], "" if reason == "None" else reason, *_codes(fields.get("ExitCode", "")))
    except SlurmError as problem:
        if "Invalid job id" in str(problem):
            return State(UNKNOWN)
        raise


def _codes(text):
    """(exit code, signal) of SLURM's "1:0"."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (None, None)


def cancel(job_id: str) -> None:
    """Cancel a job. A job that has already ended is fine. Raises SlurmError, NoAnswerError."""
    try:
        _run(["scancel", job_id])
    except SlurmError as problem:
        if not re.search(r"Invalid job id|already completing|Job/step already", str(problem)):
            raise


def _run(command, seconds: float = 30, **options):
    """What a command of SLURM's prints. Raises SlurmError with what it says, if it is there; NoAnswerError."""
    options |= {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, timeout=seconds, **options)
    except FileNotFoundError:
        raise SlurmError(f"{command[0]} is not installed here. Load the site's SLURM, or use a login node.") from None
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{command[0]} did not answer within {seconds:.0f} s. {_LOOK}") from None
    if done.returncode:
        said = [re.sub(rf"^{command[0]}: (?:error: |fatal: )?", "", line) for line in done.stderr.split("\n") if line]
        raise SlurmError("; ".join(said) or f"{command[0]} ended with exit code {done.returncode} and said nothing")
    return done.stdout
