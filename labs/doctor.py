"""What is here, what follows from it, and how to fix what is missing: `labs doctor`.

A package that cannot be imported must not keep it from saying so: the course's own packages are imported in functions.
"""

import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib", "pydantic", os.environ["KERAS_BACKEND"], "keras")
_ALONE = "unset PYTHONPATH; export PYTHONNOUSERSITE=1"  # the environment's own packages, and no others


def look() -> list[dict[str, str | None]]:
    """Look at this machine: a list of rows {what, found, means, fix}.

    `fix` is None where all is well.
    """
    rows = []

    def row(what, found, means, fix=None):
        rows.append({"what": what, "found": found, "means": means, "fix": fix})

    for name in PACKAGES:
        if found := _elsewhere(name):
            means = "taken in place of the package that the course was tested with"
            row(name, f"from {found}", means, f"type `{_ALONE}` and start again")
        try:
            importlib.import_module(name)
        except Exception as problem:  # what a broken package raises is its own
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            fix = f"type `{_ALONE}`, then run `make lab` again"
            row(name, f"cannot be imported ({reason})", "no training can run", fix)
            return rows
    from labs import devices
    from labs.data import cifar10
    from labs.errors import UseError

    count, free, have = devices.cores(), devices.memory(), devices.versions()
    found = devices.gpus()
    means = "trainings run" if have["tensorflow"] else "only trainings with --strategy jax run"
    row("TensorFlow", f"{have['tensorflow'] or 'not installed'}, Keras {have['keras']}", means)
    workers = f"GPU; at most {len(found)}" if found else f"CPU core; up to {count} workers without sharing cores"
    row("GPUs", f"{len(found)}" if found else "none", f"a worker is a {workers}")
    shared = f"more than {count} workers run, but share cores and are marked oversubscribed"
    fix = None if count >= 2 or found else "speedup needs a second core: give the machine 2 cores or more"
    means = "they read the images" if found else "4 workers can be measured" if count >= 4 else shared
    row("cores", str(count), means, fix)
    if not found:
        products = devices.bfloat16() or "no operations for it"
        row("bfloat16", products, "how fast mixed_bfloat16 is here, notebook 25 measures")
    fix = None if free > 4 * 2**30 else "close other programs: 4 GiB free are enough"
    means = "notebook 04 or 05 may run out of memory" if fix else "enough for every notebook"
    row("memory", f"{free / 2**30:.1f} GiB free", means, fix)
    if importlib.util.find_spec("horovod"):
        row("Horovod", have["horovod"], "notebooks on Horovod run")
    else:
        fix = "install a C++ compiler (Debian, Ubuntu: build-essential), then `make horovod`"
        row("Horovod", "not installed", "notebooks on MirroredStrategy run, those on Horovod do not", fix)
    jax = devices.versions("jax")["jax"]
    means = "notebook 27 runs" if jax else "the parts of notebook 27 on JAX do not run; `make jax` installs it"
    row("JAX", jax or "not installed", means)
    slurm = shutil.which("sbatch")
    means = "jobs are submitted if `sinfo` answers" if slurm else "jobs run on this machine; the scripts are the same"
    row("SLURM", "sbatch found" if slurm else "none", means)
    try:
        cifar10.find()
        row("CIFAR-10", "found", "--dataset cifar10 works")
    except UseError:
        fix = "put cifar-10-batches-py into $LABS_DATA for the course's own figures" if found else None
        row("CIFAR-10", "not found", "the bundled digits are used (real, small)", fix)
    runs = os.environ.get("LABS_RUNS")  # of the kit's other variables, what uses them refuses a wrong value
    if runs and not os.path.isdir(runs):
        means = "no such folder: your runs and your progress are not there"
        row("LABS_RUNS", repr(runs), means, "make the folder, correct its name, or unset LABS_RUNS")
    return rows


def _elsewhere(name):
    """The folder that a package comes from in place of the environment's own, or None."""
    own, spec = Path(sysconfig.get_path("purelib")).resolve(), importlib.util.find_spec(name)
    place = Path(spec.origin).resolve().parents[1] if spec and spec.origin else own
    return place if place != own and (own / name).is_dir() else None


def text(rows: list[dict]) -> str:
    """The rows of `look` as aligned lines."""
    width, lines = max(len(row["what"]) for row in rows), []
    for row in rows:
        lines.append(f"{row['what']:<{width}}  {row['found']}: {row['means']}")
        if row["fix"]:
            lines.append(f"{'':<{width}}  -> {row['fix']}")
    return "\n".join(lines)
