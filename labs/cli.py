"""The `labs` command: a thin layer over the rooms.

Every command is a function; its docstring is its help, and cli.toml has its options. What it needs is imported when it
runs, so that `labs --help` is quick.
"""

import contextlib
import dataclasses
import sys
from pathlib import Path

from labs import files
from labs.command_line import CommandLine, say
from labs.printed import as_json, printable

LABS = CommandLine(
    "labs",
    "Tools of the course on training on many devices.",
    files.beside(__file__),
    {"slurm": "Batch scripts of a site: check, sites."},
)
command, main = LABS.command, LABS.main


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
    from labs import presets, results
    from labs.measure import study
    from labs.results import tables

    sizes = _of(args, "repeats epochs local_batch dataset images image_size")
    given = {name: value for name, value in sizes.items() if value is not None}
    plan = dataclasses.replace(presets.choose(args.preset), **given)
    asked = _of(args, "models workers strategy launcher out fresh seed twice")
    paths = study.run(plan, **asked, report=lambda text: print(text, file=sys.stderr if args.json else sys.stdout))
    paths, again = (paths[:-2], paths[-2:]) if args.twice else (paths, [])
    found = again and study.itself(again)
    runs = results.load(paths)
    pictures = [str(path) for path in study.draw(runs, args.out)]
    told = study.verdicts(runs, found and found[1] or 0.0)
    said = "".join(f"\nIs the difference on {each['workers']} workers real? {each['verdict']}" for each in told)
    table = "\n".join([results.table(runs) + said, *(study.believed(runs, found) if found else [])])
    files.write(Path(args.out, "table.txt"), table + "\n")
    if args.json:
        verdicts = [each | {"verdict": vars(each["verdict"])} for each in told]
        told = {"runs": [tables.row(run) for run in runs], "records": [*map(str, paths + again)]}
        told |= {"plots": pictures, "verdicts": verdicts}
        told |= {"itself": {"ratio": found[0].value, "interval": found[0].interval, "floor": found[1]}} if found else {}
        print(as_json(told, indent=None))
    else:
        print(table)
        print("Plots:", *pictures)


@command("compare")
def _compare(args):
    """Two commands, or one in two commits of git, in turns: the ratio of their seconds, and whether it is real."""
    from labs.measure import compare

    print(*compare.run(args.first, args.second, args.command, args.rounds, report=say), sep="\n")


@command("results")
def _results(args):
    """Logs and records to epoch time, throughput, speedup, efficiency."""
    from labs import results
    from labs.results import tables

    runs = results.load(args.files, **_of(args, "images model workers global_batch same_machine"))
    print(as_json({"runs": [tables.row(run) for run in runs]}) if args.json else results.table(runs))
    return 0 if any(run.epochs for run in runs) else 1


@command("why")
def _why(args):
    """Why a job stands still: where each rank is, who waits for whom; the job goes on."""
    from labs import jobs
    from labs.jobs import standing, standstill

    runs = Path(args.runs) if args.runs else jobs.folder()
    stems = [stem for stem in (runs / args.job, runs / f"{args.job}_local") if standing.files(stem)]
    for path in (Path(args.job), runs / args.job):
        if not stems and path.is_file():
            raise standing.StandingError(
                f"{path} is a file, and `labs why` looks at a running job: give its name, or its number in SLURM's "
                f"queue. `labs results {path}` reads what a job has printed."
            )
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
    fresh = course.fresh_files(root) if course.is_release(root) else course.committed_files(root)
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


def _of(args, names):
    """{name: value} of some options, to hand on."""
    return {name: getattr(args, name) for name in names.split()}
