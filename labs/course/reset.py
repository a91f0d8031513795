"""Starting over: a fresh notebook or script, the old one kept in old/."""

import json
import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from labs import files
from labs.checks import tasks
from labs.course import aside, release
from labs.course.release import CourseError


def fresh_files(root):
    """{path: function that gives its fresh bytes} of all that students fill in, in a course made by a release."""
    stamp = release.stamp_of(root)
    names = sorted(filter(release.filled_in, stamp.files))
    return {name: lambda name=name: release.fresh_copy(root, stamp, name) for name in names}


def reset(root, names, fresh, progress=False):
    """Make files fresh again, the old ones kept aside; returns what was done, as lines.

    names: such as 05, scripts/ResNet50.py, slurm/local/ResNet50.sh, or paths from where you are
    fresh: as `fresh_files` gives it
    progress: also forget what progress.json says of the notebooks' items

    Raises CourseError, before anything is written, for a name that is none of these or that means several.
    """
    root = Path(root)
    chosen = list(dict.fromkeys(_meant(root, name, fresh) for name in names))
    notebooks = [name for name in chosen if name.endswith(".ipynb")]
    if progress and not notebooks:
        raise CourseError("--progress forgets the checks of notebooks, and no notebook is named.")
    contents = {name: fresh[name]() for name in chosen}
    forget = _Progress.of(root, notebooks) if progress else None
    said, opened = [], False
    for name, content in contents.items():
        path = root / name
        old = path.read_bytes() if path.is_file() else None
        if old == content:
            said.append(f"{name} is fresh already.")
            continue
        kept = old is not None and aside.place(root, name, old)
        if kept:
            aside.keep(root, kept, old)
        files.write(path, content)
        opened |= name in notebooks
        said.append(f"{name} is fresh again" + (f"; the old one is {kept}." if kept else "."))
    if forget:
        said.append(forget.now(root))
    elif opened:
        said.append("What was right in your progress stays right; `labs reset --progress` forgets that, too.")
    if opened:
        said.append("If JupyterLab shows a notebook of these, close it without saving and open it again.")
    return said


def _meant(root, name, fresh):
    """The path among `fresh` that is meant. Raises CourseError."""
    here = Path(os.path.relpath(Path(name).absolute(), root)).as_posix()
    plain = name.removeprefix("./")
    found = {path for path in fresh if here == path or plain == path}
    if not found and re.fullmatch(r"\d{1,2}", name):
        found = {path for path in fresh if path.startswith(f"notebooks/{int(name):02}_")}
    if not found and plain:
        ends = {f"/{plain}", f"/{plain}.ipynb"}
        found = {path for path in fresh if any(path.endswith(end) for end in ends)}
    if len(found) == 1:
        return found.pop()
    if found:
        raise CourseError(f"{name} means several files: {', '.join(sorted(found))}. Name one of them.")
    near = get_close_matches(here, fresh, 1, 0.7) or get_close_matches(f"notebooks/{name}", fresh, 1, 0.7)
    hint = f"did you mean {near[0]}?" if near else "name a notebook (05), or a script (scripts/ResNet50.py)."
    raise CourseError(f"{name!r:.80} is nothing that the course gave you to fill in; {hint}")


@dataclass
class _Progress:
    """The items of some notebooks that progress.json holds."""

    path: Path
    forgotten: list

    @classmethod
    def of(cls, root, notebooks):
        """Raises CourseError where progress.json cannot be read: nothing is forgotten then."""
        path = Path(os.environ.get("LABS_RUNS") or Path(root, "notebooks", "runs")) / "progress.json"
        stems = {Path(name).stem for name in notebooks}
        ids = {item.id for lesson in tasks.lessons().values() if lesson.notebook in stems for item in lesson.task}
        try:
            items = dict(json.loads(path.read_bytes())["items"])
        except FileNotFoundError:
            items = {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as problem:
            raise CourseError(f"{path} cannot be read ({type(problem).__name__}), so nothing is forgotten.") from None
        return cls(path, sorted(set(items) & ids))

    def now(self, root):
        if not self.forgotten:
            return "Your progress holds nothing of it: nothing to forget."
        with files.locked(self.path):  # a notebook that is open may keep an answer just now
            old = self.path.read_bytes()
            items = {id: item for id, item in json.loads(old)["items"].items() if id not in self.forgotten}
            kept = aside.place(root, "notebooks/runs/progress.json", old)
            aside.keep(root, kept, old)
            files.write(self.path, json.dumps({"version": 1, "items": items}, indent=1))
        return f"Your progress has forgotten {len(self.forgotten)} items; as it was it is in {kept}."
