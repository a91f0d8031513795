"""Where the processes of a job are at this moment, rank by rank. The job goes on as before: each process gets a signal
on which it writes its stacks (labs.stacks), and Linux tells the rest.

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
from pathlib import Path

from labs import stacks
from labs.errors import UseError

LOOKS, PAUSE = 3, 0.6  # looks at each process, and the seconds between them
PATIENCE = 2.0  # seconds in which a process must have written its stacks
SILENT = ("ended", "killed", "stopped")  # states in which a process writes nothing
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


class StandingError(UseError):
    """Nothing can be seen of a job; the message says why and what to do."""


def files(stem):
    """The files of stacks of a job's ranks; of a batch script those of the training that began last."""
    stem, found = Path(stem), {}
    for path in stem.parent.glob("*.stacks"):
        if match := re.fullmatch(re.escape(stem.name) + r"((?:_w\d+)?)\.rank(\d+)\.stacks", path.name):
            found.setdefault(match[1], {})[int(match[2])] = path
    newest = max(found.values(), key=lambda ranks: max(path.stat().st_mtime_ns for path in ranks.values()), default={})
    return [newest[rank] for rank in sorted(newest)]


def ranks(stem):
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

    state: running, sleeping, stopped ... as psutil says it; "ended" or "killed" without a process
    cores, thread: of cores, in use by the process, and by its main thread, from the first look to the last
    memory: bytes resident
    looks: for each look the main thread's frames, [file, line, function], the innermost first
    """
    heads = [head for path in files(stem) if (head := _head(path))]
    seen = [head | {"looks": [], "states": []} for head in heads if head["host"] == socket.gethostname()]
    begin, spent = time.monotonic(), [_spent(head) for head in seen]
    for look in range(LOOKS):
        time.sleep(PAUSE if look else 0)
        for head in seen:
            head["states"].append(_state(head))
            head["looks"] += _looked(head) if head["states"][-1] not in SILENT else []
    seconds = time.monotonic() - begin
    for head, before in zip(seen, spent, strict=True):
        states = head.pop("states")
        head["state"] = "running" if "running" in states and states[-1] not in SILENT else states[-1]
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


def _looked(head):
    """[the frames of the main thread], which the process writes on its signal; [] where it does not, as one that has a
    handler of its own by now, or another user's."""
    number, path = head["signal"], Path(head["path"])
    with contextlib.suppress(OSError):
        caught = re.search(r"(?m)^SigCgt:\s*(\w+)$", Path(f"/proc/{head['pid']}/status").read_text())
        if int(caught[1], 16) >> (number - 1) & 1:  # else Linux might end it
            before, limit, text = path.stat().st_size, time.monotonic() + PATIENCE, None
            os.kill(head["pid"], number)
            while time.monotonic() < limit:
                time.sleep(0.02)
                longer = path.read_bytes()[before:].decode(errors="replace")
                if longer == text and (frames := _of_thread(text, head["main"])):
                    return [frames]
                text = longer
    return []


def _of_thread(text, ident):
    """The frames of one thread in what faulthandler wrote."""
    for part in re.split(r"(?m)^(?=(?:Current t|T)hread 0x)", text):
        if (begin := re.match(r"(?:Current t|T)hread 0x(\w+)", part)) and int(begin[1], 16) == ident:
            return [[file, int(line), function] for file, line, function in _FRAME.findall(part)]
    return None


if __name__ == "__main__":
    print(json.dumps(_here(sys.argv[1])))
