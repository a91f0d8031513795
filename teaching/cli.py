"""The `teach` command, for instructors and authors: the course built from its sources, released and graded.

Every command is a function; its docstring is its help, and cli.toml has its options. What it needs is imported when it
runs, so that `teach --help` is quick.
"""

from pathlib import Path

from labs import files
from labs.command_line import CommandLine, say
from labs.errors import UseError
from labs.printed import printable

TEACH = CommandLine(
    "teach",
    "From the course's sources to notebooks, a release, points and feedback; in the course's folder.",
    files.beside(__file__),
)
command, main = TEACH.command, TEACH.main


def _course():
    """The course's folder, with its sources: this one, or the first above it. Raises UseError."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "solutions").is_dir() and (folder / "teaching").is_dir():
            return folder
    raise UseError(f"{here} is in no course with its sources (solutions/): go to a clone of its repository.")


@command("build")
def _build(args):
    """Notebooks from their sources in solutions/."""
    from teaching.author import build, students

    root = _course()
    if args.check:
        return _told(build.check(root, args.names), "Sources and generated files agree.")
    if args.student:
        students.student_tree(root, args.student, holds=not args.no_holds)
        print(f"The tree for students is in {args.student}.")
    else:
        build.build(root, names=args.names or None, execute=not args.no_execute, force=args.force)
    return 0


@command("render")
def _render(args):
    """Batch scripts slurm/<site>/*.sh from solutions/slurm and slurm/sites."""
    from teaching.author import render

    root = _course()
    if args.check:
        return _told(render.check(root), "Batch scripts, sources and sites agree.")
    render.write(root, render.scripts(root))
    return 0


@command("site")
def _site(args):
    """The course as web pages: DIR/students, and with the solutions DIR/instructors."""
    from teaching.author import web

    web.build(_course(), args.out)
    print(*(f"{args.out}/{edition}/index.html" for edition in web.EDITIONS))


@command("release")
def _release(args):
    """What students get of the course, in one zip, and beside it the same as web pages."""
    from labs.checks import tasks
    from teaching.grading import release

    if args.path and args.notebooks:
        raise UseError("--path and --notebooks both say which notebooks: give one of them.")
    path = args.path and ",".join(lesson.notebook.partition("_")[0] for lesson in tasks.on_path(args.path))
    root = _course()
    given = release.release(root, args.out, args.site, path or args.notebooks, criteria=not args.no_criteria)
    print(f"Wrote {args.out}: no line of a solution is in it. Notebooks:", *(Path(name).stem for name in given))
    if not args.no_web:
        print(release.pages(root, args.out, given))


@command("collect")
def _collect(args):
    """Brings submissions together under numbers; says what was damaged, late, double or left out."""
    from teaching.grading import collect, worksheet

    due, sheet = collect.moment(args.due), args.worksheet and worksheet.of_hand_ins(args.worksheet, args.column)
    print(*collect.collect(args.source, args.out, due, sheet), sep="\n")


@command("check")
def _check(args):
    """Looks at every submission: evidence, numbers, and the checks again in the sandbox; finished ones stay."""
    from labs import sandbox
    from teaching.grading import check
    from teaching.grading.graded import Graded

    if not args.no_run and (missing := sandbox.sandbox_missing()):
        print(f"Nothing of the students' is run, since there is no sandbox: {missing}. All else is looked at.")
    count = check.check(args.out, _course(), args.notebooks, execute=not args.no_run, report=say)
    print(*map(printable, check.left_open(Graded(args.out).found)), sep="\n")
    print(f"{count} looked at; the others are as they were.")


@command("rerun")
def _rerun(args):
    """Trains a student's script again, small and in the sandbox; compares speedup and loss with what was handed in."""
    from teaching.grading import rerun

    print(*map(printable, rerun.rerun(args.out, args.number, args.task, report=say)), sep="\n")


@command("desk")
def _desk(args):
    """Writes the notebook in which written answers are graded by keyboard."""
    from teaching.grading import desk

    print(f"Wrote {desk.write(args.out)}: open it in JupyterLab.")


@command("mark")
def _mark(args):
    """Keeps what a person decides of a submission, and prints all that is kept of it; findings reach no student
    before."""
    from teaching.grading import collect, disputes, marks
    from teaching.grading.graded import Graded

    out, number, graded = args.out, args.number, Graded(args.out)
    path = collect.submission(out, number)
    if args.sentence and not args.confirm:
        raise UseError("--sentence says what a student reads of a finding: name the kind with --confirm.")
    if args.answer and not args.item:
        raise UseError("--answer needs the ITEM that the student disputes: `teach out` names it.")
    for kinds, state in ((args.confirm, "confirmed"), (args.dismiss, "dismissed"), (args.reopen, None)):
        if kinds:
            marks.decide(out, number, graded.found.get(number), kinds, state, args.sentence or "")
    if args.answer:
        marks.reply(out, number, args.item, args.answer, disputes.of(collect.contents(path)))
    back = args.item and args.share is None and not (args.answer or args.comment)
    if args.share is not None or args.comment or back:
        item = args.item if args.share is not None or back else None
        marks.mark(out, number, graded.rules, item, args.share, args.comment)
    kept = marks.load(out).get(number, marks.Marks())
    print(f"Kept of {number}:", *map(printable, [*kept.lines()] or ["nothing"]), sep="\n  ")


@command("pin")
def _pin(args):
    """Pins a comment to a mistake, for all who made it; without CHECK, lists the mistakes by how many made them."""
    from teaching.grading import pins
    from teaching.grading.graded import Graded

    found = Graded(args.out).found
    if args.comment is not None:
        made = pins.add(args.out, found, args.check, args.comment, args.of, args.share)
        print(f"Pinned to {args.check}. It reaches {len(made.numbers)}: {', '.join(made.numbers)}.")
        return
    for each in pins.mistakes(found):
        if args.check in (None, each.check):
            say(f"{len(each.numbers)} x {each.check} ({', '.join(each.numbers)}): {' '.join(each.hint.split())}")


@command("out")
def _out(args):
    """Writes grades.csv, feedback for each student, the overview, and what Moodle or Canvas takes back; says whose
    points moved."""
    from teaching.grading import results

    print(*map(printable, results.write(args.out, args.worksheet, args.column)), sep="\n")


@command("oral")
def _oral(args):
    """Three questions for a talk with each student, drawn from their own records and scripts; nothing is judged by
    them."""
    from teaching.grading import oral

    print(*oral.write(args.out, _course(), args.seed), sep="\n")


def _told(problems, none):
    """Print problems, one line each, or that there are none; returns the exit code."""
    print("\n".join(problems) or none)
    return 1 if problems else 0
