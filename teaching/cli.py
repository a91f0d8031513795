"""The `teach` command, for instructors and authors: the course built from its sources, released and graded.

Every command is a function behind its options; its docstring is its help. What it needs is imported when it runs, so
that `teach --help` is quick.
"""

from pathlib import Path

from labs.command_line import CommandLine, option, say
from labs.errors import UseError
from labs.printed import printable

TEACH = CommandLine(
    "teach", "From the course's sources to notebooks, a release, points and feedback; in the course's folder."
)
command, main = TEACH.command, TEACH.main


def _course():
    """The course's folder, with its sources: this one, or the first above it. Raises UseError."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "solutions").is_dir() and (folder / "teaching").is_dir():
            return folder
    raise UseError(f"{here} is in no course with its sources (solutions/): go to a clone of its repository.")


@command(
    "build",
    option("names", nargs="*", help="such as 05_resnet50_scaling (default: all)"),
    option("--check", action="store_true", help="only say whether all generated files are up to date"),
    option("--force", action="store_true", help="execute also what did not change"),
    option("--no-execute", action="store_true", help="all but the executed notebooks"),
    option("--student", metavar="DIR", help="write the tree that students get"),
)
def _build(args):
    """Notebooks, scripts and batch scripts from their sources in solutions/."""
    from teaching.author import build, students

    root = _course()
    if args.check:
        problems = build.check(root, args.names)
        if not problems:
            print(f"Sources and generated files agree. The practical has {build.words(root, 'practical'):,} words.")
        print(*problems, sep="\n", end="\n" if problems else "")
        return 1 if problems else 0
    if args.student:
        students.student_tree(root, args.student)
        print(f"The tree for students is in {args.student}.")
    else:
        build.build(root, names=args.names or None, execute=not args.no_execute, force=args.force)
    return 0


@command("site", option("out", metavar="DIR", help="folder of the pages"))
def _site(args):
    """The course as web pages: DIR/students, and with the solutions DIR/instructors."""
    from teaching.author import web

    web.build(_course(), args.out)
    print(*(f"{args.out}/{edition}/index.html" for edition in web.EDITIONS))


@command(
    "release",
    option("--out", required=True, metavar="ZIP", help="the file to write, such as course.zip"),
    option("--site", metavar="ID", help="the one site, besides local, whose files go along (default: all)"),
    option("--notebooks", metavar="NN-NN,NN", help="such as 00-05,11, or a path: afternoon, practical (default: all)"),
    option("--no-criteria", action="store_true", help="without what a good answer contains"),
)
def _release(args):
    """What students get of the course, in one zip."""
    from teaching.grading import release

    given = release.release(_course(), args.out, args.site, args.notebooks, criteria=not args.no_criteria)
    print(f"Wrote {args.out}: no line of a solution is in it. Notebooks:", *(Path(name).stem for name in given))


@command(
    "collect",
    option("source", metavar="FROM", help="a folder with them, or the zip that Moodle or Canvas exports"),
    option("--out", default="grades", help="folder of the grading (default: grades)"),
)
def _collect(args):
    """Brings submissions together under numbers; says what was damaged, double or left out."""
    from teaching.grading import collect

    print(*collect.collect(args.source, args.out), sep="\n")


@command(
    "check",
    option("--notebooks", nargs="+", metavar="NAME", help="those given out (default: as before, or all but optional)"),
    option("--no-run", action="store_true", help="do not run anything that students wrote"),
    option("--out", default="grades", help="folder of the grading (default: grades)"),
)
def _check(args):
    """Looks at every submission: evidence, numbers, and the checks again in the sandbox; finished ones stay."""
    from labs import sandbox
    from teaching.grading import check

    if not args.no_run and (missing := sandbox.sandbox_missing()):
        print(f"Nothing of the students' is run, since there is no sandbox: {missing}. All else is looked at.")
    count = check.check(args.out, _course(), args.notebooks, execute=not args.no_run, report=say)
    print(f"{count} looked at; the others are as they were. `teach out` says what is left to you.")


@command("desk", option("--out", default="grades", help="folder of the grading (default: grades)"))
def _desk(args):
    """Writes the notebook in which written answers are graded by keyboard."""
    from teaching.grading import desk

    print(f"Wrote {desk.write(args.out)}: open it in JupyterLab.")


@command(
    "mark",
    option("number", metavar="NUMBER", help="of the submission, as 007"),
    option("item", nargs="?", metavar="ITEM", help="of the rubric, as T5.1, or the id of a check"),
    option("share", nargs="?", type=float, metavar="SHARE", help="from 0 to 1; ITEM alone takes the mark back"),
    option("--comment", action="append", default=[], metavar="TEXT", help="an id of the comment bank, or a text"),
    option("--confirm", action="append", default=[], metavar="KIND", help="a kind of finding that is true"),
    option("--sentence", metavar="TEXT", help="with --confirm: all that the student reads of it"),
    option("--dismiss", action="append", default=[], metavar="KIND", help="a kind of finding that means nothing"),
    option("--reopen", action="append", default=[], metavar="KIND", help="a kind of finding, to be decided again"),
    option("--out", default="grades", help="folder of the grading (default: grades)"),
)
def _mark(args):
    """Keeps what a person decides of a submission, and prints all that is kept of it; findings reach no student
    before."""
    from teaching.grading import collect, marks
    from teaching.grading.graded import Graded

    out, number, graded = args.out, args.number, Graded(args.out)
    collect.submission(out, number)
    if args.sentence and not args.confirm:
        raise UseError("--sentence says what a student reads of a finding: name the kind with --confirm.")
    for kinds, state in ((args.confirm, "confirmed"), (args.dismiss, "dismissed"), (args.reopen, None)):
        if kinds:
            marks.decide(out, number, graded.found.get(number), kinds, state, args.sentence or "")
    if args.item or args.comment:
        item = None if args.comment and args.share is None else args.item  # without a share, its mark stays
        marks.mark(out, number, graded.rules, item, args.share, args.comment)
    kept = marks.load(out).get(number, marks.Marks())
    print(f"Kept of {number}:", *map(printable, [*kept.lines()] or ["nothing"]), sep="\n  ")


@command(
    "pin",
    option("check", nargs="?", metavar="CHECK", help="its id"),
    option("comment", nargs="?", metavar="COMMENT", help="what all who made the mistake read"),
    option("--of", metavar="NUMBER", help="a submission with the mistake that is meant, where there are several"),
    option("--out", default="grades", help="folder of the grading (default: grades)"),
)
def _pin(args):
    """Pins a comment to a mistake, for all who made it; without CHECK, lists the mistakes by how many made them."""
    from teaching.grading import pins
    from teaching.grading.graded import Graded

    found = Graded(args.out).found
    if args.comment is not None:
        made = pins.add(args.out, found, args.check, args.comment, args.of)
        print(f"Pinned to {args.check}. It reaches {len(made.numbers)}: {', '.join(made.numbers)}.")
        return
    for each in pins.mistakes(found):
        if args.check in (None, each.check):
            say(f"{len(each.numbers)} x {each.check} ({', '.join(each.numbers)}): {' '.join(each.hint.split())}")


@command(
    "out",
    option("--worksheet", metavar="FILE", help="Moodle's worksheet or Canvas' gradebook: a copy gets the points"),
    option("--column", metavar="NAME", help="its column for the points, where several could be it"),
    option("--out", default="grades", help="folder of the grading (default: grades)"),
)
def _out(args):
    """Writes grades.csv, feedback for each student, the overview, and what Moodle or Canvas takes back; says whose
    points moved."""
    from teaching.grading import results

    print(*map(printable, results.write(args.out, args.worksheet, args.column)), sep="\n")


@command("oral", option("--out", default="grades", help="folder of the grading (default: grades)"))
def _oral(args):
    """Three questions for a talk with each student, drawn from their own records and scripts; nothing is judged by
    them."""
    from teaching.grading import oral

    print(*oral.write(args.out, _course()), sep="\n")
