"""Where the processes of a job are at this moment, rank by rank. The job goes on as before: each process gets a signal
on which it writes its stack (labs.stacks), and Linux tells the rest.

`python -m labs.jobs.standing STEM` prints as JSON what is seen on this node; of other nodes srun asks the same.
"""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from labs import stacks
from labs.errors import UseError

LOOKS, PAUSE = 3, 0.3  # looks at each process, and the seconds between them
PATIENCE = 0.5, 2.0  # seconds in which Python must have answered a signal; in which a process that stands still must
STILL = 0.2  # seconds in which its main thread must not run before a process gets the second signal
SILENT = ("ended", "killed", "stopped")  # states in which a process writes nothing
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class StandingError(UseError):
    """Nothing can be seen of a job; the message says why and what to do."""


def files(stem: str | Path) -> list[Path]:
    """The files of stacks of a job's ranks; of a batch script those of the training that began last."""
    stem, found = Path(stem), {}
    for path in stem.parent.glob("*.stacks"):
        if match := re.fullmatch(re.escape(stem.name) + r"((?:_w\d+)?)\.rank(\d+)\.stacks", path.name):
            found.setdefault(match[1], {})[int(match[2])] = path
    newest = max(found.values(), key=lambda ranks: max(path.stat().st_mtime_ns for path in ranks.values()), default={})
    return [newest[rank] for rank in sorted(newest)]


def over(stem: str | Path) -> list[Path]:
    """Those of `files` whose process is gone, or is another machine's: a newer run of the name may be there."""
    heads = {path: _head(path) for path in files(stem)}
    here = {path: head for path, head in heads.items() if head and head["host"] == socket.gethostname()}
    return [path for path in heads if path not in here or stacks.began(here[path]["pid"]) != here[path]["began"]]


def ranks(stem: str | Path) -> list[dict]:
    """What is seen of each rank of a job, a list of dicts: see `_here`. Raises StandingError without any file."""
    heads = [head for path in files(stem) if (head := _head(path))]
    if not heads:
        raise StandingError(
            f"No process of {Path(stem).name} has said where its stacks are: nothing of it runs, it has not begun yet, "
            f'or labs did not start it. Let the script begin with `from labs import stacks; stacks.register("{stem}")`.'
        )
    host, seen = socket.gethostname(), []
    for job in {head["job"] for head in heads if head["host"] != host}:
        seen += _elsewhere(stem, job, {head["host"] for head in heads if head["job"] == job} - {host})
    seen += _here(stem)
    none, known = {"cores": 0.0, "thread": 0.0, "memory": 0, "looks": []}, [each["rank"] for each in seen]
    seen += [head | none | {"state": "not asked"} for head in heads if head["rank"] not in known]
    return sorted(seen, key=lambda each: each["rank"])


def _head(path):
    """The first line of a file of stacks, with its path; None where it is not there yet."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return json.loads(file.readline()) | {"path": str(path)}


def _elsewhere(stem, job, hosts):
    """What is seen on other nodes; nothing of a node that does not answer."""
    if not job:
        return []
    command = ["srun", "--overlap", "--mem=0", f"--jobid={job}", f"--nodelist={','.join(hosts)}"]
    command += [f"--nodes={len(hosts)}", f"--ntasks={len(hosts)}", "--ntasks-per-node=1"]
    command += [sys.executable, "-m", __name__, str(Path(stem).absolute())]
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return [rank for line in done.stdout.splitlines() if line.startswith("[") for rank in json.loads(line)]
    return []


def _here(stem):
    """What is seen of the ranks on this node. Each is the head of its file and

    state: running, sleeping, stopped ..., what psutil says most often; "ended" or "killed" without a process
    cores, thread: of cores, in use by the process, and by its main thread, from the first look to the last
    memory: bytes resident
    looks: for each look the main thread's frames, [file, line, function], the innermost first
    """
    heads = [head for path in files(stem) if (head := _head(path))]
    seen = [head | {"looks": [], "states": []} for head in heads if head["host"] == socket.gethostname()]
    begin, spent = time.monotonic(), [_spent(head) for head in seen]
    for look in range(LOOKS):
        end = time.monotonic() + (PAUSE if look else 0)
        while True:
            for head in seen:
                head["states"].append(_state(head))
            if time.monotonic() >= end:
                break
            time.sleep(0.02)
        _look([head for head in seen if head["states"][-1] not in SILENT])
    seconds = time.monotonic() - begin
    for head, before in zip(seen, spent, strict=True):
        states = head.pop("states")
        # On a busy machine, one that wakes up now and then is seen waiting for a core: the most frequent state counts.
        head["state"] = states[-1] if states[-1] in SILENT else Counter(states).most_common(1)[0][0]
        head["cores"], head["thread"] = (
            max(0.0, now - then) / seconds for now, then in zip(_spent(head), before, strict=True)
        )
        head["memory"] = _of_process(head, lambda process: process.memory_info().rss) or 0
    return seen


def _of_process(head, ask):
    """What `ask` says of the process, as psutil knows it; None where it is gone."""
    import psutil

    with contextlib.suppress(psutil.Error):
        if stacks.began(head["pid"]) == head["began"]:
            return ask(psutil.Process(head["pid"]))
    return None


def _spent(head):
    """Processor seconds so far of a process and of its main thread; 0 of one that is gone."""
    threads = _of_process(head, lambda process: process.threads()) or []
    spent = {thread.id: thread.user_time + thread.system_time for thread in threads}
    return sum(spent.values()), spent.get(head["pid"], 0.0)


def _state(head):
    if state := _of_process(head, lambda process: process.status()):
        return state
    with contextlib.suppress(OSError):
        return "ended" if "\nended\n" in Path(head["path"]).read_text(errors="replace") else "killed"
    return "ended"  # with the whole job, whose end removes the file


def _look(seen):
    """Add to `looks` of each process where its main thread is. Nothing is added for one that does not answer, as one
    that computes inside of a library, has handlers of its own by now, or is another user's."""
    sizes = {head["path"]: _size(head) for head in seen}
    _collect([head for head in seen if _send(head, 0)], sizes, PATIENCE[0])
    silent = [(head, _still(head)) for head in seen if sizes[head["path"]] is not None]
    time.sleep(STILL if silent else 0)
    still = [head for head, before in silent if before and _still(head) == before]
    _collect([head for head in still if _send(head, 1)], sizes, PATIENCE[1])


def _size(head):
    with contextlib.suppress(OSError):
        return Path(head["path"]).stat().st_size
    return None


def _still(head):
    """What Linux says of a main thread that sleeps and has not run in between: always the same; else None."""
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{head['pid']}/status").read_text()
        return re.findall(r"(?m)^\w*voluntary_ctxt_switches:.*", status) if re.search(r"State:\s*S", status) else None
    return None


def _send(head, number):
    """Send one of its two signals to a process that handles it: Linux might end another one."""
    with contextlib.suppress(OSError):
        (caught,) = re.findall(r"(?m)^SigCgt:\s*(\w+)$", Path(f"/proc/{head['pid']}/status").read_text())
        if int(caught, 16) >> (head["signals"][number] - 1) & 1:
            os.kill(head["pid"], head["signals"][number])
            return True
    return False


def _collect(heads, sizes, seconds):
    """Add the stacks that these processes write within so many seconds; of those that did, `sizes` is None then."""
    limit, texts = time.monotonic() + seconds, {}
    while heads and time.monotonic() < limit:
        time.sleep(0.02)
        for head in list(heads):
            text = ""  # where the file is gone
            with contextlib.suppress(OSError):
                text = Path(head["path"]).read_bytes()[sizes[head["path"]] :].decode(errors="replace")
            frames = _FRAME.findall(text.rpartition("Stack (most")[2])
            if frames and text == texts.get(head["path"]):
                head["looks"].append([[file, int(line), function] for file, line, function in frames])
                sizes[head["path"]] = None
                heads.remove(head)
            texts[head["path"]] = text


if __name__ == "__main__":
    print(json.dumps(_here(sys.argv[1])))
