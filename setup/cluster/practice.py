"""A real SLURM of simulated nodes on this machine, configured like a site of the course: for tests, and to practise.

    python -m setup.cluster start [--site local]    starts it and prints what to set
    python -m setup.cluster env|status|stop

Everything of it is in one folder and on ports of its own, so that several can run, also beside a real SLURM. A process,
the keeper, starts the daemons and adopts what they and their jobs leave; when it ends, all have ended.
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from labs.errors import LabsError
from labs.slurm import sites
from setup.cluster.keeper import job_of

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
KEEPER = "keeper.pid"
LONGEST = 70  # characters of the folder's path; Linux takes 107 for a socket's, and SLURM adds node and job


class ClusterError(LabsError):
    """The cluster cannot be started or is not there; one line that says why and what to do."""


def _path():
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])  # where Debian puts daemons


def missing():
    """What this machine lacks for a cluster, and what to do, as one line; None if nothing."""
    packages = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name, path=_path())})
    if packages:
        return f"SLURM is not installed here: as root, `apt-get install {' '.join(packages)}` (Debian, Ubuntu)"
    if os.geteuid():
        return "SLURM's daemons need root: run it with sudo, or in a container as root"
    return None


class Cluster:
    """A cluster in `folder`. environment: what a process needs to submit to it."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}

    @classmethod
    def start(cls, site, folder=None, *, nodes=None, owned=True):
        """Start one like `site` (labs.slurm.sites.Site) and wait until its nodes are idle.

        folder: default a new one under the system's temporary folder; it is removed at the end
        nodes: default as many as the site's scripts need, at least 2
        owned: it ends with this process, however that ends; otherwise it stays until `stop`
        Raises ClusterError; then no process of it is left.
        """
        if problem := missing():
            raise ClusterError(problem)
        if folder and len(str(Path(folder).resolve())) > LONGEST:
            said = "a socket's path is limited, so SLURM could not start jobs there. Name a folder with a shorter path."
            raise ClusterError(f"{folder} has more than {LONGEST} characters: {said}")
        self = cls(folder or tempfile.mkdtemp(prefix="labs-slurm-"))
        if self.keeper():
            raise ClusterError(f"A cluster runs in {self.folder} already; end it, or name another folder.")
        nodes = nodes or min(site.nodes_max, max(2, site.nodes))
        for attempt in range(3):  # another program may take a port between the look and its use
            _prepare(self.folder)
            try:
                _configure(self.folder, site, nodes)
                self._start_keeper(nodes, owned)
                return self._wait(nodes)
            except BaseException as problem:
                self.stop()
                if attempt == 2 or "Address already in use" not in str(problem):
                    raise

    def _start_keeper(self, nodes, owned):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        environment |= self.environment | {"PATH": _path()}
        command = [sys.executable, str(HERE / "keeper.py"), str(self.folder), str(nodes), *["--owned"] * owned]
        stdin = subprocess.PIPE if owned else subprocess.DEVNULL  # a pipe closes when this process ends
        with open(self.folder / "log/keeper.log", "ab") as log:
            pipes = {"stdin": stdin, "stdout": log, "stderr": log}
            self._process = subprocess.Popen(command, env=environment, start_new_session=True, cwd="/", **pipes)
        (self.folder / KEEPER).write_text(str(self._process.pid))

    def _wait(self, nodes, seconds=120):
        begin = time.monotonic()
        while time.monotonic() - begin < seconds and self._process.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # the controller does not answer yet
                if self.run("sinfo", "-h", "-o", "%T %D", timeout=10).stdout.split() == ["idle", str(nodes)]:
                    return self
            time.sleep(0.05)
        raise ClusterError(f"The cluster did not start: {self._said() or 'its nodes did not become idle'}")

    def _said(self):
        """The last errors in what the daemons printed, as one line; of them the fatal ones, if there are."""
        lines = (self.folder / "log/keeper.log").read_text(errors="replace").splitlines()
        fatal = [line for line in lines if re.search(r"fatal:|munged: Error|^\w*Error\b", line)]
        return " ".join(fatal or [line for line in lines if "error:" in line][-3:])[:1000]

    def run(self, *command, timeout=60, **options):
        """A client command (sbatch, squeue, ...) against this cluster; the finished process, with its text."""
        options |= {"env": {**os.environ, **self.environment, **options.get("env", {})}, "timeout": timeout}
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)

    def keeper(self):
        """The cluster's keeper as psutil.Process; None where it does not run."""
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            process = psutil.Process(int((self.folder / KEEPER).read_text()))
            if process.status() != psutil.STATUS_ZOMBIE and str(self.folder) in process.cmdline():
                return process
        return None

    def processes(self, job=None):
        """Processes of its jobs (SLURM's own included), or of one job by its id, as psutil.Process."""
        keeper, found = self.keeper(), []
        for process in keeper.children(recursive=True) if keeper else psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):  # it has ended
                of, _, configured = job_of(process)
                ours = keeper or configured == self.environment["SLURM_CONF"]
                if ours and of and str(job or of) == of and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def stop(self):
        """End the cluster with all its jobs, and remove its folder; returns whether one ran."""
        keeper = self.keeper()
        try:
            if keeper:
                keeper.terminate()
                keeper.wait(30)
        except psutil.AccessDenied:
            raise ClusterError("Root has started this cluster, so root must end it: run it with sudo.") from None
        except psutil.TimeoutExpired:
            raise ClusterError(f"The cluster's keeper (process {keeper.pid}) does not end.") from None
        for process in self.processes():  # nothing, unless somebody killed the keeper
            process.kill()
        if process := getattr(self, "_process", None):
            process.communicate()
        for _ in range(100 if (self.folder / KEEPER).exists() else 0):  # a daemon that is ending still writes its state
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                break
            time.sleep(0.1)
        return keeper is not None


def _prepare(folder):
    """An empty folder with what the daemons expect."""
    if folder.exists() and any(folder.iterdir()) and not (folder / KEEPER).exists():
        raise ClusterError(f"{folder} holds files that are not a cluster's: name a new or an empty folder.")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("log", "dev", "state"):
        (folder / part).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / KEEPER).touch()
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)


def _configure(folder, site, nodes):
    """Write the configuration of `nodes` nodes like the site's, with free ports."""
    ports = _ports(nodes + 1)
    spans = {gpus: site.cpus_for(gpus) for gpus in range(1, site.gpus + 1)}
    fields = dict(site) | {
        "folder": folder,
        "host": socket.gethostname().split(".")[0],
        "nodes": nodes,
        "port": ports,
        "first_port": ports + 1,
        "last_port": ports + nodes,
        "cores": site.cpus // site.threads_per_core,
        "last_gpu": site.gpus - 1,
        "memory": 1000000 // site.cpus,
        "partition": site.partition or "main",
        "time_max": int(site.time_max),
        "account": str(site.account).lower(),
        "qos": str(site.qos).lower(),
        "rule": ", ".join(f"[{gpus}] = {{{low}, {high}}}" for gpus, (low, high) in spans.items()),
    }
    for file in (*HERE.glob("*.conf"), HERE / "job_submit.lua"):
        text = re.sub(r"@(\w+)@", lambda match: str(fields[match[1]]), file.read_text())
        (folder / file.name).write_text(text)
    names = " ".join(f"node{number}" for number in range(1, nodes + 1))
    (folder / "hosts").write_text(f"{Path('/etc/hosts').read_text().rstrip()}\n127.0.0.1 {names}\n")
    try:
        for number in range(site.gpus):
            os.mknod(folder / f"dev/nvidia{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null
    except OSError as problem:
        lacks = f"No device file can be made for a stand-in GPU in {folder} ({problem.strerror})"
        raise ClusterError(f"{lacks}: run it outside of a container, or give the container MKNOD.") from None


def _ports(count):
    """The first of `count` neighbouring free ports, below those that systems hand out by themselves."""
    for first in random.sample(range(20000, 32000), 200):
        with contextlib.suppress(OSError):
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind(("", port))
            return first
    raise ClusterError("No free ports between 20000 and 32000 on this machine.")


def main():
    parser = argparse.ArgumentParser(description="A practice SLURM on this machine.")
    parser.add_argument("command", choices=("start", "stop", "status", "env"))
    parser.add_argument("--site", default="local", help="configure it like this site of slurm/sites (default: local)")
    parser.add_argument("--folder", help="where it keeps its files (default: labs-slurm in the temporary folder)")
    args = parser.parse_args()
    cluster = Cluster(args.folder or Path(tempfile.gettempdir()) / "labs-slurm")
    export = " ".join(f"export {key}={value}" for key, value in cluster.environment.items())
    try:
        if args.command == "stop":
            print("The practice cluster has ended." if cluster.stop() else "No practice cluster runs here.")
        elif args.command == "start":
            if not cluster.keeper():
                cluster = Cluster.start(sites.load(args.site, ROOT), cluster.folder, owned=False)
            nodes = cluster.run("sinfo", "-h", "-o", "%D nodes, each with %c CPUs and %G").stdout.strip()
            print(f"A practice cluster runs ({nodes}). In each terminal that is to use it, also before `make lab`:")
            print(f"  {export}\n`make cluster-stop` ends it.")
        elif not cluster.keeper():
            sys.exit("No practice cluster runs here: `make cluster` starts one.")
        else:
            print(export if args.command == "env" else cluster.run("sinfo", "-N", "-l").stdout.rstrip())
    except LabsError as problem:
        sys.exit(str(problem))
