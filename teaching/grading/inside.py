"""A notebook, run in the sandbox in replay: what trains hands back the submitted run.

The first line of the standard input is the task: the cells, and where. For every `check` the answers go out, as
teaching.grading.wire packs them; then the judge outside may call a function of the student's, or ask what the kit's own
judge says here, and in the end says how it was judged. Nothing that is said here gains a point by itself.
"""

import contextlib
import dataclasses
import json
import os
import re
import signal
import sys
from pathlib import Path

from teaching.grading import wire

SECONDS = 30  # of processor time for a cell; the sandbox has a limit for the clock on the wall


class CellTime(BaseException):
    """A cell took too long."""


class NotHandedIn(Exception):
    """What was to be run was not handed in, and nothing is trained here."""


class Outside:
    """The judge: what is said to it and what it asks."""

    def __init__(self):
        self.heard, self.said = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for handle in (0, 1, 2):  # what the notebook prints is of no interest here
            os.dup2(nothing, handle)

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
    outside = Outside()
    task = outside.hear()
    os.chdir(task["folder"])
    replay()
    replace_check(outside)
    from IPython.core.interactiveshell import InteractiveShell

    run_cell = InteractiveShell.instance().run_cell
    signal.signal(signal.SIGPROF, _too_long)
    outside.say({"begun": 1})  # what ends it before is no fault of the notebook
    for number, source in enumerate(task["cells"]):
        limit(SECONDS)
        try:
            result = run_cell(source, store_history=False, silent=True)
            problem = result.error_before_exec or result.error_in_exec
        except BaseException as raised:
            problem = raised
        limit(0)
        outside.say({"cell": number, "error": problem and f"{type(problem).__name__}: {problem}"[:300]})
    outside.say({"done": 1})
    os._exit(0)


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
        return judging.Judgement("right")

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
                    state, text = judging.judge(id, *answers)
                    answer = {"judged": [state, str(text)]}
                else:
                    number, arguments = asked["call"]
                    arguments = wire.unpacked(arguments, None, trusted=True)
                    value = student_code.within_time(lambda n=number, a=arguments: functions[n](*a))
                    answer = {"value": wire.packed(value, None), "after": wire.packed(list(arguments), None)}
            except BaseException as problem:
                answer = {"raised": f"{type(problem).__name__}: {problem}"[:300]}
            outside.say(answer | {"to": asked["number"]})

    checks.check = judging.check = check


def replay():
    """What trains or measures hands back what was submitted."""
    from labs import doctor, jobs, presets, report
    from labs.jobs import anywhere
    from labs.measure import breakdown, maxbatch
    from labs.results.run import load
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

    class ReplayedTurns(jobs.Turns):
        def __init__(self, **_):
            self.jobs = []

        def start(self, script, *arguments, name, **options):
            self.jobs.append(start(script, *arguments, name=name))
            return self.jobs[-1]

        def begin(self):
            return self

        def wait(self, timeout=None):
            return self.jobs

        def stop(self):
            pass

        def progress(self):
            return {}

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
    jobs.Turns = ReplayedTurns
    breakdown.measure = lambda model, *_, name=None, **__: read(runs / f"{name or model}.breakdown.json")
    maxbatch.search, report.make = search, not_here
    doctor.look = lambda *_: []  # of the machine that grades
    plots.show = widgets.explore = lambda *_, **__: None
    workers = set()
    for path in runs.glob("*_w[0-9]*.json"):
        with contextlib.suppress(Exception):
            if re.fullmatch(r"\w+_w\d+", path.stem):
                workers.add(load(path).workers)
    choose = presets.choose
    if workers:
        presets.choose = lambda *names: dataclasses.replace(choose(*names), workers=tuple(sorted(workers)))


if __name__ == "__main__":
    main()
