"""`make lab` in a fresh clone until JupyterLab answers: with empty caches, again with full ones, and its size on disk.

    python benchmarks/start.py [--json]

The clone and the caches lie in temporary folders, which are removed. The first start downloads; the second
is that of another clone with the caches of the first, whose uv is on the PATH (pip finds none offline), where uv and
pip are told to stay offline. Timed from the command to the first answer with status 200.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 3600  # seconds until a start counts as failed


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def answers(address):
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def start(course, kept, first=None):
    """Seconds from `make lab` in the folder `course` until JupyterLab answers; it is ended then.

    kept: a folder for caches and the log; first: an earlier clone, whose uv is taken then, offline.
    """
    port = free_port()
    words = ("CI", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "UV_NO_SYNC")
    environment = {name: value for name, value in os.environ.items() if name not in words}
    own = str(Path(sys.prefix, "bin"))
    environment["PATH"] = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != own)
    caches = ("XDG_CACHE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR")
    environment |= {name: str(kept / name.lower()) for name in caches}  # where packages come from stays as it is set
    if first:
        path = os.pathsep.join([str(first / ".tools/bin"), environment["PATH"]])
        environment |= {"UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "PATH": path}
    options = f"ARGS=--no-browser --port={port} --allow-root --IdentityProvider.token=bench"
    begin = time.perf_counter()
    with (kept / "make.log").open("w") as log:
        make = subprocess.Popen(
            ["make", "lab", options], cwd=course, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            while not answers(f"http://localhost:{port}/lab?token=bench"):
                spent = time.perf_counter() - begin
                if make.poll() is not None or spent > LIMIT:
                    sys.exit(f"make lab did not start:\n{(kept / 'make.log').read_text()[-3000:]}")
                time.sleep(0.05)
            return time.perf_counter() - begin
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(make.pid, signal.SIGTERM)
            make.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the measurements")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept, found, first = Path(folder, "kept"), {}, None
        kept.mkdir()
        for name in ("empty caches", "full caches, offline"):
            course = Path(folder, name.replace(" ", "_"))
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(course)], check=True)
            found[name] = start(course, kept, first)
            if not first:
                first = course
                size = subprocess.run(["du", "-sk", str(course)], capture_output=True, text=True, check=True).stdout
                found["bytes"] = 1024 * int(size.split()[0])
    if args.json:
        print(json.dumps(vars(args) | {"load": os.getloadavg()[0], "results": found}, indent=1))
        return
    print("| `make lab` in a fresh clone, until JupyterLab answers | |\n|---|---|")
    for name in ("empty caches", "full caches, offline"):
        print(f"| {name} | {found[name]:.0f} s |")
    print(f"| size on disk | {found['bytes'] / 1e9:.1f} GB |")


if __name__ == "__main__":
    main()
