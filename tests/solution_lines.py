"""What a student must not see: the lines of a source that stand in its solution regions and nowhere else."""

import ast

from labs.author.regions import DEFINITION, first_line, regions, statements_of


def normal(line):
    """A line as it is compared between files: without indentation and comment sign."""
    return line.strip().lstrip("#").strip()


def solution_lines(source, name="source", longer_than=12):
    """(line number, text) of the lines of regions that are longer than `longer_than` characters, stand nowhere outside
    of a region, and are no signature or docstring, which students keep."""
    lines, inside, kept = source.split("\n"), set(), set()
    for region in regions(source, name):
        inside.update(range(region.begin, region.end + 1))
        kept.update((region.begin, region.end, *region.given))
        statements = [] if region.markdown else statements_of(lines, region, name)[0]
        for node in ast.walk(ast.Module(statements, [])):
            if isinstance(node, DEFINITION) and node.body[0].lineno > node.lineno:
                documented = ast.get_docstring(node, clean=False) is not None
                stop = node.body[0].end_lineno if documented else first_line(node.body[0]) - 1
                kept.update(range(first_line(node) - 1, stop))
    outside = {normal(line) for index, line in enumerate(lines) if index not in inside}
    hidden = [(index + 1, normal(lines[index])) for index in sorted(inside - kept)]
    return [(number, line) for number, line in hidden if len(line) > longer_than and line not in outside]
