"""The `labs` command: a thin layer over the modules. Exit code 0: done, 1: found a problem, 2: wrong use."""

import argparse
import dataclasses
import json
import os
import sys
from pathlib import Path


def _doctor(args):
    from labs import doctor

    rows = doctor.look()
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        width = max(len(row["what"]) for row in rows)
        for row in rows:
            print(f"{row['what']:<{width}}  {row['found']}: {row['means']}")
            if row["fix"]:
                print(f"{'':<{width}}  -> {row['fix']}")
    return 1 if any(row["fix"] for row in rows) else 0


def _study(args):
    from labs import presets
    from labs.measure import study
    from labs.results import collect

    plan = presets.choose(args.preset)
    given = {
        "repeats": args.repeats,
        "epochs": args.epochs,
        "local_batch": args.local_batch,
        "dataset": args.dataset,
        "images": args.images,
        "image_size": args.image_size,
    }
    plan = dataclasses.replace(plan, **{key: value for key, value in given.items() if value is not None})
    say = (lambda text: print(text, file=sys.stderr)) if args.json else print
    paths = study.run(
        plan,
        models=args.models,
        workers=args.workers,
        strategy=args.strategy,
        out=args.out,
        fresh=args.fresh,
        seed=args.seed,
        report=say,
    )
    rows = collect.rows(paths)
    pictures = study.draw(rows, args.out)
    told = study.verdicts(paths)
    said = "".join(f"\nIs the difference on {each['workers']} workers real? {each['verdict']}" for each in told)
    table = collect.table(rows) + said
    with open(f"{args.out}/table.txt", "w") as file:
        file.write(table + "\n")
    if args.json:
        print(
            json.dumps(
                {
                    "runs": rows,
                    "records": [str(p) for p in paths],
                    "plots": [str(p) for p in pictures],
                    "verdicts": [each | {"verdict": each["verdict"].as_dict()} for each in told],
                }
            )
        )
    else:
        print(table)
        print("Plots:", *pictures)
    return 0


def _results(args):
    from labs.results import collect

    rows = collect.rows(args.files, images=args.images, model=args.model, workers=args.workers, global_batch=args.batch)
    print(json.dumps({"runs": rows}, indent=1) if args.json else collect.table(rows))
    return 0


def _maxbatch(args):
    from labs.measure import maxbatch

    result = maxbatch.search(
        args.model,
        image_size=args.image_size,
        memory=args.memory,
        bisect=args.bisect,
        start=args.start,
        limit=args.limit,
        runs=args.out,
    )
    print(json.dumps(result, indent=1) if args.json else maxbatch.table(result))
    return 0


def _allreduce(args):
    from labs.measure import allreduce

    return allreduce.run(args)


def _predict(args):
    from labs.costs import command

    return command.run(args)


def _build(args):
    from labs.author import build

    if args.check:
        problems = build.check(".")
        for problem in problems:
            print(problem)
        print(f"{len(problems)} problem(s)" if problems else "Sources and generated files agree.")
        return 1 if problems else 0
    if args.student:
        build.student_tree(".", args.student)
        print(f"The tree for students is in {args.student}.")
        return 0
    build.build(".", names=args.names or None, execute=not args.no_execute, force=args.force)
    return 0


def _slurm_render(args):
    from labs.author import render
    from labs.slurm import sites

    root = sites.find_root()
    if not render.sources(root):
        raise FileNotFoundError(
            "The sources of the batch scripts are not in this tree (solutions/slurm): yours are "
            "ready to be filled in slurm/<site>/."
        )
    if args.check:
        problems = render.check(root)
        print("\n".join(problems) or "Batch scripts, sources and sites agree.")
        return 1 if problems else 0
    render.render(root)
    return 0


def _slurm_check(args):
    from labs.slurm import check, sites

    folder = Path(args.file).resolve().parent.name
    site = args.site or (folder if folder in sites.names() else sites.default())
    return check.report(args.file, sites.load(site), args.json)


def _slurm_sites(args):
    from labs.slurm import sites

    found = [sites.load(id) for id in sites.names()]
    if args.json:
        print(json.dumps([dict(site) | {"personal": sorted(site.personal)} for site in found], indent=1))
        return 0
    for site in found:
        mark = "*" if site.id == sites.default() else " "
        print(
            f"{mark} {site.id:<16} {site.name}: {site.gpus} GPUs and {site.cpus} CPUs a node, by {site.launcher}; "
            f"{site.about}"
        )
    print("* is the one in use; another: export LABS_SITE=<site>")
    return 0


def parser():
    """The argument parser of the `labs` command."""
    top = argparse.ArgumentParser(prog="labs", description="Tools of the course on training on many devices.")
    commands = top.add_subparsers(dest="name", required=True, metavar="COMMAND")

    def command(name, function, text, among=commands):
        sub = among.add_parser(name, help=text, description=text)
        sub.set_defaults(function=function)
        return sub

    sub = command("doctor", _doctor, "what is here, what mode follows, what to fix")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = command("study", _study, "measure models on several numbers of workers: records, table, plots")
    sub.add_argument("--models", nargs="+", metavar="MODEL", help="default: the preset's")
    sub.add_argument("--workers", nargs="+", type=int, metavar="N", help="default: the preset's")
    strategies = ("single", "mirrored", "horovod")
    sub.add_argument("--strategy", default="mirrored", choices=strategies, help="default: mirrored")
    sub.add_argument("--preset", help="test, laptop or course (default: $LABS_PRESET, else by what is here)")
    sub.add_argument("--repeats", type=int, help="trainings per configuration")
    sub.add_argument("--epochs", type=int, help="epochs per training; the first is warm-up")
    sub.add_argument("--local_batch", type=int, help="images per step and worker")
    sub.add_argument("--dataset", help="digits, cifar10, folder:PATH or synthetic")
    sub.add_argument("--images", type=int, help="train on this many images only")
    sub.add_argument("--image_size", type=int, help="pixels per side")
    sub.add_argument("--seed", type=int, default=0, help="of weights and shuffling (default: 0)")
    sub.add_argument("--out", default="runs", help="folder of records, logs and plots (default: runs)")
    sub.add_argument("--fresh", action="store_true", help="measure again what is on record")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = command("results", _results, "logs and records to epoch time, throughput, speedup, efficiency")
    sub.add_argument("files", nargs="+", metavar="FILE", help=".out, .err, .json, or a folder of them")
    sub.add_argument("--images", type=int, help="images per epoch, where the log does not say")
    sub.add_argument("--model", help="where the log does not say")
    sub.add_argument("--workers", type=int, help="where the log does not say")
    sub.add_argument("--batch", type=int, help="global batch, where the log does not say")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = command("maxbatch", _maxbatch, "largest batch size that fits into memory, with evidence")
    sub.add_argument("--model", default="ResNet50V2", help="default: ResNet50V2")
    sub.add_argument("--image_size", type=int, default=32, help="pixels per side (default: 32)")
    sub.add_argument("--memory", help="for a step, such as 1GiB (default: 1GiB, or the GPU's)")
    sub.add_argument("--bisect", type=int, default=0, help="halve the last gap this many times")
    sub.add_argument("--start", type=int, default=1, help="first batch size (default: 1)")
    sub.add_argument("--limit", type=int, default=65536, help="last batch size (default: 65536)")
    sub.add_argument("--out", help="folder of the evidence (default: runs)")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = commands.add_parser("slurm", help="batch scripts of a site", description="Batch scripts: make, check, sites.")
    slurm = sub.add_subparsers(dest="action", required=True, metavar="ACTION", help="render, check or sites")
    sub = command("render", _slurm_render, "slurm/<site>/*.sh from solutions/slurm and slurm/sites", slurm)
    sub.add_argument("--check", action="store_true", help="only say whether all of them are up to date")
    sub = command("check", _slurm_check, "what sbatch sees in a batch script, and what it does not", slurm)
    sub.add_argument("file", metavar="FILE", help="a batch script")
    sub.add_argument("--site", metavar="SITE", help="default: its folder's, else $LABS_SITE, else local")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")
    sub = command("sites", _slurm_sites, "the sites, one line each", slurm)
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = command("allreduce", _allreduce, "latency and bandwidth of this machine's all-reduce, by real ranks")
    sub.add_argument("--ranks", type=int, default=2, help="number of processes on this machine (default: 2)")
    sub.add_argument("--launcher", help="horovodrun (over Gloo) or mpiexec (over MPI) (default: horovodrun)")
    sub.add_argument("--repeats", type=int, default=15, help="samples for each message size (default: 15)")
    sub.add_argument("--out", metavar="DIR", help="keep the job's files in this folder (default: they are not kept)")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text: `labs predict` reads it")

    sub = command("predict", _predict, "what a training would take on another machine, with intervals")
    sub.add_argument("--model", required=True, help="network: a name of keras.applications, as ResNet101, or of a run")
    sub.add_argument("--workers", type=int, required=True, help="number of workers (GPUs, or cores without GPUs)")
    sub.add_argument("--local_batch", type=int, help="images per worker and step (default: 64, or that of the runs)")
    sub.add_argument("--machine", metavar="FILE", help="machine file (.toml), or a name of the kit's in labs/machines")
    sub.add_argument("--records", metavar="DIR", nargs="+", help="fit your runs first: records, logs, or their folders")
    sub.add_argument("--benchmark", metavar="FILE", help="with --records: JSON of `labs allreduce --json`")
    sub.add_argument("--precision", default="float32", help="float32, float16 or bfloat16 (default: float32)")
    sub.add_argument("--image_size", type=int, help="pixels per side (default: the network's own, mostly 224)")
    sub.add_argument("--classes", type=int, default=1000, help="of the data set (default: 1000)")
    sub.add_argument("--accumulation", type=int, default=1, help="passes before each all-reduce (default: 1)")
    sub.add_argument("--images", type=int, help="images of an epoch: then its seconds are predicted, too")
    sub.add_argument("--optimizer_slots", type=int, default=1, help="numbers per weight: SGD 0, momentum 1, Adam 2")
    sub.add_argument("--compression", choices=("float16",), help="of gradients in the all-reduce (default: none)")
    sub.add_argument("--one_worker", type=float, metavar="RATE", help="images/s of one worker, where you know it")
    sub.add_argument("--json", action="store_true", help="print JSON instead of text")

    sub = command("build", _build, "notebooks from their sources in solutions/")
    sub.add_argument("names", nargs="*", help="such as 05_resnet50_scaling (default: all)")
    sub.add_argument("--check", action="store_true", help="only say whether all generated files are up to date")
    sub.add_argument("--force", action="store_true", help="execute also what did not change")
    sub.add_argument("--no-execute", action="store_true", help="only the student's notebooks and scripts")
    sub.add_argument("--student", metavar="DIR", help="write the tree that students get")
    return top


def main(argv=None):
    """Run the `labs` command; returns its exit code."""
    args = parser().parse_args(argv)
    try:
        code = args.function(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads the output has enough of it, as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        return 1
    except (ValueError, OSError, RuntimeError) as problem:
        print(f"labs {args.name}: {problem}", file=sys.stderr)
        return 2 if isinstance(problem, ValueError | FileNotFoundError) else 1
    except KeyboardInterrupt:
        print(f"labs {args.name}: interrupted; what was measured so far is kept.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
