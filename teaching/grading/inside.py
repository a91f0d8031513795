"""Notebooks of one student, run in the sandbox in replay: what trains hands back the submitted run.

The first line of the standard input names modules; then each line is a task: a notebook's folder and environment. For
each a process is forked off this one, which has imported what takes long and computed nothing. What it says goes out
through this one, in pieces, each with its length in front; an empty piece says that all its processes are gone.

To that process come the notebook's cells, one after the other. For every `check` the answers go out, as
teaching.grading.wire packs them; then the judge outside may call a function of the student's, or ask what the kit's own
judge says here, and in the end says how it was judged. Nothing that is said here gains a point by itself.
"""

import contextlib
import ctypes
import dataclasses
import functools
import gc
import importlib
import io
import json
import os
import re
import select
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from teaching.grading import wire

SECONDS = 30  # of processor time for a cell; the judge outside has a limit for the clock on the wall
LENGTH = struct.Struct(">I")  # of a piece
WRITTEN, PLACES = ("/tmp", "/dev/shm"), ("/tmp/work", "/tmp/home")  # in the sandbox: where files can be, and are put
PATCHED = ("labs.doctor", "labs.report", "labs.measure.maxbatch", "labs.show.plots", "labs.show.widgets")  # by `replay`
PR_SET_DUMPABLE = 4  # of Linux' prctl(2)
_prctl = ctypes.CDLL(None).prctl


class CellTime(BaseException):
    """A cell took too long."""


class NotHandedIn(Exception):
    """What was to be run was not handed in, and nothing is trained here."""


class Outside:
    """The judge: what is said to it and what it asks. heard, said: descriptors of pipes."""

    def __init__(self, heard, said):
        self.heard, self.said = os.fdopen(heard, "rb"), os.fdopen(said, "wb", buffering=0)

    def say(self, message):
        text = wire.line(message)
        if len(text) > wire.MOST:
            text = wire.line({"raised": "too large"} | {key: message[key] for key in message.keys() & {"check", "to"}})
        self.said.write(text)

    def hear(self):
        line = self.heard.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)


def main():
    """Run the notebooks that the judge names, one after the other: of each nothing is left when the next one begins.

    This is the first process of its sandbox, so no signal of the others reaches it. Nor can they look into it, or open
    its pipes: PR_SET_DUMPABLE.
    """
    if os.getpid() != 1:
        sys.exit("This ends all processes and removes all files that it can: it runs in a sandbox, and nowhere else.")
    _prctl(PR_SET_DUMPABLE, 0)
    judge, out = os.fdopen(os.dup(0), "rb"), os.dup(1)
    _silence(0, 1)
    prepare(json.loads(judge.readline()))
    kept = list(_files())
    for line in judge:
        task = wire.read(line)
        if "folder" in task:  # else it was for a notebook that has ended, or its end
            _restore(kept, task["files"])
            _run(task, judge, out)


def _silence(*handles):
    for handle in handles:
        os.dup2(os.open(os.devnull, os.O_RDWR), handle)


def prepare(modules):
    """Import what notebooks and their judges need. Nothing may be computed: a fork of a used TensorFlow does not
    work."""
    for name in ("IPython.core.interactiveshell", *PATCHED, *modules):
        with contextlib.suppress(Exception):  # the notebook says so itself
            importlib.import_module(name)
    if "lessons.tryout" in sys.modules:
        from lessons.tryout import play

        play.prepare()
    gc.freeze()


def _files():
    """(path, its mode, its content or None) of the files that were put here, and of their folders."""
    for top in map(Path, PLACES):
        for path in (top, *sorted(top.rglob("*"))):
            mode = path.stat().st_mode
            yield path, stat.S_IMODE(mode), None if stat.S_ISDIR(mode) else path.read_bytes()


def _restore(kept, other):
    """Leave nothing but these of `_files`; other: {path: text} of those that have another content. What of the kit is
    shown below them stays: it is of another file system, and cannot be written."""
    os.chdir("/")
    for doing in (["-type", "d", "!", "-perm", "-700", "-exec", "chmod", "700", "{}", ";"], ["-delete"]):
        subprocess.run(["find", *WRITTEN, "-xdev", "-mindepth", "1", *doing], stderr=subprocess.DEVNULL)
    for path, mode, content in kept:
        path.mkdir() if content is None else path.write_bytes(content)
        path.chmod(mode)
    for name, text in other.items():
        Path(name).write_text(text, encoding="utf-8")


def _run(task, judge, out):
    """Fork a process for a notebook, hand on what it and the judge say, and end all that it has left."""
    (heard, to), (from_, said) = os.pipe(), os.pipe()
    notebook = os.fork()
    if not notebook:
        with contextlib.ExitStack() as stack:
            stack.callback(os._exit, 1)
            for handle in (judge.fileno(), out, to, from_):
                os.close(handle)
            _silence(2)  # what a notebook prints is of no interest here
            _prctl(PR_SET_DUMPABLE, 1)
            os.environ.update(task["env"])
            os.chdir(task["folder"])
            run(Outside(heard, said))
    os.close(heard)
    os.close(said)
    ended = os.pidfd_open(notebook)
    watched = [judge.fileno(), from_, ended]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if from_ in ready:
            if piece := os.read(from_, 1 << 16):
                _send(out, piece)
            else:
                watched.remove(from_)
        elif ended in ready:
            break
        if judge.fileno() in ready:
            if not (piece := os.read(judge.fileno(), 1 << 16)):
                os._exit(0)
            with contextlib.suppress(BrokenPipeError):
                os.write(to, piece)
    for handle in (to, from_, ended):
        os.close(handle)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    _send(out, b"")


def _send(out, piece):
    text = LENGTH.pack(len(piece)) + piece
    while text:
        text = text[os.write(out, text) :]


def run(outside):
    """Run the cells that the judge sends, in this process."""
    if "lessons.tryout" in sys.modules:
        _fork_server()
    replay()
    replace_check(outside)
    replace_counts(outside)
    from IPython.core.interactiveshell import InteractiveShell

    run_cell = InteractiveShell.instance().run_cell
    sys.path[:] = filter(None, sys.path)  # a file of the student's stands in the place of no module
    signal.signal(signal.SIGPROF, _too_long)
    outside.say({"begun": 1})  # what ends it before is no fault of the notebook
    while (source := outside.hear().get("cell")) is not None:
        limit(SECONDS)
        try:
            result = run_cell(source, store_history=False, silent=True)
            problem = result.error_before_exec or result.error_in_exec
        except BaseException as raised:
            problem = raised
        limit(0)
        outside.say({"ran": 1, "error": problem and f"{type(problem).__name__}: {problem}"[:300]})
    os._exit(0)


def _fork_server():
    """Have scripts tried out by a server that is forked here, before anything of the student's runs in this process,
    instead of by a new one, which would import TensorFlow again."""
    from lessons.tryout import client, server

    (asked, ask), (replies, reply) = os.pipe(), os.pipe()
    forked = os.fork()
    if not forked:
        with contextlib.ExitStack() as stack:
            stack.callback(os._exit, 1)
            os.dup2(asked, 0)
            os.dup2(reply, 1)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            os.setsid()
            environment = client.environment()
            os.environ.clear()
            os.environ.update(environment)
            server.main()
    os.close(asked)
    os.close(reply)
    client.fork_server.errors = io.BytesIO()
    client.fork_server.process = SimpleNamespace(  # as subprocess.Popen
        stdin=os.fdopen(ask, "wb"),
        stdout=os.fdopen(replies, "rb"),
        poll=lambda: None,
        terminate=lambda: os.kill(forked, signal.SIGKILL),
        communicate=lambda: os.waitpid(forked, 0),
    )


def limit(seconds):
    """Stop the cell after so many seconds of processor time; 0: never. Returns how many were left before."""
    return signal.setitimer(signal.ITIMER_PROF, seconds)[0]


def _too_long(number, frame):
    raise CellTime(f"stopped after {SECONDS} s of computing")


def replace_check(outside):
    """`check` sends its answers out and waits until they are judged. Whatever the judge says, the notebook goes on as
    if it was right: what was submitted behind a wrong answer is looked at, too."""
    from labs import checks
    from labs.checks import judging, student_code

    def check(id, *answers, without=None):
        left = limit(0)  # a conversation is not broken off in the middle
        try:
            conversation(id, answers)
        finally:
            limit(left)
        judging.RIGHT[id] = True
        return judging.Judged("right", "")

    def conversation(id, answers):
        functions = []

        def slot(function):
            functions.append(function)
            return len(functions) - 1

        given = [... if judging.unfilled([answer]) else answer for answer in answers]
        outside.say({"check": str(id), "answers": [wire.packed(answer, slot) for answer in given]})
        while "judged" not in (asked := outside.hear()):
            try:
                if "judge" in asked:
                    state, text, reason = judging.judge(id, *answers)
                    answer = {"judged": [state, str(text), reason and reason.__name__]}
                else:
                    number, arguments = asked["call"]
                    arguments = wire.unpacked(arguments, None, trusted=True)
                    value = student_code.within_time(lambda n=number, a=arguments: functions[n](*a))
                    answer = {"value": wire.packed(value, None), "after": wire.packed(list(arguments), None)}
            except BaseException as problem:
                answer = {"raised": f"{type(problem).__name__}: {problem}"[:300]}
            outside.say(answer | {"to": asked["number"]})

    checks.check = judging.check = check


def replace_counts(outside):
    """What a network needs is counted outside, once for all students."""
    from lessons import counts

    count = counts.of

    def of(name, image_size=224, classes=1000):
        left = limit(0)
        outside.say({"count": [name, image_size, classes]})
        facts = outside.hear()["facts"]
        limit(left)
        return counts.Facts(**facts) if facts else count(name, image_size, classes)

    counts.of = functools.cache(of)


def replay():
    """What trains or measures hands back what was submitted."""
    from labs import doctor, jobs, presets, report
    from labs.jobs import anywhere
    from labs.measure import breakdown, maxbatch
    from labs.results.run import load_record
    from labs.show import plots, widgets

    runs = jobs.folder()

    class ReplayedJob(jobs.Job):
        @property
        def state(self):
            return "finished" if self.out.is_file() or self.records else "failed"

        def stop(self):
            pass

        def _ending(self):
            return "was not handed in"

    def start(script, *arguments, name=None, **options):
        name = name or Path(str(script)).stem
        batch = str(script).endswith(".sh")
        stems = [runs / name]
        if batch:
            of_job = (path.stem for path in sorted(runs.glob(f"{name}_*.out")))
            stems = [runs / stem for stem in of_job if re.fullmatch(re.escape(name) + r"_(local|\d+)", stem)]
        return ReplayedJob(name, (stems or [runs / f"{name}_local"])[-1], batch)

    def read(path):
        try:
            return json.loads(path.read_bytes())
        except OSError:
            raise NotHandedIn(f"{path.name} was not handed in") from None

    def search(model, **_):
        for each in map(read, sorted(runs.glob("*.maxbatch.json"))):
            if each.get("model") == model:
                return each
        raise NotHandedIn(f"no search for the largest batch of {model} was handed in")

    def not_here(*_, **__):
        raise NotHandedIn("no report is made here")

    anywhere.start = jobs.start = start
    jobs.run = anywhere.run = lambda script, *arguments, name=None, **_: start(script, name=name)
    breakdown.measure = lambda model, *_, name=None, **__: read(runs / f"{name or model}.breakdown.json")
    maxbatch.search, report.make = search, not_here
    doctor.look = lambda *_: []  # of the machine that grades
    plots.show = widgets.explore = lambda *_, **__: None
    workers = set()
    for path in runs.glob("*_w[0-9]*.json"):
        with contextlib.suppress(Exception):
            if re.fullmatch(r"\w+_w\d+", path.stem):
                workers.add(load_record(path).workers)
    choose = presets.choose
    if workers:
        presets.choose = lambda *names: dataclasses.replace(choose(*names), workers=tuple(sorted(workers)))


if __name__ == "__main__":
    main()
