"""Questions for a talk with each student, drawn from their own records, scripts and answers: grades/oral.pdf.

Who has measured and written something can speak about it. Each student gets three questions that no other one gets;
below each stands, for the examiner, what the records say. Nothing is judged, and no names are in it.
"""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from labs import files
from labs.printed import several
from labs.report import document
from labs.report.evidence import digits, other_lines
from teaching.grading import collect, handed, reference

COUNT = 3
RUNS, LINES, SENTENCES = 40, 60, 60  # that questions are drawn from, of one submission: the first ones
LONGEST = 300


@dataclass(frozen=True)
class Question:
    """kind: what it is about; text: what is asked, with the code or words it quotes; record: lines for the examiner."""

    kind: str
    text: str
    quoted: str = ""
    record: tuple = field(default=(), compare=False)


def write(out, root="."):
    """Write oral.pdf into the folder `out`; returns lines. root: of the course."""
    paths = collect.submissions(out)
    taken, students, little = set(), [], []
    for number, path in paths.items():
        with handed.opened(number, path) as submission:
            asked = draw(candidates(submission, str(Path(root).resolve())), taken, number)
        students.append({"number": number, "little": len(asked) < COUNT, "questions": [*map(vars, asked)]})
        little += [number] * (len(asked) < COUNT)
    data = {"title": "Questions for a talk with each student", "students": students}
    files.write(Path(out, "oral.pdf"), document.pdf_of_data(Path(__file__).with_name("oral.typ"), data))
    line = f"Wrote {Path(out, 'oral.pdf')}: {COUNT} questions for each of {len(paths)} submissions"
    line += f", but fewer for {', '.join(little)}: little is theirs alone." if little else "."
    return [line, f"Whose number is whose stands in {Path(out, 'names.json')}."]


def draw(asked, taken, seed):
    """Up to COUNT of the Questions `asked`, of different kinds where there are enough kinds.

    taken: the set of Questions that other students have; none of these is drawn, and what is drawn is added
    seed: of the draw; the same seed gives the same questions
    """

    def lot(question):
        return hashlib.sha256(f"{seed} {question.text} {question.quoted}".encode(errors="replace")).digest()

    chosen = []
    for _ in range(COUNT):
        about = {(each.kind, each.quoted) for each in chosen if each.quoted}
        free = [each for each in asked if each not in taken and (each.kind, each.quoted) not in about]
        if not free:
            break
        kinds = {each.kind for each in chosen}
        chosen.append(min(free, key=lambda each: (each.kind in kinds, lot(each))))
        taken.add(chosen[-1])
    return chosen


def candidates(submission, root):
    """All Questions that can be asked about a submission."""
    found = []
    scripts = partial(_scripts, root=root)
    for look in (_runs, _speedups, scripts, _answers):
        with suppress(Exception):  # whatever a record holds, the other questions are asked
            found += look(submission)
    return found


def _runs(submission):
    """Of the first runs that were measured: their warm-up, their settings."""
    held = [(n, run) for n, run in submission.course.runs_on_record.items() if run.kind == "measured" and run.steady]
    for name, run in held[:RUNS]:
        called = name + (f", on {several(run.workers, 'worker')}," if run.workers else "")
        first, middle = run.epochs[0], median(epoch.seconds for epoch in run.epochs if epoch.epoch)
        text = f"The first epoch of {called} took {first.seconds / middle:.2f} times as long as the median of the "
        text += "others. What happens in it, and what becomes of your speedup if it is counted in?"
        every = ", ".join(f"{each.epoch + 1}: {digits(each.seconds)}" for each in run.epochs[:20])
        record = f"Seconds by epoch: {every}. Median without the first: {digits(middle)}."
        yield Question("warm-up", text, record=(record,))
        has, rate = run.configuration, run.configuration.learning_rate
        if has.global_batch and has.local_batch and rate and (has.workers or 1) > 1:
            text = f"{called} had a local batch of {has.local_batch}, a global batch of {has.global_batch} and a "
            text += f"learning rate of {rate:g}. How do they belong together, and what would you take for 8 workers?"
            record = f"{run.steps or 'unknown'} steps per epoch; {has.strategy}; {has.images or 'all'} images."
            yield Question("settings", text, record=(record,))


def _speedups(submission):
    for run in submission.speedups[:RUNS]:
        between, rate = run.speedup.interval, run.images_per_second.value
        of = digits(run.speedup.value) + (f" [{digits(between[0])}, {digits(between[1])}]" if between else "")
        text = f"The speedup of {run.source.removesuffix('.json')} is {of} on {run.workers} workers. Where does the "
        text += f"rest of {run.workers} go, and how would you find out?"
        record = [f"Epoch {digits(run.epoch_seconds.value)} s" + (f", {digits(rate)} images/s." if rate else ".")]
        record += [f"Oversubscribed: {'yes' if run.oversubscribed else 'no'}.", *run.notes[:3]]
        yield Question("speedup", text, record=tuple(record))


_ASKED = ("What would happen without this line?", "Why does this line stand where it does, and not elsewhere?")


def _scripts(submission, root):
    """Of lines that a script has and its blank form has not."""
    for name, (blank, _) in reference.scripts(root).items():
        if name not in submission.contents:
            continue
        lines, short = submission.contents[name].decode(errors="replace").split("\n"), Path(name).name
        record = (f"The blank form of {short} does not have it.",)
        own = other_lines(blank.split("\n"), lines)
        for n in [n for n in own if re.search(r"\w.*[(=.:]", lines[n].partition("#")[0])][:LINES]:
            for asked in _ASKED:
                quoted = lines[n].strip()[:LONGEST]
                yield Question("script", f"Line {n + 1} of your {short}. {asked}", quoted, record)


def _answers(submission):
    """Of sentences of the written answers, those with a number first."""
    runs = ", ".join(list(submission.course.runs_on_record)[:8]) or "none"
    for task, text in submission.course.answers.items():
        sentences = [" ".join(each.split()) for each in re.split(r"(?<=[.!?])\s+|\n\s*\n", text)]
        sentences = [each for each in sentences if 30 <= len(each) <= LONGEST][:SENTENCES]
        numbers = [each for each in sentences if re.search(r"\d", each)]
        asked = "From which run is this, and how was it computed?" if numbers else "How do you know?"
        for each in numbers or sentences:
            text = f"In {task} you write the following. {asked}"
            yield Question("answer", text, each, (f"Runs on record: {runs}.",))
