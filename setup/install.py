"""Installs the course's environment: `make` calls it, and any Python from 3.8 on runs it, without packages.

`uv sync` does the work. Here are what is looked at before the download, the line of progress, and what the words of an
installer that failed mean (CAUSES).
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]
SYNC_LOG, HOROVOD_LOG, WHEELS = Path("build/setup.log"), Path("build/horovod.log"), Path("build/horovod")
# Roughly, without a GPU and with one: what uv downloads, and the bytes that it unpacks. Estimates, as is the next line.
DOWNLOADED, UNPACKED = ("570 MB", "3.5 GB"), (2.1e9, 7e9)
BYTECODE, COMPILING = 30, 200  # seconds on 2 cores: to compile the packages' bytecode; Horovod
WITHOUT = "notebooks 07 and 08 and the Horovod parts of later ones do not run, and everything on MirroredStrategy does"

# {cause: (an installer's words, what they mean and what to do)}, the most special first.
CAUSES = {
    "certificate": (
        r"UnknownIssuer|invalid peer certificate|CERTIFICATE_VERIFY_FAILED",
        "something between this machine and the packages' server, most likely your site's proxy, replaces the server's "
        "certificate by its own, which the installer does not know. If a browser on this machine accepts it, type "
        "`export UV_SYSTEM_CERTS=1`; else ask your site for the certificate and type "
        "`export SSL_CERT_FILE=FILE.pem PIP_CERT=FILE.pem`",
    ),
    "quota": (
        r"os error 122|quota exceeded",
        "your quota is used up, even if the disk has room (`quota -s` shows it). The set-up needs 2.5 GB, and as much "
        "again for its cache if that is on another disk. Move the course to where you have more, and type "
        "`export UV_CACHE_DIR=FOLDER` with a folder there",
    ),
    "disk": (
        r"os error 28\b|No space left on device",
        "the disk is full; `df -h . ~ /tmp` shows which one. The set-up needs 2.5 GB here, and as much again for its "
        "cache if that is on another disk: free it, or type `export UV_CACHE_DIR=FOLDER` with a folder that has room",
    ),
    "python": (
        r"python-build-standalone|No interpreter found|No download found",
        "Python 3.11 is not installed here, and uv could not download it from GitHub. Install it: as the package "
        "python3.11, with conda, or as your site's module (`module load`)",
    ),
    "pip": (
        r"No module named '?pip",
        "this Python has no pip, which would install uv. Install it (Debian, Ubuntu: python3-pip), or install uv "
        "yourself: https://docs.astral.sh/uv",
    ),
    "network": (
        r"Failed to (fetch|download|resolve)|error sending request|dns error|Connection (refused|reset|timed out)|"
        r"Network is unreachable|No matching distribution",
        "the packages' server cannot be reached. Check the network; behind a proxy, type "
        "`export HTTPS_PROXY=http://NAME:PORT`. What was downloaded is kept",
    ),
    "rights": (
        r"os error (13|30)\b|Permission denied|Read-only file system",
        "a file or folder cannot be written. Copy the course to a folder of yours; if it is the cache, type "
        "`export UV_CACHE_DIR=FOLDER` with a folder of yours",
    ),
    "lock": (
        r"lockfile at .* needs to be updated",
        "pyproject.toml was changed, and uv.lock does not go with it: `uv lock` brings it up to date",
    ),
}


def cause(words):
    """The name in CAUSES of what an installer's words mean, or None."""
    return next((name for name, (pattern, _) in CAUSES.items() if re.search(pattern, words)), None)


def meaning(words, otherwise):
    """What an installer's words mean and what to do, or `otherwise`."""
    name = cause(words)
    return CAUSES[name][1] if name else otherwise


def obstacle(mounts, folder, pythonpath):
    """Why the set-up would fail, or make an environment that fails, as a message; None if nothing is seen.

    mounts: the text of /proc/mounts; folder: the course's; pythonpath: the value of PYTHONPATH.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (
            f"the packages are locked for Linux on x86-64, and this is {platform.system()} on {platform.machine()}. "
            "docs/students/troubles.md says how the course runs on Windows and on a Mac"
        )
    lines = [line.split() for line in mounts.splitlines()]
    here = [line for line in lines if Path(line[1].replace("\\040", " ")) in (folder, *folder.parents)]
    if here and "drvfs" in " ".join(max(reversed(here), key=lambda line: len(line[1]))):
        return (
            f"{folder} is on a Windows drive, where the environment is slow and its links and rights get lost. Copy "
            "the course into the Linux file system: `cp -r . ~/course && cd ~/course`"
        )
    for place in filter(None, pythonpath.split(os.pathsep)):
        for name in ("numpy", "scipy", "tensorflow", "keras", "horovod", "IPython", "jupyterlab", "pydantic"):
            if Path(place, name).is_dir():
                return (
                    f"PYTHONPATH names {place}: Python would take {name} and others from there in place of the "
                    "course's. Type `unset PYTHONPATH` (a module may have set it)"
                )
    return None


def stop(message):
    sys.exit(f"Set-up stopped: {message}; then run `make lab` again.")


def uv_program():
    """Path of a uv that is new enough: one of this machine, else one that pip puts into .tools."""
    least = re.search(r'required-version = ">=([\d.]+)"', Path("pyproject.toml").read_text(encoding="utf-8"))[1]
    for program in filter(None, map(shutil.which, ("uv", ".tools/bin/uv", os.path.expanduser("~/.local/bin/uv")))):
        version = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
        if numbers(version) >= numbers(least):
            return os.path.realpath(program)
    print(f"uv, the installer, is not here in version {least} or newer: pip puts it into .tools (25 MB).", flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]
    os.environ.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0")
    command = [*pip, "--root-user-action=ignore", "--target=.tools", f"uv>={least}"]
    if not run(command, SYNC_LOG, lambda process, spent: 10):
        stop(reason(SYNC_LOG))
    return os.path.realpath(".tools/bin/uv")


def run(command, log, left):
    """Run a program, its words in the file `log`, with one line of progress; returns whether it succeeded.

    left: a function of the process and of its seconds so far, for the seconds that remain; None: not known yet.
    """
    log.parent.mkdir(exist_ok=True)
    terminal, begin = sys.stdout.isatty(), time.monotonic()
    with log.open("w") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    while True:
        try:
            status = process.wait(5 if terminal else 30)
        except subprocess.TimeoutExpired:
            spent = time.monotonic() - begin
            remains = left(process, spent)
            forecast = "fetching packages" if remains is None else f"about {remains:.0f} s left"
            line = f"  {spent:.0f} s, {forecast}"
            print(f"\r{line:<50}" if terminal else line, end="" if terminal else "\n", flush=True)
            continue
        if terminal:
            print(f"\r{'':<50}\r", end="", flush=True)
        return status == 0


def packages_left(into, gpu):
    """For `run`: the seconds that `uv sync` still takes, from the bytes it has written, then from the bytecode."""
    unpacked, bytecode = [], BYTECODE * 2 / (os.cpu_count() or 2)

    def left(process, spent):
        if re.search("^Installed ", SYNC_LOG.read_text(), re.MULTILINE):
            unpacked.append(spent)
            kinds = Counter(path.suffix for path in into.rglob("*.py*"))
            if spent == unpacked[0]:
                return bytecode
            return (spent - unpacked[0]) * kinds[".py"] / (kinds[".pyc"] or 1) - spent + unpacked[0]
        try:
            written = int(re.search(r"wchar: (\d+)", Path(f"/proc/{process.pid}/io").read_text())[1])
        except OSError:  # it has just ended
            return 1
        return spent * max(UNPACKED[gpu] / written - 1, 0) + bytecode if written > 5e6 else None

    return left


def compile_horovod(uv, into, gpu):
    """Compile Horovod for what the folder `into` holds and install it; returns why it is missing, or nothing."""
    if not any(map(shutil.which, (os.environ.get("CXX") or "c++", "g++", "clang++"))):
        why = "there is no C++ compiler here. Install one (Debian, Ubuntu: build-essential; conda: cxx-compiler make)"
    elif gpu and not shutil.which("nvcc"):
        why = "there is no nvcc here. Load a module of CUDA 12 or newer"
    else:
        os.environ["PATH"] = os.pathsep.join([str(COURSE / into / "bin"), os.environ["PATH"]])  # cmake and mpicxx
        os.environ.update({"HOROVOD_GPU_OPERATIONS": "NCCL"} if gpu else {})
        print("Horovod is compiled.", flush=True)
        shutil.rmtree(WHEELS, ignore_errors=True)
        WHEELS.mkdir(parents=True)
        python = str(into / "bin/python")
        seconds = COMPILING * 2 / min(os.cpu_count() or 2, 4)
        if run(
            [python, "setup/horovod/build.py", str(WHEELS)],
            HOROVOD_LOG,
            lambda process, spent: max(seconds - spent, 10),
        ):
            install = [uv, "pip", "install", "--no-config", "--python", python, "--no-deps", "--reinstall"]
            if run([*install, *map(str, WHEELS.glob("*.whl"))], HOROVOD_LOG, lambda process, spent: 5):
                return ""
        why = reason(HOROVOD_LOG)
    again = "make horovod GPU=1" if gpu else "make horovod"
    return f"Horovod is missing: {why}; then run `{again}`. Without it {WITHOUT}.\n"


def reason(log):
    """What the words of a failed installer mean, after the last of them."""
    words = log.read_text(encoding="utf-8", errors="replace")
    print("".join(f"  | {line}\n" for line in words.splitlines()[-12:]), end="", flush=True)
    return meaning(words, f"the lines above say why ({log} has all of them). Remove the cause")


def numbers(version):
    """The numbers of the first version in a text, as a tuple."""
    return tuple(map(int, re.findall(r"\d+", (re.search(r"\d[\d.]*", version) or [""])[0])))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", default=".venv", help="folder of the environment (default: .venv)")
    parser.add_argument("--gpu", action="store_true", help="for NVIDIA GPUs")
    parser.add_argument("--jax", action="store_true", help="with JAX")
    parser.add_argument("--compile", action="store_true", help="compile Horovod, even if its wheel fits")
    args = parser.parse_args()
    os.chdir(COURSE)
    mounts = Path("/proc/mounts")
    if seen := obstacle(mounts.read_text() if mounts.exists() else "", COURSE, os.environ.get("PYTHONPATH", "")):
        stop(seen)
    print(f"Set-up: the first time it downloads about {DOWNLOADED[args.gpu]}. Later starts take seconds.", flush=True)
    uv, into = uv_program(), Path(args.into)
    os.environ["UV_PROJECT_ENVIRONMENT"] = str(into)
    sync = [uv, "sync", "--locked"] + ["--no-group", "cpu", "--group", "gpu"] * args.gpu + ["--extra", "jax"] * args.jax
    missing, own_horovod = "", args.gpu or args.compile
    if not own_horovod:
        if run(sync, SYNC_LOG, packages_left(into, args.gpu)):
            own_horovod = not any(into.glob("lib/python*/site-packages/horovod"))  # another Python
        elif re.search(r"horovod.*incompatible with the current", SYNC_LOG.read_text(), re.DOTALL):
            own_horovod = True  # an older GLIBC
        else:
            stop(reason(SYNC_LOG))
        if own_horovod:
            print("The course's Horovod does not fit this machine or its Python: it is compiled here.")
    if own_horovod:
        if not run([*sync, "--no-install-package=horovod", "--group=compile"], SYNC_LOG, packages_left(into, args.gpu)):
            stop(reason(SYNC_LOG))
        missing = compile_horovod(uv, into, args.gpu)
    link = into / "bin/uv"  # for `uv run` in JupyterLab's terminals
    if link.resolve() != Path(uv):
        link.unlink(missing_ok=True)
        link.symlink_to(uv)
    (into / ".synced").write_text(missing)
    if args.compile:
        sys.exit(missing or None)


if __name__ == "__main__":
    try:
        main()
    except OSError as problem:
        stop(f"{meaning(str(problem), 'remove the cause')} ({problem})")
    except KeyboardInterrupt:
        sys.exit("\nSet-up interrupted. What was downloaded is kept: run `make lab` again.")
