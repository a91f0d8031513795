"""Going on: a newer release over a course that has begun.

The whole release is read and checked, and all that will change is planned, before anything is written. Then the new
files are laid ready in .release/next, what is replaced is kept in old/, and the new files are moved into place; the
stamp comes last. So an update that was interrupted anywhere is finished by running it again.
"""

import contextlib
import errno
import os
import shutil
import signal
from pathlib import Path, PurePosixPath

from labs import files
from labs.course import aside, notebooks, release
from labs.course.release import FOLDER, FRESH, STAMP, CourseError, digest, filled_in
from labs.printed import few, grouped

_PACKAGES = {"pyproject.toml", "uv.lock", ".python-version"}
_NEXT = f"{FOLDER}/next"


def update_course(root: Path, source: str | Path, older: bool = False, dry_run: bool = False) -> list[str]:
    """Bring a course to a newer release; returns what changed, as lines.

    root: the course's folder
    source: the release, a zip or a folder
    older: whether it may also be older than the course
    dry_run: whether only to say what would change

    Raises CourseError, before anything is written: no release, damaged, not to be trusted, older than the course (but
    with `older`). Raises files.WriteError where the disk is full, then run it again; or where another command is
    changing the course.
    """
    root, source = Path(root), Path(source)
    if not release.is_release(root):
        raise CourseError(f"{root} is the authors' checkout, not a release: `git pull` brings what is new.")
    if source.is_dir() and source.resolve() == root.resolve():
        raise CourseError(f"{source} is this course itself: name the newer release, a zip or a folder.")
    new = release.load(source)
    with contextlib.nullcontext() if dry_run else aside.alone(root):
        return _updated(root, source, new, older, dry_run)


def _updated(root, source, new, older, dry_run):
    now = release.stamp_of(root)
    if new.stamp.age() < now.age() and not older:
        raise CourseError(f"{source} is {new.stamp}, older than this course ({now}); to go back to it add --older.")
    plan = _Plan(root, now, new)
    if not dry_run:
        _do(root, plan)
    if not plan.said and now == new.stamp:
        return [f"This course is {now} already."]
    return [f"{'Would update' if dry_run else 'Updated'} from {now} to {new.stamp}.", *plan.said]


class _Plan:
    """What leads from a course, whose stamp is `now`, to the Release `new`, by paths below the course's folder.

    write: {path: bytes}, in order; remove: paths; aside: {path of the copy in old/: bytes}; said: lines for the student
    """

    def __init__(self, root, now, new):
        self.root, self.now, self.new = root, now, new
        self.write, self.remove, self.aside, self.said = {}, [], {}, []
        self.kit, self.lessons, self.scripts = [], [], []  # (what happened to it, name)
        renamed = _renamed(now, new.stamp)
        for name, content in sorted(new.files.items()):
            if not filled_in(name):
                self._kit(name, content)
            elif name.endswith(".ipynb"):
                self._notebook(name, renamed.get(name, name), content)
            else:
                self._script(name, content)
        for name in sorted(set(now.files) - set(new.files) - set(renamed.values())):
            self._removed(name)
        for name, content in release.stamped(new.stamp.version, new.stamp.date, new.files).items():
            if self._there(name) != content:
                self.write[name] = content
        gone = {FRESH + name for name in now.files if filled_in(name) and name not in new.files}
        self.remove += sorted(name for name in gone if (root / name).is_file())
        self._sum_up()

    def _there(self, name):
        """Bytes of a file of the course, or None. Raises CourseError where a file cannot be put there."""
        path = self.root / name
        above = next((folder for folder in reversed(path.parents) if folder.exists() and not folder.is_dir()), None)
        if above or (path.exists() and not path.is_file()):
            raise CourseError(f"{above or path} is in the way of {name}: move it elsewhere and try again.")
        try:
            return path.read_bytes() if path.exists() else None
        except OSError as problem:
            raise CourseError(f"{path} cannot be read: {problem.strerror}. Nothing was changed.") from None

    def _keep(self, name, content):
        """Plan a copy in old/; returns its path."""
        kept = aside.place(self.root, name, content, self.aside)
        self.aside[kept] = content
        return kept

    def _kit(self, name, content):
        old = self._there(name)
        if old == content:
            return
        self.kit.append(("replaced" if old is not None else "new", name))
        if old is not None and digest(old) != self.now.files.get(name):
            self.said.append(f"{name}: you had changed it; now it is the course's, yours is {self._keep(name, old)}.")
        self.write[name] = content

    def _script(self, name, content):
        """A student's script stays; its newer form is put beside it if that has changed."""
        old, before = self._there(name), self.now.files.get(name)
        if old == content:
            return
        if old is None or digest(old) == before:
            self.scripts.append(("new" if old is None else "in another form, not begun by you", name))
            self.write[name] = content
        elif before != self.new.stamp.files[name]:
            path = PurePosixPath(name)
            beside = path.with_name(f"{path.stem}_new{path.suffix}").as_posix()
            other = self._there(beside)
            if other != content:
                kept = other is not None and digest(other) != before and self._keep(beside, other)
                self.write[beside] = content
                was = f"; what was there is {kept}" if kept else ""
                self.said.append(f"{name}: yours stays; the new form is {beside}{was}.")

    def _notebook(self, name, before, content):
        """A student's notebook is carried into its newer form; `before` is its name in the course so far."""
        old, there, base = self._there(before), self._there(name), self._there(FRESH + before)
        result, kept, text = None, None, content
        if old is None:
            self.lessons.append(("new", name))
        elif digest(old) not in (self.now.files.get(before), self.new.stamp.files[name]):
            try:
                result = notebooks.carry(base or b"", old, content)
                text = result.text
            except ValueError as problem:
                why = f"cannot be read as a notebook ({problem})" if base else "cannot be compared with the course's"
                self.said.append(f"{name}: replaced by the course's. Yours {why}; it is in {self._keep(before, old)}.")
        if old is not None and not (base and notebooks.same(base, content)):
            self.lessons.append(("changed", name))
        if result and (result.lossy or name != before):
            kept = self._keep(before, old)
        if there not in (None, old, text):
            self._keep(name, there)
        if before != name and old is not None:
            self.remove.append(before)
            self.said.append(f"{before} is called {name} now.")
        if text != there:
            self.write[name] = text
        if result:
            self._say(name, result, kept)

    def _say(self, name, result, kept):
        number = PurePosixPath(name).name.partition("_")[0]
        gone, joined, both = (", ".join(of) for of in (result.gone, result.joined, result.both))
        was = f" (as it was: {kept})" if kept else ""
        fresh = f"`labs reset {number}` shows its newer form, and keeps yours in {aside.FOLDER}/"
        told = {
            f"there is no longer a place for {gone}; {kept} holds it": gone,
            f"your work and the course's change stand together in {joined}; look at them{was}": joined,
            f"the course changed {both}, too: yours stays; {fresh}": both,
            f"outputs of cells that changed are in {kept}": result.lossy and not (gone or joined or both),
        }
        self.said += [f"{name}: {said}." for said, holds in told.items() if holds]

    def _removed(self, name):
        """A file that is no longer part of the course."""
        old = self._there(name)
        if old is None:
            return
        base = self._there(FRESH + name) if filled_in(name) else None
        own = digest(old) != self.now.files[name]
        if filled_in(name) and own and not (base and notebooks.same(base, old)):
            self.said.append(f"{name}: no longer part of the course; yours stays.")
            return
        self.remove.append(name)
        self.kit.append(("removed", name))
        if own:
            self.said.append(f"{name}: no longer part of the course; your version is in {self._keep(name, old)}.")

    def _sum_up(self):
        """The lines on what changed as a whole, in front of those on single files."""
        lines = [f"Notebooks {what}: {few(names, 6)}." for what, names in grouped(self.lessons).items()]
        lines += [f"Scripts {what}: {few(names, 6)}." for what, names in grouped(self.scripts).items()]
        if kit := ", ".join(f"{len(names)} {what}" for what, names in grouped(self.kit).items()):
            lines.append(f"The kit's own files: {kit}.")
        self.said = lines + self.said
        if any(name in _PACKAGES or name.startswith("setup/") for name in self.write):
            self.said.append("The packages may have changed: `make lab` installs what is new.")
        if any(name.startswith("notebooks/") and name.endswith(".ipynb") for name in self.write):
            self.said.append("Close the notebooks that are open in JupyterLab without saving, and open them again.")


def _renamed(now, new):
    """{new name: old name} of notebooks that kept their number and got another name."""

    def numbered(one, other):
        names = [name for name in one.files if name not in other.files and name.endswith(".ipynb")]
        return grouped((PurePosixPath(name).name.partition("_")[0], name) for name in names if filled_in(name))

    lost, added = numbered(now, new), numbered(new, now)
    pairs = {name: lost.get(number, []) for number, names in added.items() for name in names}
    return {name: old[0] for name, old in pairs.items() if len(old) == 1}


def _do(root, plan):
    """Carry out a plan. Raises files.WriteError."""
    ready = root / _NEXT
    shutil.rmtree(ready, ignore_errors=True)
    try:
        for number, (name, content) in enumerate(plan.write.items()):
            files.write(ready / str(number), content)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
        for kept, content in plan.aside.items():
            aside.keep(root, kept, content)
        with _undisturbed():
            for number, (name, content) in enumerate(plan.write.items()):
                if name == STAMP:  # the last one
                    _remove(root, plan.remove)
                try:
                    os.replace(ready / str(number), root / name)
                except OSError as problem:
                    if problem.errno != errno.EXDEV:  # a folder of the course may be a link to another disk
                        raise
                    files.write(root / name, content)
    except files.WriteError:
        raise
    except OSError as problem:
        raise files.WriteError(problem.errno, problem.strerror or str(problem), str(problem.filename)) from None
    finally:
        shutil.rmtree(ready, ignore_errors=True)


def _remove(root, names):
    for name in names:
        (root / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            (root / name).parent.rmdir()  # if it is empty now


@contextlib.contextmanager
def _undisturbed():
    """Interrupts wait until this is over: `labs` itself is being replaced."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
