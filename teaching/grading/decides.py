"""What decides how the checks of a notebook are judged, as one hash: another picture judges nothing again.

It takes the judges and all that they and the notebook import, the notebook, the scripts, and the recorded runs and
sites. What only draws or reports is left out.
"""

import hashlib
from functools import cache
from pathlib import Path

from labs.checks import tasks
from teaching.author import sources

KIT = Path(__file__).parents[2]
JUDGING = ("judge", "inside", "wire", "drawn", "again", "cells", "magics", "plain", "reference", "handed")


@cache
def judged_by(root, notebook):
    """SHA-256 (hex) of what decides how the checks of a notebook are judged. root: of the course, with solutions."""
    (lesson,) = (name for name, each in tasks.lessons().items() if each.notebook == notebook)
    begin = [Path(__file__).with_name(f"{name}.py") for name in JUDGING]
    begin += [KIT / "labs/report/course.py", KIT / f"lessons/{lesson}/questions.py"]
    source = Path(root, "solutions", f"{notebook}.py")
    paths = sources.kit_files(KIT, begin, _draws) | sources.kit_files(Path(root), [source], _draws)
    paths |= {path.with_suffix(".toml") for path in paths}  # labs.files.beside
    paths |= {KIT / f"lessons/{lesson}/tasks.toml", *sources.scripts(Path(root)).values()}
    paths |= {*(KIT / "labs/recorded").rglob("*.json"), *Path(root, "slurm/sites").glob("*.toml")}
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(paths) if path.is_file())).hexdigest()


def _draws(path):
    """Whether a module only draws or reports."""
    return path.name == "pictures.py" or path.parent.name in ("show", "report") and path.name != "course.py"
