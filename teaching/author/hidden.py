"""What a student must not see: the lines of a source that stand in its solution regions and nowhere else."""

import ast
import json

from teaching.author import render
from teaching.author.regions import BEGIN, DEFINITION, END, GIVEN, blank, first_line, regions, statements_of
from teaching.author.sources import scripts, sources

# Lines of solutions that also stand in labs, which students may read; the last ones as in any training loop.
IN_LABS = {
    "return (1 - 1 / workers) ** workers",
    "return 2 * (workers - 1) / workers * size",
    "callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]",
    "value = loss(labels, model(images, training=True))",
    "optimizer.apply(tape.gradient(value, weights), weights)",
    "for job in started:",
    "if rank == 0:",
}
_LONGER_THAN = 12  # characters: what is shorter stands in many places


def normal(line):
    """A line as it is compared between files: without indentation and comment sign."""
    return line.strip().lstrip("#").strip()


def solution_lines(source, name="source", longer_than=_LONGER_THAN):
    """(line number, text) of the lines of regions that are longer than `longer_than` characters, stand neither
    outside of a region nor in what is given in its place, and are no signature or docstring, which students keep."""
    lines, inside, kept, given = source.split("\n"), set(), set(), set()
    for region in regions(source, name):
        inside.update(range(region.begin, region.end + 1))
        kept.update((region.begin, region.end, *region.given))
        given.update(normal(lines[index].replace(GIVEN, "", 1)) for index in region.given)
        statements = [] if region.markdown else statements_of(lines, region, name)[0]
        for node in ast.walk(ast.Module(statements, [])):
            if isinstance(node, DEFINITION) and node.body[0].lineno > node.lineno:
                documented = ast.get_docstring(node, clean=False) is not None
                stop = node.body[0].end_lineno if documented else first_line(node.body[0]) - 1
                kept.update(range(first_line(node) - 1, stop))
    shown = [normal(line) for line in lines]
    outside = given | {line for index, line in enumerate(shown) if index not in inside}
    hidden = [(index + 1, shown[index]) for index in sorted(inside - kept)]
    return [(number, line) for number, line in hidden if len(line) > longer_than and line not in outside]


def secrets(root):
    """{line: where it stands} of every solution below `root`, but for lines that a student's form of another source
    shows."""
    hidden, shown = {}, set()
    for path in [*sources(root).values(), *scripts(root).values()]:
        text = path.read_text(encoding="utf-8")
        hidden |= {line: f"{path.name}:{number}" for number, line in solution_lines(text, path.name)}
        shown |= set(map(normal, blank(text, path.name).split("\n")))
    for name, text in render.scripts(root).items():
        lines = {normal(line): name for line in text.split("\n") if len(line) > _LONGER_THAN}
        shown |= lines.keys() if name.startswith("slurm/") else set()
        hidden |= {} if name.startswith("slurm/") else lines
    return {line: where for line, where in hidden.items() if line not in shown}


def told(name, content):
    """The text of a file, bytes, as a reader sees it; of a notebook its cells, without outputs."""
    text = content.decode(errors="replace")
    if name.endswith(".ipynb"):
        return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return text


def leaks(contents, secret):
    """What {path: bytes} of a student's tree gives away, a line each. secret: of `secrets`."""
    marks = BEGIN.lstrip("# "), END.lstrip("# ")
    for name, content in contents.items():
        text = told(name, content)
        yield from (f"{name} holds the marker {mark!r}" for mark in marks if mark in text)
        for line in map(normal, text.split("\n")):
            if line in secret and not (name.startswith(("labs/", "lessons/")) and line in IN_LABS):
                yield f"{name} shows {secret[line]}: {line}"
