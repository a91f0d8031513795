"""What is here, what follows from it, and how to fix what is missing: `labs doctor`.

A package that cannot be imported must not keep it from saying so: the course's own packages are imported in functions.
"""

import importlib.util
import os
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib", "pydantic", os.environ["KERAS_BACKEND"], "keras")
_ALONE = "unset PYTHONPATH; export PYTHONNOUSERSITE=1"  # the environment's own packages, and no others


def look() -> list[dict[str, str | None]]:
    """Look at this machine: a list of rows {what, found, means, fix}; `fix` is None where all is well.

    Where packages come from is looked at before any of them is imported.
    """
    rows, damaged = outside(), broken()
    if damaged:
        return [*rows, damaged]
    from labs import devices
    from labs.data import DataError, cifar10

    def row(what, found, means, fix=None):
        rows.append({"what": what, "found": found, "means": means, "fix": fix})

    count, free, have = devices.cores(), devices.memory(), devices.versions()
    found = devices.gpus()
    row("TensorFlow", f"{have['tensorflow'] or 'not installed'}, Keras {have['keras']}", "trainings run")
    workers = f"GPU; at most {len(found)}" if found else f"CPU core; up to {count} workers without sharing cores"
    row("GPUs", f"{len(found)}" if found else "none", f"a worker is a {workers}")
    means = f"more than {count} workers run, but share cores and are marked oversubscribed"
    fix = None if count >= 2 or found else "speedup needs a second core: give the machine 2 cores or more"
    means = "they read the images" if found else "4 workers can be measured" if count >= 4 else means
    row("cores", str(count), means, fix)
    if not found:
        products = devices.bfloat16()
        means = {
            "AMX": "mixed_bfloat16 may be some times as fast as float32",
            "AVX-512": "mixed_bfloat16 may be faster or slower than float32",
            None: "mixed_bfloat16 saves memory, and is likely slower than float32",
        }
        row("bfloat16", products or "no operations for it", f"{means[products]}: measured in notebook 25")
    means, fix = "enough for every notebook", None
    if free <= 4 * 2**30:
        means, fix = "notebook 04 or 05 may run out of memory", "close other programs: 4 GiB free are enough"
    row("memory", f"{free / 2**30:.1f} GiB free", means, fix)
    means, fix = "notebooks on Horovod run", None
    if not importlib.util.find_spec("horovod"):
        means = "notebooks on MirroredStrategy run, those on Horovod do not"
        fix = "install a C++ compiler (Debian, Ubuntu: build-essential), then `make horovod`"
    row("Horovod", "not installed" if fix else have["horovod"], means, fix)
    jax = devices.versions("jax")["jax"]
    means = "notebook 27 runs" if jax else "the parts of notebook 27 on JAX do not run; `make jax` installs it"
    row("JAX", jax or "not installed", means)
    slurm = shutil.which("sbatch")
    means = "jobs can be submitted from here" if slurm else "jobs run on this machine; the scripts are the same"
    row("SLURM", "sbatch found" if slurm else "none", means)
    try:
        cifar10.find()
        row("CIFAR-10", "found", "--dataset cifar10 works")
    except DataError:
        fix = "put cifar-10-batches-py into $LABS_DATA for the course's own figures" if found else None
        row("CIFAR-10", "not found", "the bundled digits are used (real, small)", fix)
    return rows


def outside() -> list[dict[str, str | None]]:
    """Rows, as of `look`, of packages that come from another folder in place of the environment's own."""
    own, found = Path(sysconfig.get_path("purelib")).resolve(), {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        place = Path(spec.origin).resolve().parents[1] if spec and spec.origin else own
        if place != own and (own / name).is_dir():
            found.setdefault(str(place), []).append(name)
    means = "taken in place of the packages that the course was tested with"
    fix = f"type `{_ALONE}` and start again"
    return [
        {"what": "packages", "found": f"{', '.join(names)} from {folder}", "means": means, "fix": fix}
        for folder, names in found.items()
    ]


def broken() -> dict[str, str | None] | None:
    """The row, as of `look`, of the first package that cannot be imported, or None."""
    for name in PACKAGES:
        try:
            importlib.import_module(name)
        except Exception as problem:  # what a broken package raises is its own
            reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
            fix = f"type `{_ALONE}`, then run `make lab` again"
            found = f"cannot be imported ({reason})"
            return {"what": name, "found": found, "means": "no training can run", "fix": fix}
    return None


def settings(sites: Iterable[str]) -> list[dict[str, str | None]]:
    """Rows, as of `look`, of the environment variables of the kit that are set and name nothing.

    sites: the names of those that there are.
    """
    from labs import presets

    found = []
    for name, words in (("LABS_SITE", sites), ("LABS_PRESET", list(presets.PRESETS))):
        if (value := os.environ.get(name, "")) not in ("", *words):
            fix = f"export {name}=... with one of {', '.join(words)}, or unset {name}"
            found.append((name, value, "commands that need it will refuse it", fix))
    runs = os.environ.get("LABS_RUNS")
    if runs and not os.path.isdir(runs):
        means = "no such folder: your runs and your progress are not there"
        found.append(("LABS_RUNS", runs, means, "make the folder, correct its name, or unset LABS_RUNS"))
    return [{"what": name, "found": repr(value), "means": means, "fix": fix} for name, value, means, fix in found]


def text(rows: list[dict]) -> str:
    """The rows of `look` as aligned lines."""
    width, lines = max(len(row["what"]) for row in rows), []
    for row in rows:
        lines.append(f"{row['what']:<{width}}  {row['found']}: {row['means']}")
        if row["fix"]:
            lines.append(f"{'':<{width}}  -> {row['fix']}")
    return "\n".join(lines)
