"""What a student must not see: the lines of the solutions that no student's form of a source shows."""

import json

from teaching.author import render
from teaching.author.regions import BEGIN, END, GIVEN, blank
from teaching.author.sources import scripts, sources

# Lines of solutions that also stand in labs, which students may read; the last ones as in any training loop.
IN_LABS = {
    "return 2 * (workers - 1) / workers * size",
    "callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]",
    "value = loss(labels, model(images, training=True))",
    "if rank == 0:",
}
_LONGER_THAN = 12  # characters: what is shorter stands in many places
_MARKS = tuple(mark.lstrip("# ") for mark in (BEGIN, END, GIVEN))


def normal(line):
    """A line as it is compared between files: without indentation and comment sign."""
    return line.strip().lstrip("#").strip()


def solution_lines(forms):
    """{line: where it stands} of the lines of sources that no student's form shows, and that are long enough to give
    something away. forms: [(name, source with its markers, or complete; the student's form)]."""
    shown = {normal(line) for *_, student in forms for line in student.split("\n")}
    return {
        line: f"{name}:{number}"
        for name, source, _ in forms
        for number, line in enumerate(map(normal, source.split("\n")), 1)
        if len(line) > _LONGER_THAN and line not in shown and not any(mark in line for mark in _MARKS)
    }


def secrets(root):
    """{line: where it stands} of every solution below `root`."""
    paths = [*sources(root).values(), *scripts(root).values()]
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in paths]
    made = render.scripts(root)
    batch = [(name, text, made[name.removeprefix("solutions/")]) for name, text in made.items() if "solutions/" in name]
    return solution_lines([*((name, text, blank(text, name)) for name, text in texts), *batch])


def told(name, content):
    """The text of a file, bytes, as a reader sees it; of a notebook its cells, without outputs."""
    text = content.decode(errors="replace")
    if name.endswith(".ipynb"):
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text


def leaks(contents, secret):
    """What {path: bytes} of a student's tree gives away, a line each. secret: of `secrets`."""
    for name, content in contents.items():
        text = told(name, content)
        yield from (f"{name} holds the marker {mark!r}" for mark in _MARKS[:2] if mark in text)
        for line in map(normal, text.split("\n")):
            if line in secret and not (name.startswith(("labs/", "lessons/")) and line in IN_LABS):
                yield f"{name} shows {secret[line]}: {line}"
