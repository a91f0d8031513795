"""Keeps one cluster's daemons and everything they start; started by setup.cluster.practice.

    python keeper.py FOLDER NODES [--owned]

It is the subreaper of all of them, so that a job's orphans stay its descendants, too. It ends them all on SIGTERM, when
a daemon ends, and with --owned when its standard input closes, that is when the process that started it has ended.
"""

import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
prctl = ctypes.CDLL(None, use_errno=True).prctl


def start(*command):
    """A daemon that gets SIGTERM if this process is killed."""
    return subprocess.Popen(
        list(map(str, command)), stdin=subprocess.DEVNULL, preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    )


def start_node(folder, number):
    """slurmd of one node; where the system allows it with a host name, a /dev/shm and an /etc/hosts of its own."""
    slurmd = f"exec slurmd -D -N node{number} -f {folder}/slurm.conf"
    apart = ["unshare", "--uts", "--mount"]
    alone = f"hostname node{number} && mount -t tmpfs tmpfs /dev/shm && mount --bind {folder}/hosts /etc/hosts"
    possible = subprocess.run([*apart, "sh", "-c", alone], capture_output=True).returncode == 0
    return start(*apart, "sh", "-c", f"{alone} && {slurmd}") if possible else start("sh", "-c", slurmd)


def reap():
    """Collect what has ended; returns the ids."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            ended.append(pid)
    return ended


def job_of(process):
    """(id of the SLURM job of a psutil.Process or None, whether it is the job's slurmstepd, its SLURM_CONF or None).

    psutil reads no environment of a process that has written its title over the first variables; this does.
    """
    text = Path(f"/proc/{process.pid}/environ").read_text(errors="replace")
    environment = dict(part.split("=", 1) for part in text.split("\0") if "=" in part)
    step = re.match(r"slurmstepd: \[(\d+)\.", " ".join(process.cmdline()))
    job = step[1] if step else environment.get("SLURM_JOB_ID")
    return job, bool(step), environment.get("SLURM_CONF")


def end_orphans(own):
    """End what daemons of SLURM's have left of jobs that are over, as the cgroup of a job does on a real cluster."""
    running, orphans = set(), []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error, OSError):
            job, is_step, _ = job_of(child)
            if is_step:
                running.add(job)
            elif job and child.pid not in own:
                orphans.append((child, job))
    for child, job in orphans:
        with contextlib.suppress(psutil.Error):
            if job not in running:
                child.kill()


def end_all():
    """End every descendant: SIGTERM first, so that trainings close their records."""
    for number, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
        begin, told = time.monotonic(), set()
        while (left := psutil.Process().children(recursive=True)) and time.monotonic() - begin < seconds:
            for process in set(left) - told:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
            told |= set(left)
            time.sleep(0.1)
            reap()


def main():
    folder, nodes, owned = Path(sys.argv[1]), int(sys.argv[2]), "--owned" in sys.argv
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    stop = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.append(1))
    try:
        files = {"key": "munge.key", "pid": "munged.pid", "log": "log/munged.log", "seed": "munged.seed"}
        options = [f"--{name}-file={folder}/{file}" for name, file in files.items()]
        daemons = [start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *options)]
        begin = time.monotonic()
        while not (folder / "munge.socket").exists() and time.monotonic() - begin < 10:
            time.sleep(0.01)
        daemons.append(start("slurmctld", "-D", "-i", "-f", folder / "slurm.conf"))
        daemons += [start_node(folder, number) for number in range(1, nodes + 1)]
        own, looked = {daemon.pid for daemon in daemons}, 0
        while not stop:
            if own & set(reap()):
                sys.exit("a daemon has ended")  # its log says why: the folder stays
            if owned and select.select([0], [], [], 0)[0]:
                break
            if time.monotonic() - looked > 1:
                end_orphans(own)
                looked = time.monotonic()
            time.sleep(0.1)
    finally:
        end_all()
    if owned:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
