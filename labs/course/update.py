"""Going on: a newer release over a course that has begun.

The whole release is read and checked, and all that will change is planned, before anything is written. Then the new
files are laid ready in .release/next, what the student had changed and is replaced is kept in old/, and the new files
are moved into place; the stamp comes last. So an update that was interrupted anywhere is finished by running it again.
"""

import shutil
from pathlib import Path, PurePosixPath

from labs import files
from labs.course import backup, notebooks, release
from labs.course.release import FOLDER, FRESH, STAMP, CourseError, filled_in
from labs.files import digest
from labs.printed import few, grouped


def update_course(root: Path, source: str | Path) -> list[str]:
    """Bring a course to a newer release; returns what changed, as lines.

    root: the course's folder
    source: the release, a zip or a folder

    Raises CourseError, before anything is written: no release, damaged, older than the course.
    Raises files.WriteError where the disk is full, then run it again; or where another command is changing the course.
    """
    root = Path(root)
    if not release.is_release(root):
        raise CourseError(f"{root} is a clone, not a release: `git pull` brings what is new.")
    stamp, contents = release.load(source)
    with backup.locked(root):
        now = release.stamp_of(root)
        if stamp.age() < now.age():
            raise CourseError(f"{source} is {stamp}, older than this course ({now}): ask for the newest one.")
        plan = _Plan(root, now, stamp, contents)
        if not plan.write:
            return [f"This course is {now} already."]
        plan.carry_out()
    return [f"Updated from {now} to {stamp}.", *plan.summary(), *plan.lines]


class _Plan:
    """What leads from a course, whose stamp is `now`, to a release, by paths below the course's folder.

    write: {path: bytes}, in order; remove: paths; backups: paths whose files are kept in old/ first; changes: (what
    happens, path); lines: for the student, on single files
    """

    def __init__(self, root, now, stamp, contents):
        self.root, self.now = root, now
        self.write, self.remove, self.backups, self.changes, self.lines = {}, [], [], [], []
        for name, content in contents.items():
            current, before = self._current(name), now.files.get(name)
            if current is None or digest(current) == before:
                self._replace(name, current, content)
            elif current != content and not filled_in(name):
                self.lines.append(f"{name}: you had changed it; now it is the course's, yours is {self._keep(name)}.")
                self._replace(name, current, content)
            elif current != content and before != stamp.files[name]:
                (self._notebook if name.endswith(".ipynb") else self._script)(name, current, content)
        for name in sorted(set(now.files) - set(contents)):
            self._remove(name, self._current(name))
        for name, content in release.stamped(stamp.version, stamp.date, contents).items():
            if self._current(name) != content:
                self.write[name] = content

    def _current(self, name):
        """Bytes of a file of the course, or None."""
        try:
            return (self.root / name).read_bytes()
        except FileNotFoundError:
            return None

    def _keep(self, name):
        """Plan the backup of a file; returns its path."""
        self.backups.append(name)
        return backup.place(self.root, name)

    def _replace(self, name, current, content):
        if current != content:
            self.write[name] = content
            self.changes.append(("New" if current is None else "Changed", name))

    def _script(self, name, current, content):
        """A student's script stays; its newer form is put beside it."""
        path = PurePosixPath(name)
        beside = path.with_name(f"{path.stem}_new{path.suffix}").as_posix()
        other, line = self._current(beside), f"{name}: yours stays; the new form is {beside}"
        if other not in (None, content) and digest(other) != self.now.files.get(name):
            line += f"; what was there is {self._keep(beside)}"
        if other != content:
            self.write[beside] = content
            self.lines.append(f"{line}.")

    def _notebook(self, name, current, content):
        """A student's notebook is carried into its newer form."""
        try:
            carried, lost, both = notebooks.carry(self._current(FRESH + name) or b"", current, content)
        except ValueError as problem:
            self.lines.append(f"{name}: replaced by the course's, since {problem}. Yours is {self._keep(name)}.")
            self._replace(name, current, content)
            return
        self._replace(name, current, carried)
        if lost:
            kept = f"{self._keep(name)} holds what you had there"
            self.lines.append(f"{name}: cells that changed or are gone: {', '.join(lost)}; {kept}.")
        if both:
            number = PurePosixPath(name).name.partition("_")[0]
            fresh = f"`labs reset {number}` shows its newer form, and keeps yours in old/"
            self.lines.append(f"{name}: the course changed {', '.join(both)}, too: yours stays; {fresh}.")

    def _remove(self, name, current):
        """A file that is no longer part of the course goes, but for the student's own work."""
        own = current is not None and digest(current) != self.now.files[name]
        if own and filled_in(name):
            self.lines.append(f"{name}: no longer part of the course; yours stays.")
        elif own:
            self.lines.append(f"{name}: no longer part of the course; your version is in {self._keep(name)}.")
        if not (own and filled_in(name)):
            self.changes.append(("Removed", name))
            self.remove.append(name)
        self.remove.append(FRESH + name)

    def summary(self):
        """The lines on what changed as a whole."""
        lines = [f"{what}: {few(names)}." for what, names in sorted(grouped(self.changes).items())]
        if any(name in ("pyproject.toml", "uv.lock") or name.startswith("setup/") for name in self.write):
            lines.append("The packages may have changed: `make lab` installs what is new.")
        if any(name.endswith(".ipynb") for _, name in self.changes):
            lines.append("Close the notebooks that are open in JupyterLab without saving, and open them again.")
        return lines

    def carry_out(self):
        """Change the course. Raises files.WriteError, before anything was replaced, where the disk is full."""
        ready = self.root / FOLDER / "next"
        try:
            for number, content in enumerate(self.write.values()):
                files.write(ready / str(number), content)
            for name in self.backups:
                backup.keep(self.root, name)
            for number, name in enumerate(self.write):
                if name == STAMP:  # the last one
                    for removed in self.remove:
                        (self.root / removed).unlink(missing_ok=True)
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(ready / str(number), self.root / name)  # also to another disk
        finally:
            shutil.rmtree(ready, ignore_errors=True)
