"""The `labs` command: a thin layer over the rooms. Exit code 0: done, 1: found a problem, 2: wrong use.

Every command is a function; its docstring is its help, and cli.toml has its options. What it needs is imported when it
runs, so that `labs --help` is quick and a student's tree works without the author's room.
"""

import argparse
import contextlib
import dataclasses
import errno
import functools
import importlib.util
import os
import re
import signal
import sys
from pathlib import Path

from labs import files
from labs.errors import LabsError, UseError
from labs.printed import as_json, printable

_OPTIONS = files.beside(__file__)
COMMANDS = {}  # (words of the command, one or two): (function, what it does, {option: its settings})
GROUPS = {
    "slurm": "Batch scripts of a site: make, check, sites.",
    "grade": "From what students handed in to points and feedback (for instructors).",
}
MOST = 10**9  # of anything that is counted here; more is a mistake in typing


def command(words):
    """Decorator: the function, which takes the options and returns the exit code (None is 0), becomes `labs WORDS`.

    Its docstring is what `--help` says.
    """

    def register(function):
        options = _OPTIONS.get(words, {}) | _OPTIONS.get(words.split()[0], {})
        COMMANDS[tuple(words.split())] = function, " ".join(function.__doc__.split()), options
        return function

    return register


@command("doctor")
def _doctor(args):
    """What is here, what mode follows, what to fix."""
    from labs import doctor

    rows = doctor.look()
    if not doctor.broken():
        from labs import course
        from labs.slurm import sites

        if args.bundle is not None:
            path = course.write_question(args.bundle or None)
            print(f"Wrote {path}. Names of people and machines and paths are replaced; read it before you send it.")
            return 0
        rows += doctor.settings(sites.names())
    print(as_json(rows) if args.json else doctor.text(rows))
    return 1 if any(row["fix"] for row in rows) else 0


@command("study")
def _study(args):
    """Measure models on several numbers of workers: records, table, plots."""
    from labs import presets
    from labs.measure import study
    from labs.results import collect

    sizes = _of(args, "repeats epochs local_batch dataset images image_size")
    given = {name: value for name, value in sizes.items() if value is not None}
    plan = dataclasses.replace(presets.choose(args.preset), **given)
    asked = _of(args, "models workers strategy launcher out fresh seed twice")
    paths = study.run(plan, **asked, report=lambda text: print(text, file=sys.stderr if args.json else sys.stdout))
    paths, again = (paths[:-2], paths[-2:]) if args.twice else (paths, [])
    found = again and study.itself(again)
    rows = collect.rows(paths)
    pictures = [str(path) for path in study.draw(rows, args.out)]
    told = study.verdicts(paths, found and found[1] or 0.0)
    said = "".join(f"\nIs the difference on {each['workers']} workers real? {each['verdict']}" for each in told)
    table = "\n".join([collect.table(rows) + said, *(study.believed(rows, found) if found else [])])
    files.write(Path(args.out, "table.txt"), table + "\n")
    if args.json:
        verdicts = [each | {"verdict": vars(each["verdict"])} for each in told]
        told = {"runs": rows, "records": [*map(str, paths + again)], "plots": pictures, "verdicts": verdicts}
        told |= {"itself": {"ratio": found[0].value, "interval": found[0].interval, "floor": found[1]}} if found else {}
        print(as_json(told, indent=None))
    else:
        print(table)
        print("Plots:", *pictures)


@command("compare")
def _compare(args):
    """Two commands, or one in two commits of git, in turns: the ratio of their seconds, and whether it is real."""
    from labs.measure import compare

    print(*compare.run(args.first, args.second, args.command, args.rounds, report=_say), sep="\n")


@command("results")
def _results(args):
    """Logs and records to epoch time, throughput, speedup, efficiency."""
    from labs.results import collect

    rows = collect.rows(args.files, **_of(args, "images model workers global_batch same_machine"))
    print(as_json({"runs": rows}) if args.json else collect.table(rows))


@command("why")
def _why(args):
    """Why a job stands still: where each rank is, who waits for whom; the job goes on."""
    from labs import jobs
    from labs.jobs import standing
    from labs.results import standstill

    runs = Path(args.runs) if args.runs else jobs.folder()
    stems = [stem for stem in (runs / args.job, runs / f"{args.job}_local") if standing.files(stem)]
    with contextlib.suppress(jobs.JobError):
        stems = stems or [jobs.find(args.job, runs).stem]  # a job of SLURM's
    ranks = standing.ranks(stems[0] if stems else runs / args.job)
    print(as_json(ranks) if args.json else standstill.screen(args.job, ranks))
    return 1 if standstill.stuck(ranks) else 0


@command("maxbatch")
def _maxbatch(args):
    """Largest batch size that fits into memory, with evidence."""
    from labs.measure import maxbatch

    result = maxbatch.search(args.model, **_of(args, "image_size memory bisect start limit"), runs=args.out)
    print(as_json(result) if args.json else maxbatch.table(result))


@command("allreduce")
def _allreduce(args):
    """Latency and bandwidth of this machine's all-reduce, by real ranks."""
    from labs.measure import allreduce

    return allreduce.run(args)


@command("predict")
def _predict(args):
    """What a training would take on another machine, with intervals."""
    from labs.costs import command

    return command.run(args)


@command("slurm render")
def _slurm_render(args):
    """Slurm/<site>/*.sh from solutions/slurm and slurm/sites."""
    from labs.slurm import sites

    root = sites.find_root()
    _needs_sources(root, "solutions/slurm", "the batch scripts", "slurm/<site>/")
    from labs.author import render

    if args.check:
        return _told(render.check(root), "Batch scripts, sources and sites agree.")
    render.write(root, render.scripts(root))
    return 0


@command("slurm check")
def _slurm_check(args):
    """What sbatch sees in a batch script, and what it does not."""
    from labs.slurm import check, sites

    folder = Path(args.file).resolve().parent.name
    site = args.site or (folder if folder in sites.names() else sites.default())
    return check.report_on_script(args.file, sites.load(site), args.json)


@command("slurm sites")
def _slurm_sites(args):
    """The sites, one line each."""
    from labs.slurm import sites

    found = [sites.load(id) for id in sites.names()]
    if args.json:
        print(as_json([dict(site) | {"personal": sorted(site.personal)} for site in found]))
        return
    for site in found:
        mark = "*" if site.id == sites.default() else " "
        size = f"{site.gpus} GPUs and {site.cpus} CPUs a node, by {site.launcher}"
        print(f"{mark} {site.id:<16} {site.name}: {size}; {site.about}")
    print("* is the one in use; another: export LABS_SITE=<site>")


@command("reset")
def _reset(args):
    """A fresh notebook or script; the old one is kept in old/."""
    from labs import course

    root = course.find_course()
    if _has_sources(root):  # the authors' checkout, where all of it is made anew
        from labs.author import students

        fresh = {name: text.encode for name, text in students.generated(root).items() if course.filled_in(name)}
    else:
        fresh = course.fresh_files(root)
    print(*course.reset_files(root, args.names, fresh, args.progress), sep="\n")


@command("update")
def _update(args):
    """A newer release of the course; your answers, scripts and runs stay."""
    from labs import course

    print(*course.update_course(course.find_course(), args.release, args.older, args.dry_run), sep="\n")


@command("report")
def _report(args):
    """The report on all tasks: report.pdf, report.json, and submission.zip to hand in."""
    from labs import report

    made = report.make(args.out, start=args.folder, **_of(args, "runs name machine appendix"))
    if args.json:
        print(as_json(made.report.model_dump(mode="json")))
        return
    print(f"Wrote {made.pdf}, {made.json} and {made.zip}. Hand in {made.zip.name}; look at the report first.")
    found = [f"{each.task}, {each.kind}: {each.text}" for each in made.report.findings]
    for head, lines in (("Missing:", made.report.missing), ("What the evidence does not carry:", found)):
        if lines:
            print(head, *map(printable, lines), sep="\n- ")


@command("dispute")
def _dispute(args):
    """Disputes the points of a question. Your reason goes with the next report, and a person answers it."""
    from labs.checks import dispute
    from labs.report import course

    runs = course.look(".", args.runs).runs
    if args.task is None:
        every = dispute.kept(runs)
    else:
        every = dispute.keep(runs, args.task, None if args.withdraw else args.reason or "")
        print("Kept. Now make the report (`labs report`) and hand in submission.zip: the dispute is in it.")
    print(*(printable(f"{id}: {each.reason}") for id, each in every.items()), sep="\n")


@command("build")
def _build(args):
    """Notebooks from their sources in solutions/."""
    _needs_sources(".", "solutions", "the notebooks", "notebooks/")
    from labs.author import build, students, web

    if args.check:
        return _told(build.check(".", args.names), "Sources and generated files agree.")
    if args.student:
        students.student_tree(".", args.student, holds=not args.no_holds)
        print(f"The tree for students is in {args.student}.")
    elif args.web:
        web.build(".", args.web)
        print(*(f"{args.web}/{edition}/index.html" for edition in web.EDITIONS))
    else:
        build.build(".", names=args.names or None, execute=not args.no_execute, force=args.force)
    return 0


@command("release")
def _release(args):
    """What students get of the course, in one zip, and beside it the same as web pages (for instructors)."""
    _needs_sources()
    from labs.checks import tasks
    from labs.grading import release

    if args.path and args.notebooks:
        raise UseError("--path and --notebooks both say which notebooks: give one of them.")
    path = args.path and ",".join(lesson.notebook.partition("_")[0] for lesson in tasks.on_path(args.path))
    given = release.release(".", args.out, args.site, path or args.notebooks, criteria=not args.no_criteria)
    print(f"Wrote {args.out}: no line of a solution is in it. Notebooks:", *(Path(name).stem for name in given))
    if not args.no_web:
        print(release.pages(".", args.out, given))


@command("grade collect")
def _grade_collect(args):
    """Brings submissions together under numbers; says what was damaged, late, double or left out."""
    from labs.grading import collect, worksheet

    due, sheet = collect.moment(args.due), args.worksheet and worksheet.of_hand_ins(args.worksheet, args.column)
    print(*collect.collect(args.source, args.out, due, sheet), sep="\n")


@command("grade check")
def _grade_check(args):
    """Looks at every submission: evidence, numbers, and the checks again in the sandbox; finished ones stay."""
    _needs_sources()
    from labs import sandbox
    from labs.grading import check
    from labs.grading.graded import Graded

    if not args.no_run and (missing := sandbox.sandbox_missing()):
        print(f"Nothing of the students' is run, since there is no sandbox: {missing}. All else is looked at.")
    count = check.check(args.out, ".", args.notebooks, execute=not args.no_run, report=_say)
    print(*map(printable, check.left_open(Graded(args.out).found)), sep="\n")
    print(f"{count} looked at; the others are as they were.")


@command("grade rerun")
def _grade_rerun(args):
    """Trains a student's script again, small and in the sandbox; compares speedup and loss with what was handed in."""
    from labs.grading import rerun

    print(*map(printable, rerun.rerun(args.out, args.number, args.task, report=_say)), sep="\n")


@command("grade desk")
def _grade_desk(args):
    """Writes the notebook in which written answers are graded by keyboard."""
    from labs.grading import desk

    print(f"Wrote {desk.write(args.out)}: open it in JupyterLab.")


@command("grade mark")
def _grade_mark(args):
    """Keeps what a person decides of a submission, and prints all that is kept of it; findings reach no student
    before."""
    from labs.grading import collect, disputes, marks
    from labs.grading.graded import Graded

    out, number, graded = args.out, args.number, Graded(args.out)
    path = collect.submission(out, number)
    if args.sentence and not args.confirm:
        raise UseError("--sentence says what a student reads of a finding: name the kind with --confirm.")
    if args.answer and not args.item:
        raise UseError("--answer needs the ITEM that the student disputes: `labs grade out` names it.")
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


@command("grade pin")
def _grade_pin(args):
    """Pins a comment to a mistake, for all who made it; without CHECK, lists the mistakes by how many made them."""
    from labs.grading import pins
    from labs.grading.graded import Graded

    found = Graded(args.out).found
    if args.comment is not None:
        made = pins.add(args.out, found, args.check, args.comment, args.of, args.share)
        print(f"Pinned to {args.check}. It reaches {len(made.numbers)}: {', '.join(made.numbers)}.")
        return
    for each in pins.mistakes(found):
        if args.check in (None, each.check):
            _say(f"{len(each.numbers)} x {each.check} ({', '.join(each.numbers)}): {' '.join(each.hint.split())}")


@command("grade out")
def _grade_out(args):
    """Writes grades.csv, feedback for each student, the overview, and what Moodle or Canvas takes back; says whose
    points moved."""
    from labs.grading import results

    print(*map(printable, results.write(args.out, args.worksheet, args.column)), sep="\n")


@command("grade oral")
def _grade_oral(args):
    """Three questions for a talk with each student, drawn from their own records and scripts; nothing is judged by
    them."""
    _needs_sources()
    from labs.grading import oral

    print(*oral.write(args.out, ".", args.seed), sep="\n")


def _of(args, names):
    """{name: value} of some options, to hand on."""
    return {name: getattr(args, name) for name in names.split()}


def _say(line):
    """Print a line at once, also into a pipe."""
    print(printable(line), flush=True)


def _needs_sources(root: str | Path = ".", folder="solutions", what="the course", yours="notebooks/"):
    """Raise UseError in a student's tree, which has neither sources nor the room that builds from them."""
    if not _has_sources(root, folder):
        raise UseError(f"The sources of {what} are not in this tree ({folder}): yours are ready to fill in {yours}.")


def _has_sources(root, folder="solutions"):
    """Is this the authors' tree: does it hold a folder of sources, and the room that builds from them?"""
    return Path(root, folder).is_dir() and importlib.util.find_spec("labs.author") is not None


def _told(problems, none):
    """Print problems, one line each, or that there are none; returns the exit code."""
    print("\n".join(problems) or none)
    return 1 if problems else 0


class _Parser(argparse.ArgumentParser):
    def __init__(self, **settings):
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # also -1GiB is a value, and no option

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {printable(message)} (see {self.prog} --help)\n")


@functools.cache
def parser():
    """The argument parser of the `labs` command."""
    top = _Parser(prog="labs", description="Tools of the course on training on many devices.")
    commands = {(): top.add_subparsers(dest="name", required=True, metavar="COMMAND")}
    for words, (function, text, options) in COMMANDS.items():
        *group, name = words
        if tuple(group) not in commands:
            about = GROUPS[group[0]]
            sub = commands[()].add_parser(group[0], help=about, description=about)
            commands[tuple(group)] = sub.add_subparsers(dest="action", required=True, metavar="ACTION")
        sub = commands[tuple(group)].add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        for name, settings in options.items():
            sub.add_argument(name, **_of_argparse(**settings))
    return top


def _whole_from(least):
    """What argparse calls to read a whole number from `least` on."""

    def number(text):
        if not least <= int(text) <= MOST:
            raise argparse.ArgumentTypeError(f"{text} is not a whole number from {least} to {MOST}")
        return int(text)

    return number


def _of_argparse(count=None, **settings):
    """The settings of an option as `add_argument` takes them: its type is a function, which a file can only name."""

    if count is not None:
        settings["type"] = _whole_from(count)
    elif "type" in settings:
        settings["type"] = {"int": int, "float": float}[settings["type"]]
    return settings


def _drop_output():
    """Send what is still to be printed nowhere, or Python complains at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ended(number, _):
    raise KeyboardInterrupt(number)


def main(argv=None):
    """Run the `labs` command; returns its exit code. LabsErrors become one line; any other error is a bug and shows."""
    for stream in (sys.stdout, sys.stderr):  # where it cannot show a letter, as in ASCII, it shows its number
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = parser().parse_args(argv)
    if argv is None:  # the command itself: told to end, as by scancel, it ends what it has started as at an interrupt
        signal.signal(signal.SIGTERM, _ended)
    try:
        if args.name == "grade" and importlib.util.find_spec("labs.grading") is None:
            raise UseError("Grading is not in this tree: it is in the instructors' own.")
        code = args.function(args) or 0
        if sys.stdout:  # None where it was closed
            sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads the output has enough of it, as `head`
        _drop_output()
        return 1
    except LabsError as problem:
        said, code = printable(problem), problem.code
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
        if problem.errno == errno.ENAMETOOLONG:
            said, code = f"{printable(problem.filename)[:40]}...: no file can have a name of that length.", 2
        elif problem.filename is None and full:
            _drop_output()
            said, code = f"the output cannot be written: {problem.strerror}.", 1
        else:
            raise
    except KeyboardInterrupt as stop:
        said = "interrupted; what was finished so far is kept."
        code = 128 + (stop.args or [signal.SIGINT])[0]  # as a shell tells that a signal ended a program
    print(f"labs {args.name}: {said}", file=sys.stderr)
    return code
