"""The `labs` command: a thin layer over the packages.

Every command is a function behind its options; its docstring is its help. What it needs is imported when it runs, so
that `labs --help` is quick.
"""

import dataclasses
from pathlib import Path

from labs.command_line import CommandLine, option, whole_from
from labs.presets import STRATEGIES
from labs.printed import as_json, printable

LABS = CommandLine(
    "labs", "Tools of the course on training on many devices.", {"slurm": "Batch scripts of a site: check, sites."}
)
command, main = LABS.command, LABS.main


@command("doctor")
def _doctor(args):
    """What is here, what mode follows, what to fix."""
    from labs import doctor

    rows = doctor.look()
    print(doctor.text(rows))
    return 1 if any(row["fix"] for row in rows) else 0


@command(
    "study",
    option("--models", nargs="+", metavar="MODEL", help="default: the preset's"),
    option("--workers", nargs="+", type=whole_from(1), metavar="N", help="default: the preset's"),
    option("--strategy", default="mirrored", choices=STRATEGIES, help="default: mirrored"),
    option("--launcher", help="of Horovod's ranks, with its options: horovodrun, mpiexec, or in a batch script srun"),
    option("--preset", help="test, laptop or course (default: $LABS_PRESET, else by what is here)"),
    option("--repeats", type=whole_from(1), help="trainings per configuration"),
    option("--epochs", type=whole_from(1), help="epochs per training; the first is warm-up"),
    option("--local_batch", type=whole_from(1), help="images per step and worker"),
    option("--dataset", help="digits, cifar10 or synthetic"),
    option("--images", type=whole_from(1), help="train on this many images only"),
    option("--image_size", type=whole_from(1), help="pixels per side"),
    option("--seed", type=whole_from(0), default=0, help="of weights and shuffling (default: 0)"),
    option("--out", help="folder of records, logs and plots (default: $LABS_RUNS, else runs)"),
    option("--fresh", action="store_true", help="measure again what is on record"),
)
def _study(args):
    """Measure models on several numbers of workers: records, table, plots."""
    from labs import jobs, presets, results
    from labs.measure import study

    sizes = _of(args, "repeats epochs local_batch dataset images image_size")
    changed = {name: value for name, value in sizes.items() if value is not None}
    plan = dataclasses.replace(presets.choose(args.preset), **changed)
    options, out = _of(args, "models workers strategy launcher fresh seed"), args.out or jobs.folder()
    paths = study.run(plan, **options, out=out, report=print)
    runs = results.load(paths)
    print(study.write_table(runs, out))
    print("Plots:", *study.draw(runs, out))


@command(
    "results",
    option("files", nargs="+", metavar="FILE", help=".out, .err, .json, or a folder of them"),
    option("--images", type=whole_from(1), help="images in the data set, where the log does not say"),
    option("--model", help="where the log does not say"),
    option("--workers", type=whole_from(1), help="where the log does not say"),
    option("--global_batch", type=whole_from(1), help="images per step of all workers, where the log does not say"),
    option("--json", action="store_true", help="print JSON instead of text"),
)
def _results(args):
    """Logs and records to epoch time, throughput, speedup, efficiency."""
    from labs import results
    from labs.results import tables

    runs = results.load(args.files, **_of(args, "images model workers global_batch"))
    print(as_json({"runs": [tables.row(run) for run in runs]}) if args.json else results.table(runs))
    return 0 if any(run.epochs for run in runs) else 1


@command(
    "why",
    option("job", metavar="NAME", help="of the job, or its number in SLURM's queue"),
    option("--runs", metavar="DIR", help="folder of its files (default: $LABS_RUNS, else runs)"),
)
def _why(args):
    """Why a job stands still: where each rank is, who waits for whom; the job goes on."""
    from labs import jobs
    from labs.jobs import why

    ranks = why.ranks(why.stem(args.job, Path(args.runs) if args.runs else jobs.folder()))
    print(why.report(args.job, ranks))
    return 1 if why.stuck(ranks) else 0


@command(
    "maxbatch",
    option("--model", default="ResNet50V2", help="default: ResNet50V2"),
    option("--image_size", type=whole_from(1), default=32, help="pixels per side (default: 32)"),
    option("--memory", help="for a step, such as 1GiB (default: 1GiB, or the GPU's)"),
    option("--out", help="folder of the evidence (default: $LABS_RUNS, else runs)"),
)
def _maxbatch(args):
    """Largest batch size that fits into memory, with evidence."""
    from labs.measure import maxbatch

    print(maxbatch.table(maxbatch.search(args.model, **_of(args, "image_size memory"), runs=args.out)))


@command(
    "allreduce",
    option("--ranks", type=whole_from(2), default=2, help="number of processes on this machine (default: 2)"),
    option("--launcher", help="horovodrun (over Gloo) or mpiexec (over MPI) (default: horovodrun)"),
    option("--repeats", type=whole_from(6), default=15, help="samples for each message size (default: 15)"),
    option("--out", metavar="DIR", help="keep the job's files in this folder (default: they are not kept)"),
)
def _allreduce(args):
    """Latency and bandwidth of this machine's all-reduce, by real ranks."""
    from labs.measure import allreduce

    print(allreduce.table(allreduce.measure(**_of(args, "ranks repeats launcher"), runs=args.out, show=True)))


@command(
    "slurm check",
    option("file", metavar="FILE", help="a batch script"),
    option("--site", metavar="SITE", help="default: its folder's, else $LABS_SITE, else local"),
)
def _slurm_check(args):
    """What sbatch sees in a batch script, and what it does not."""
    from labs.slurm import check, sites

    folder = Path(args.file).resolve().parent.name
    site = args.site or (folder if folder in sites.names() else sites.default())
    return check.report_on_script(args.file, sites.load(site))


@command("slurm sites")
def _slurm_sites(args):
    """The sites, one line each."""
    from labs.slurm import sites

    for site in map(sites.load, sites.names()):
        mark = "*" if site.id == sites.default() else " "
        size = f"{site.gpus} GPUs and {site.cpus} CPUs a node, by {site.launcher}"
        print(f"{mark} {site.id:<16} {site.name}: {size}; {site.about}")
    print("* is the one in use; another: export LABS_SITE=<site>")


@command(
    "reset", option("names", nargs="+", metavar="NAME", help="such as 05, scripts/ResNet50.py, slurm/local/ResNet50.sh")
)
def _reset(args):
    """A fresh notebook or script; the old one is kept in old/."""
    from labs import course

    print(*course.reset_files(course.find_course(), args.names), sep="\n")


@command("update", option("release", metavar="RELEASE", help="the zip that the instructor gave out, or its folder"))
def _update(args):
    """A newer release of the course; your answers, scripts and runs stay."""
    from labs import course

    print(*course.update_course(course.find_course(), args.release), sep="\n")


@command(
    "report",
    option("folder", nargs="?", default=".", help="of the course or its notebooks (default: here)"),
    option("--name", help="your name or number, for the first page (default: none)"),
    option("--out", default="report", help="folder of the three files (default: report)"),
)
def _report(args):
    """The report on all tasks: report.pdf, report.json, and submission.zip to hand in."""
    from labs import report

    made = report.make(args.out, start=args.folder, name=args.name)
    print(f"Wrote {made.pdf}, {made.json} and {made.zip}. Hand in {made.zip.name}; look at the report first.")
    findings = [f"{each['task']}, {each['kind']}: {each['text']}" for each in made.report["findings"]]
    for head, lines in (("Missing:", made.report["missing"]), ("What the evidence does not support:", findings)):
        if lines:
            print(head, *map(printable, lines), sep="\n- ")


def _of(args, names):
    """{name: value} of some options, to hand on."""
    return {name: getattr(args, name) for name in names.split()}
