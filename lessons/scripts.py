"""What every judge of a script begins with: whether there is one, whether it still has blanks, where it stops.

The functions that say something yield cases, as a judge does.
"""

from pathlib import Path

from labs import blanks
from labs.checks.judging import NotDone


def whole(path, lines=lambda path: range(10**6)):
    """Case of a path without a script. Raises NotDone with the first line of lines(path) that is still blank."""
    yield not Path(str(path)).is_file(), f"There is no script {path}. Give the path of yours."
    try:
        found = blanks.blanks(Path(path))
    except blanks.BuildError:  # Python cannot read it; the try-out shows where
        return
    asked = lines(path)
    for line, text in found:
        if line in asked:
            raise NotDone(f"Line {line} of {Path(path).name} is still blank: {text.strip()}")


def stops(facts, how):
    """Case of a performance that ended in an error; how: what was tried, such as "With 4 workers"."""
    if error := facts["error"]:
        place = f"line {error['line']}: `{error['code']}`: " if error["line"] else "outside your script: "
        a_class = "missing 1 required positional argument: 'self'" in error["says"]
        says = "a class stands here, and no object of it. Where it is named, the parentheses `()` are missing."
        yield True, f"{how}, {place}{says if a_class else error['says']}"
