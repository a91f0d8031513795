"""Solution regions and blanks in batch scripts: what labs.blanks is for Python, for bash and #SBATCH.

In the student's form `#SBATCH --gres=gpu:4` becomes `#SBATCH --gres=...`, and `batch=$((64 * workers))` becomes
`batch=...  # your code here`.
"""

import re

from labs.blanks import YOUR_CODE, BuildError, regions

_DIRECTIVE = re.compile(r"(\s*#SBATCH\s+--[\w-]+)[= ].*$")
_ASSIGNMENT = re.compile(r"(\s*[A-Za-z_]\w*)=.*$")
_BLANK = re.compile(r"^\s*(?:#SBATCH\s+--?[\w-]+[= ]*|[A-Za-z_]\w*=)\.\.\.\s*(?:#.*)?$")


def blank(source, name="script"):
    """The student's form of a batch script with markers. Raises BuildError for wrong markers, and for a line in a
    region that is neither a directive with a value nor an assignment."""
    lines, student, position = source.split("\n"), [], 0
    for region in regions(source, name):
        student += lines[position : region.begin]
        for number, line in enumerate(lines[region.begin + 1 : region.end], region.begin + 2):
            if directive := _DIRECTIVE.match(line):
                student.append(f"{directive[1]}=...")
            elif assignment := _ASSIGNMENT.match(line):
                student.append(f"{assignment[1]}={YOUR_CODE}")
            else:
                raise BuildError(f"{name}:{number}: a region of a batch script holds directives with a value and "
                                 "assignments only; move its markers")  # fmt: skip
        position = region.end + 1
    return "\n".join(student + lines[position:])


def blanks(text):
    """(line number, line) of every blank that is left in the text of a batch script."""
    return [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1) if _BLANK.match(line)]
