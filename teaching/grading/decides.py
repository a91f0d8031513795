"""What decides how the checks of a notebook are judged, as one hash: another text or picture judges nothing again.

It takes the code of the judges and of what they and the notebook import, without comments and docstrings; the code of
both forms of the notebook and of the scripts; and of its tasks what is no text. What only draws or reports is left out.
"""

import ast
import hashlib
import json
from functools import cache
from pathlib import Path

from labs.blanks import parse
from labs.checks import tasks
from teaching.author import regions, sources
from teaching.grading import reference

JUDGING = ("judge", "walled", "inside", "wire", "again", "cells", "magics", "plain", "needless", "reference", "handed")


@cache
def judged_by(root, notebook):
    """SHA-256 (hex) of what decides how the checks of a notebook are judged. root: of the course, with solutions."""
    (lesson,) = (each for each in tasks.lessons().values() if each.notebook == notebook)
    root, source = Path(root), Path(root, "solutions", f"{notebook}.py")
    begin = [root / f"teaching/grading/{name}.py" for name in JUDGING]
    begin += [root / "labs/report/course.py", root / f"lessons/{lesson.name}/questions.py"]
    modules = sources.kit_files(root, [*begin, source], _draws) - {source}
    data = [path.with_suffix(".toml") for path in modules if path.with_suffix(".toml").is_file()]
    data += [*(root / "labs/recorded").rglob("*.json"), *(root / "slurm/sites").glob("*.toml")]
    texts = [cell for form in reference.forms(root, notebook) for cell in form.values()]
    texts += [text for forms in reference.scripts(root).values() for text in forms]
    texts += [path.read_text(encoding="utf-8") for path in sorted(modules)]
    parts = [*map(code, texts), *(path.read_text(encoding="utf-8") for path in sorted(data))]
    parts.append(json.dumps([lesson.replay, *map(_decides, lesson.task)]))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _draws(path):
    """Whether a module only draws or reports."""
    return path.name == "pictures.py" or path.parent.name in ("show", "report") and path.name != "course.py"


def _decides(item):
    """What of an item decides whether an answer is right."""
    kept = item.model_dump(include={"id", "kind", "right", "several", "given"})
    return kept | {"letters": sorted(getattr(item, "wrong", ()))}


@cache
def code(text):
    """Python text without comments, docstrings and positions."""
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *regions.DEFINITION)) and ast.get_docstring(node, clean=False) is not None:
            node.body[:1] = [ast.Pass()]
    return ast.dump(tree)
