"""A submission's notebooks, judged again: they run in the sandbox, in replay, and the judge stays outside.

Each check is judged in one of three ways, and its result says in which:

    outside    its answers came out as JSON; functions were called through the pipe, also with inputs of our own
    inside     an answer cannot leave its process (a model, a data set, a figure, a script): the kit's judge ran beside
               it in the sandbox, and counts only where the student wrote plain code alone (teaching.grading.plain)
    person     neither, or the sandbox failed: whoever grades decides
"""

import contextlib
import copy
import signal
import tempfile
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import numpy as np

from labs import sandbox
from labs.checks import judging, tasks
from labs.measure import breakdown
from labs.report.archive import zipped
from labs.results import log as logs
from labs.sandbox.walls import WORK
from lessons.own_runs import NOT_YOURS
from teaching.grading import again, cells, needless, plain, reference, wire
from teaching.grading.finding import CheckResult
from teaching.grading.walled import Gone

CPU_SECONDS = 120  # of this process, for judging one notebook
OTHER_INPUTS = "Right for the numbers of the notebook, wrong for others: does it take all it needs from its arguments?"


class TooLong(KeyboardInterrupt):
    """Judging takes longer than it may, because of what was sent. Any other exception would be taken for the
    student's."""


class Untrusted(Exception):
    """An argument that the notebook computes, and that cannot be computed again from the records."""


class Raised(Exception):
    """A student's function raised something; the text says what."""


def judged(submission, root, notebook, seed, walled):
    """({id: CheckResult}, lines on what happened) of the checks of one notebook of a Submission.

    root: of the course; seed: of our own inputs; walled: the Walled in which it runs, after others. Raises SandboxError
    where it failed before the notebook began.
    """
    if f"notebooks/{notebook}.ipynb" not in submission.contents:
        if why := cells.elsewhere(submission.contents, notebook):
            return unjudged(root, notebook, why), []
        return dict.fromkeys(reference.asked(root, notebook), CheckResult("open", "outside", NOT_HANDED_IN)), []
    replay, stopped = _Replay(submission, root, notebook, seed, walled), ""
    try:
        with _clock():
            replay.run()
    except Gone as end:
        stopped = str(end)
    except TooLong:
        stopped = "to judge what was sent takes too long"
    if stopped:
        return unjudged(root, notebook, stopped) | replay.found, [*replay.told, stopped]
    return {id: replay.final(id) for id in replay.asked}, replay.told


NOT_HANDED_IN, NOT_DONE, NO_CELL = "the notebook was not handed in", "not done", "its cell is not in the notebook"


def unjudged(root, notebook, why):
    """{id: CheckResult} of a notebook that was handed in: a person has to decide all of them, for the reason `why`."""
    return dict.fromkeys(reference.asked(root, notebook), CheckResult("open", "person", f"not judged: {why}"[:300]))


@contextlib.contextmanager
def _clock():
    """Raise TooLong in here when CPU_SECONDS of this process are spent."""

    def ring(*_):
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class _Replay:
    """A notebook of a Submission that runs in replay. found: {id: CheckResult} of the checks that were judged so far;
    told: lines on what happened; seed: of our own inputs; talk: the Walled in which it runs."""

    def __init__(self, submission, root, notebook, seed, talk):
        self.submission, self.root, self.notebook, self.seed, self.talk = submission, root, notebook, seed, talk
        self.asked, self.found, self.told = reference.asked(root, notebook), {}, []
        self.content, self.errors = submission.contents[f"notebooks/{notebook}.ipynb"], {}
        self.given = reference.forms(root, notebook)[1].values()

    def final(self, id):
        """The CheckResult of a check when all has run. Not done is final only where its cell is blank, or nothing is
        there that could hold it; else a person looks."""
        result, contents, every = self.found.get(id), self.submission.contents, cells.read(self.content)[0]
        for name in (path.removeprefix(cells.OTHERS) for path in contents if path.startswith(cells.OTHERS)):
            if result and result.state == "open" and result.how != "person" and name in result.text:  # a script
                return CheckResult("open", "person", f"not judged: {name} was handed in, and not read: {result.text}")
        if result and result.text != NOT_DONE:
            return result
        given = {source.strip() for source in self.given}
        theirs = [cell for cell in every if id in cell.items]
        changed = [cell for cell in theirs if cell.source.strip() not in given or not any(self.asked[id].own)]
        if other := [cell.kind for cell in changed if cell.kind != "code" and (cell.filled or not result)]:
            why = f"its cell was turned into a {other[0]:.20} cell, which is not run"
        elif changed and not result:
            code = [cell for cell in every if cell.kind == "code"]
            errors = [error for place, error in self.errors.items() if code[place] in changed]
            why = f"its cell did not get to its check ({(errors or ['nothing in it calls it'])[0]})"
        else:
            why = cells.elsewhere(contents, self.notebook, id, bool(theirs))
        if why:
            return CheckResult("open", "person", f"not judged: {why}"[:300])
        return result or CheckResult("open", "outside", NOT_DONE if theirs else NO_CELL)

    def run(self):
        """Run it to its end. Raises Gone and TooLong, with what was found until then; and SandboxError."""
        sources, odd = cells.runnable(self.content)
        if odd and not sources:  # an accident on its way, perhaps
            raise Gone(odd[0])
        self.told += odd
        self.found |= {id: _batch(self.submission, id, each.batch) for id, each in self.asked.items() if each.batch}
        self.found |= {id: _report(self.submission, id) for id, each in self.asked.items() if each.report}
        (self.student, others), failed = self._written(), 0

        def judge(id, answers):
            result = self._judged(id, answers)
            if id not in self.found or result.text != NOT_DONE:  # a copy that was left blank
                self.found[id] = result

        try:
            for place, error in enumerate(self._played(needless.without(sources, self.given), others, judge)):
                self.errors |= {place: error} if error else {}
                if error and not _of_a_blank(error, self.found):
                    failed += 1
                    self.told += [f"cell {place}: {error[:200]}"] * (failed <= cells.FEW)
        finally:
            self.told += [f"{failed - cells.FEW} more cells ended in an error"] * (failed > cells.FEW)
        self._judge_without(others)

    def _judge_without(self, others):
        """Judge once more what was right beside code that is not plain: in a process in which none of that has run."""
        right = {id: result for id, result in self.found.items() if result.state == "right"}
        doubted = {id: result for id, result in right.items() if result.text.startswith("not judged: ")}

        def judge(id, answers):
            if id in doubted:
                said = _said_inside(self.talk)
                self.found[id] = _of_judge(said, "inside") if said.state == "right" else doubted[id]

        if doubted:
            with contextlib.suppress(Gone, sandbox.SandboxError):
                statements, scripts = self.student.without()
                for _ in self._played(needless.without(statements, self.given), others | scripts, judge):
                    pass

    def _played(self, sources, files, judge):
        """Run cells in a process of their own; yields for each the error in which it ended, or "".

        judge(id, answers): called for each check that is judged from here; files: {path: text} of files that differ
        from what was handed in. Raises Gone, SandboxError, and what `judge` raises.
        """
        others = {f"{WORK}/{name}": text for name, text in files.items()}
        task = {"folder": f"{WORK}/notebooks", "env": _preset(self.notebook), "files": others}
        try:
            self.talk.begin(task)
            for source in sources:
                self.talk.say({"cell": source})
                while "ran" not in (message := self.talk.hear()):
                    if "check" in message:
                        id = str(message["check"])
                        if id in self.asked and not (self.asked[id].batch or self.asked[id].report):
                            judge(id, message.get("answers"))
                        self.talk.say({"judged": 1})
                yield str(message.get("error") or "")
            self.talk.say({"cell": None})
            with contextlib.suppress(Gone):
                while True:  # what is left of it ends
                    self.talk.hear()
        finally:
            if self.talk.running:
                self.talk.close()

    def _written(self):
        """(the Plain of what the student wrote in the notebook, and in the scripts that it names; {name: text} of the
        others, as students get them: they run in the place of what became of them)."""
        fresh, contents = reference.scripts(self.root), self.submission.contents
        complete, form = reference.forms(self.root, self.notebook)
        said = "".join(form.values()) + self.content.decode(errors="replace")
        others = {name: given for name, (given, _) in fresh.items() if Path(name).stem not in said}
        names = [name for name in fresh if name in contents and name not in others]
        scripts = [(name, contents[name].decode(errors="replace"), *fresh[name]) for name in names]
        blanks = reference.blanks(self.root, self.notebook)
        return plain.Plain(form, blanks, self.content, scripts, tuple(complete.values())), others

    def _judged(self, id, packed):
        """The CheckResult of a check whose answers the notebook has sent, `packed`: anything. Raises Gone."""
        try:
            return self._judge(id, packed)
        except Gone:
            raise
        except Exception as problem:  # what was sent can be anything, and is judged in this process
            return CheckResult("open", "person", f"not judged: {type(problem).__name__}: {problem}"[:300])

    def _judge(self, id, packed):
        asked, calls, problems = self.asked[id], {}, []

        def function(number):
            def call(*arguments):
                try:
                    return _called(self.talk, number, arguments, calls)
                except (Raised, Untrusted, Gone) as problem:
                    problems.append(problem)  # the judge takes any exception for the student's
                    raise

            return call

        answers = [wire.unpacked(each, function) for each in packed] if isinstance(packed, list) else []
        if len(answers) != len(asked.names):
            return CheckResult("open", "person", "not judged: its call of `check` was changed, and not understood")
        if any(isinstance(answer, wire.Blank) for answer in answers):
            return CheckResult("open", "outside", NOT_DONE)
        try:
            given = [
                _whole(answer) if own else _trusted(self.submission, id, name, answer)
                for answer, name, own in zip(answers, asked.names, asked.own, strict=True)
            ]
            judged = judging.judge(id, *given)
            if problems:
                raise problems[0]
        except Raised as problem:
            return CheckResult("wrong", "outside", f"your function raises {problem}")
        except Untrusted:
            return _inside(self.talk, self.student, id)
        if judged.state == "right" and not tasks.task(id).several:
            if self._hard_coded(id, packed, function, calls):
                return CheckResult("wrong", "outside", OTHER_INPUTS)
        return _of_judge(judged, "outside")

    def _hard_coded(self, id, packed, function, calls):
        """Whether one of the functions gives the right values for the judge's inputs only."""
        right, asked = reference.functions(self.root, self.notebook), self.asked[id]
        for name, own, sent in zip(asked.names, asked.own, packed, strict=True):
            number = sent.get("function") if isinstance(sent, dict) else None
            if number is not None and own and callable(right.get(name)):
                made = list(calls.get(number, ()))
                try:
                    if again.differs(function(number), right[name], made, f"{self.seed}{id}", id):
                        return True
                except (Raised, Untrusted):
                    return True
        return False


def _of_a_blank(error, found):
    """Whether a cell failed because of an open blank: replay goes on after a blank as after an answer."""
    blank = any(each.text == NOT_DONE for each in found.values())
    return blank and ("NoneType" in str(error) or "ellipsis" in str(error))


def _preset(notebook):
    preset = next(each.replay for each in tasks.lessons().values() if each.notebook == notebook)
    return {"LABS_PRESET": preset} if preset else {}


def _batch(submission, id, name):
    """The CheckResult of a batch script, which the judge itself tries out in a sandbox."""
    paths = sorted(submission.root.glob(f"slurm/*/{name}"))
    if not paths:
        return CheckResult("open", "outside", f"no {name} was handed in")
    results = [judging.judge(id, path) for path in paths]
    judged = next((each for each in results if each.state == "right"), results[0])
    return _of_judge(judged._replace(text=judged.text.replace(str(submission.root), "")), "outside")


def _report(submission, id):
    """The CheckResult of the report as it was handed in: in replay none is made. What of it is missing or another one
    may have got lost on its way, so a person looks."""
    if not {"report.pdf", "report.json"} & submission.contents.keys():
        return CheckResult("open", "outside", NOT_DONE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "submission.zip")
        handed_in = {name: data for name, data in submission.contents.items() if not name.startswith(cells.OTHERS)}
        path.write_bytes(zipped(handed_in))
        made = SimpleNamespace(pdf=submission.root / "report.pdf", json=submission.root / "report.json", zip=path)
        judged = judging.judge(id, made)
    how = "outside" if judged.state == "right" else "person"
    return _of_judge(judged._replace(text=judged.text.replace(str(submission.root), "")), how)


def _of_judge(judged, how):
    """A CheckResult of what the kit's judge says: what was not tried out, or too noisy, is not what was not done; and
    runs that were measured may have been left behind."""
    left = judged.reason in (judging.NotTried, judging.OnlyRead, judging.TooNoisy) or NOT_YOURS in judged.text
    return CheckResult(judged.state, "person" if left else how, judged.text)


def _called(talk, number, arguments, calls):
    """What a function of the student's returns in the sandbox; the arguments are added to `calls`, by its number.

    Raises Raised, Untrusted and Gone.
    """
    sent = [wire.packed(each, None) for each in arguments]
    if _holds_unfit(sent):
        raise Untrusted
    calls.setdefault(number, []).append(copy.deepcopy(arguments))
    answer = talk.ask({"call": [number, {"list": sent}]})
    if "value" not in answer:
        raise Raised(str(answer.get("raised", "no answer"))[:300])
    after = wire.unpacked(answer.get("after"), None) if answer.get("after") != {"list": sent} else None
    for given, left in zip(arguments, after if isinstance(after, list) else (), strict=False):
        if isinstance(given, np.ndarray) and isinstance(left, np.ndarray) and given.shape == left.shape:
            given[...] = left  # a function that changes its argument is seen to do so
        elif isinstance(given, list) and isinstance(left, list):
            given[:] = left
    return _whole(wire.unpacked(answer["value"], None))


def _holds_unfit(sent):
    if isinstance(sent, dict):
        return "unfit" in sent or any(map(_holds_unfit, sent.values()))
    return isinstance(sent, list) and any(map(_holds_unfit, sent))


def _whole(answer):
    """An answer of the student's. Raises Untrusted for one that could not leave its process."""
    held = answer if isinstance(answer, list | tuple) else answer.values() if isinstance(answer, dict) else [answer]
    if any(isinstance(each, wire.Unfit) for each in held):
        raise Untrusted
    return answer


def _trusted(submission, id, name, answer):
    """What a notebook computes beside an answer, computed again from the records. Raises Untrusted."""
    course, given = submission.course, tasks.task(id).given
    runs = answer if isinstance(answer, list) else None
    if runs and all(isinstance(run, wire.Unfit) and run.source for run in runs):
        names = list(dict.fromkeys(run.source.removesuffix(".json") for run in runs))
        if all(each in course.runs_on_record for each in names):
            return course.with_measures(names)
    if given.log in course.runs_on_record and (path := course.log(given.log, ".out")):
        return logs.read(path)[0]
    if given.means:
        apart = course.searches_and_breakdowns.get(f"{given.means}.breakdown.json")
        return {kind: fmean(each) for kind, each in breakdown.means(apart).items()} if apart else given.otherwise
    raise Untrusted


def _inside(talk, student, id):
    """What the kit's judge says in the sandbox; that something is right only where plain code alone ran beside it."""
    said = _said_inside(talk)
    if not said.state:
        return CheckResult("open", "person", "not judged: it gave no answer")
    if said.state == "right" and (why := student.why_not()):
        return CheckResult("right", "person", f"not judged: {why}")
    return _of_judge(said, "inside")


def _said_inside(talk):
    """The Judged of the kit's judge in the sandbox; its state is "" where it says nothing that is understood."""
    answer = talk.ask({"judge": 1}).get("judged")
    if isinstance(answer, list) and len(answer) == 3 and answer[0] in ("right", "wrong", "open"):
        reasons = {kind.__name__: kind for kind in judging.Undecided.__subclasses__()}
        return judging.Judged(answer[0], str(answer[1])[:500], reasons.get(str(answer[2])))
    return judging.Judged("", "")
