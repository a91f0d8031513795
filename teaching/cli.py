"""The `teach` command, for instructors and authors: the course built from its sources, released and graded.

Every command is a function behind its options; its docstring is its help. What it needs is imported when it runs, so
that `teach --help` is quick.
"""

import os
import sys
from pathlib import Path

from labs.command_line import CommandLine, option, say, whole_from
from labs.errors import UseError
from labs.printed import printable, several

TEACH = CommandLine(
    "teach", "From the course's sources to notebooks, a release, points and feedback; in the course's folder."
)
command, main = TEACH.command, TEACH.main
_PATH = option("--path", metavar="PATH", help="a way through the course: afternoon, practical or everything")
_NOTEBOOKS = option("--notebooks", metavar="NN-NN,NN", help="instead of a path, such as 00-05,11")
_GRADES = option("--out", default="grades", metavar="DIR", help="folder of the grading (default: grades)")


def _course():
    """The course's folder, with its sources: this one, or the first above it. Raises UseError."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "solutions").is_dir() and (folder / "teaching").is_dir():
            return folder
    raise UseError(f"{here} is in no course with its sources (solutions/): go to a clone of its repository.")


@command(
    "release",
    _PATH,
    _NOTEBOOKS,
    option("--out", default="course.zip", metavar="ZIP", help="the file to write (default: course.zip)"),
)
def _release(args):
    """Writes course.zip, what students get, and says how many points it has."""
    from teaching.grading import release, rubric

    names = release.release(_course(), args.out, release.chosen(args.path, args.notebooks))
    most, written = rubric.most_of(names)
    print(f"Wrote {args.out}: no line of a solution is in it. Notebooks: {' '.join(names)}")
    print(f"{most:g} points, {written:g} of them for written answers; optional notebooks are not counted.")
    print("The assignment's maximum on the platform may be another one, as 100: `teach out --worksheet` scales to it.")


@command(
    "in",
    option("source", nargs="?", metavar="EXPORT", help="a platform's zip, or a folder (default: those from before)"),
    _PATH,
    _NOTEBOOKS,
    option("--no-run", action="store_true", help="do not run anything that students wrote"),
    option("--jobs", type=whole_from(1), metavar="N", help="submissions checked at a time (default: one a core)"),
    _GRADES,
)
def _in(args):
    """Collects submissions, checks each in the sandbox, and says what is left to you. What was checked before stays as
    it is. Notebooks that count: those named, else as before, else those of the release."""
    from labs import devices, sandbox
    from teaching.grading import check, collect, overview, release
    from teaching.grading.graded import Graded

    root, names = _course(), release.chosen(args.path, args.notebooks)
    say(f"This machine: {several(devices.cores(), 'core')}, {devices.memory() / 2**30:.1f} GiB of memory free.")
    if not args.no_run and (missing := sandbox.sandbox_missing()):
        say(f"No sandbox, so nothing that students wrote is run; all else is checked. The reason: {missing}.")
    if args.source:
        lost = [line for line in collect.collect(args.source, args.out) if not line.endswith(": complete")]
        print(*lost, sep="\n", end="\n" * bool(lost))
        say(f"{several(len(collect.submissions(args.out)), 'submission')} collected.")
    count = check.check(args.out, root, names, execute=not args.no_run, report=say, jobs=args.jobs)
    print(f"{several(count, 'submission')} checked; the others are as they were. What is left to you:")
    graded = Graded(args.out)
    print(*([*map(printable, overview.still_open(graded, graded.all_lines()))] or ["nothing."]), sep="\n")


@command("desk", _GRADES)
def _desk(args):
    """Opens JupyterLab, where you grade written answers and decide what is open, by keyboard."""
    from teaching.grading import desk, rubric

    rubric.load(args.out)
    path = desk.write(args.out)
    if "JUPYTER_SERVER_ROOT" in os.environ or not sys.stdout.isatty():
        print(f"Wrote {path}: open it in JupyterLab (`make lab` starts one), and run its cell.")
        return
    say(f"JupyterLab starts with {path}: run its cell. Ctrl-C in this terminal stops it.")
    os.execv(sys.executable, [sys.executable, "-m", "jupyter", "lab", str(path)])


@command(
    "out",
    option("--worksheet", metavar="FILE", help="Moodle's worksheet or Canvas' gradebook: a copy gets the points"),
    option("--column", metavar="NAME", help="its column for the points, where several could be it"),
    option("--oral", action="store_true", help="also three questions for a talk with each student: oral.pdf"),
    _GRADES,
)
def _out(args):
    """Writes points, feedback for each student, and what a platform takes back; says what is open, and whose."""
    from teaching.grading import oral, results

    root = _course() if args.oral else None
    lines = results.write(args.out, args.worksheet, args.column)
    if root:
        lines += oral.write(args.out, root)
    print(*map(printable, lines), sep="\n")


@command(
    "build",
    option("names", nargs="*", help="such as 05_resnet50_scaling (default: all)"),
    option("--check", action="store_true", help="only say whether all generated files are up to date"),
    option("--force", action="store_true", help="execute also what did not change"),
    option("--no-execute", action="store_true", help="all but the executed notebooks"),
)
def _build(args):
    """For authors: notebooks, scripts and batch scripts from their sources in solutions/."""
    from teaching.author import build

    root = _course()
    if args.check:
        problems = build.check(root, args.names)
        agree = f"Sources and generated files agree. The practical has {build.words(root, 'practical'):,} words."
        print(*(problems or [agree]), sep="\n")
        return 1 if problems else 0
    build.build(root, names=args.names or None, execute=not args.no_execute, force=args.force)
    return 0


@command("site", option("out", metavar="DIR", help="folder of the pages"))
def _site(args):
    """For authors: the course as web pages, DIR/students, and with the solutions DIR/instructors."""
    from teaching.author import web

    web.build(_course(), args.out)
    print(*(f"{args.out}/{edition}/index.html" for edition in web.EDITIONS))
