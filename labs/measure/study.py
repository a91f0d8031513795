"""A scaling study: models x workers, as jobs that take turns; their records, a table and plots."""

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from labs import data, devices, files, jobs, results
from labs import models as networks
from labs.errors import LabsError, UseError
from labs.jobs import launch
from labs.presets import Preset
from labs.results import run as records
from labs.results import verdict
from labs.results.run import Configuration, RecordError, Run


def configuration(plan: Preset, model: str, workers: int, strategy: str, seed: int = 0) -> Configuration:
    """What the run record of a run of this plan must show to count as the same configuration."""
    same = {key: getattr(plan, key) for key in ("dataset", "images", "image_size", "repeats")}
    asked = {"model": model, "strategy": strategy, "workers": workers, "global_batch": plan.local_batch * workers}
    return Configuration(**asked, **same, seed=seed, epochs_per_repeat=plan.epochs)


def reusable(path: str | Path, wanted: Configuration) -> Run | None:
    """The run on record in `path` if it is finished, of the configuration `wanted`, and of these versions, or None."""
    with contextlib.suppress(RecordError):
        run = records.load_record(path)
        fits = run.configuration.fulfils(wanted) and run.versions == devices.versions(wanted.strategy)
        return run if fits and run.state == "finished" else None


def groups(
    plan: Preset, names: Sequence[str], counts: Sequence[int], strategy: str
) -> Iterator[tuple[str, dict[str, int]]]:
    """(network, {name of a run: its number of workers}) of all that take turns with each other: 1 worker with each of
    the other numbers; without 1, each alone. counts: numbers of workers, in order.
    """
    in_pairs = counts[0] == 1 and len(counts) > 1
    for name in names:
        for number, count in enumerate(counts[1:] if in_pairs else counts):
            group = {records.run_name(name, strategy, count, plan.local_batch * count): count}
            one = records.run_name(name, strategy, 1, plan.local_batch) + (f"_beside_w{count}" if number else "")
            yield name, {one: 1} | group if in_pairs else group


def run(
    plan: Preset,
    *,
    models: Sequence[str] | None = None,
    workers: Sequence[int] | None = None,
    strategy: str = "mirrored",
    launcher: str | None = None,
    out: str | Path = "runs",
    fresh: bool = False,
    seed: int = 0,
    show: bool = True,
    report: Callable[[str], object] = print,
) -> list[Path]:
    """Measure what of the plan is not on record yet; return the paths of all records.

    plan: the sizes; models, workers: others than the plan's networks and numbers of workers
    strategy: one of labs.presets.STRATEGIES; seed: of weights and shuffling
    launcher: of Horovod's ranks (labs.jobs.launch); by default a local one. With "srun", in a batch script, the
        trainings are steps over the nodes of its job
    out: folder of the records; fresh: measure again what is on record
    show: progress bars; report: is called with each line on how far the study is

    Of each network, 1 worker and one of the other numbers train in turns (labs.jobs.Turns), an epoch of each in a
    round, so that drift of the machine does not look like scaling; never more than two, since both stay in memory, also
    in that of a GPU. With a third number of workers, 1 worker is measured again beside it, as <name>_beside_w<workers>.

    Raises LabsError at the first run that fails, with the reason that its .err gives; records of the pairs
    before it stay, and the next call goes on from there; an earlier record of the same name is kept as NAME.1. Raises
    UseError before anything runs for a study that cannot be run: see `check_study`.
    """
    names, counts = tuple(models or plan.models), tuple(sorted(set(workers or plan.workers)))
    # MPI is faster, but where ranks share cores those that wait over MPI keep them busy.
    local = {True: "horovodrun", False: "mpiexec"}
    launchers = {n: launcher or local[devices.oversubscribed(n)] for n in counts} if strategy == "horovod" else {}
    check_study(plan, names, counts, strategy, launchers)
    paths, every = [], list(groups(plan, names, counts, strategy))
    for number, (name, group) in enumerate(every, 1):
        wanted = {run_name: configuration(plan, name, count, strategy, seed) for run_name, count in group.items()}
        records_of_group = [Path(out) / f"{run_name}.json" for run_name in group]
        paths += records_of_group
        title = f"[{number}/{len(every)}] {' and '.join(group)}"
        if not fresh and _on_record(records_of_group, wanted.values()):
            report(f"{title}: on record, reused (--fresh measures again)")
            continue
        shared = launch.words_of(launcher)[0] != "srun" and any(devices.oversubscribed(n) for n in group.values())
        crowded = " (oversubscribed: workers share cores)" if shared else ""
        report(f"{title}: {plan.repeats} x {plan.epochs} epochs{' each, in turns' * (len(group) > 1)}{crowded}")
        trainings = {}
        for run_name, count in group.items():
            asked = {"model": name, "strategy": strategy, "workers": count, "seed": seed}
            asked["batch_size"] = wanted[run_name].global_batch
            words = [*(f"--{key}={value}" for key, value in asked.items()), *plan.arguments()]
            ranks = {"ranks": count, "launcher": launchers[count]} if launchers else {}
            backend = {"env": {"KERAS_BACKEND": "jax"}} if strategy == "jax" else {}
            trainings[run_name] = ["-m", "labs.training.program", *words], {"runs": out} | ranks | backend
        _train(trainings, show)
    return paths


def _train(trainings, show):
    """Measure trainings that take turns. Raises LabsError if one fails.

    trainings: {name of the record: (arguments, options) of labs.jobs.start}
    """
    turns = jobs.Turns(show, explain=False)
    with turns:
        for name, (arguments, options) in trainings.items():
            turns.start(*arguments, name=name, **options)
    if turns.state != "finished":
        first = next((job for job in turns.jobs if job.state == "failed"), turns.jobs[0])
        raise LabsError(f"The study stops here. {first.explain()}")


def check_study(
    plan: Preset, names: Sequence[str], counts: Sequence[int], strategy: str, launchers: dict[int, str] | None = None
) -> None:
    """Raise UseError for a study that cannot be run: a network, its data, a strategy, ranks that cannot be started.

    names, counts: of the networks and numbers of workers; launchers: {number of ranks: launcher} with Horovod.
    """
    for name in names:
        networks.check_size(name, plan.image_size)
    if strategy == "single" and counts != (1,):
        raise UseError(f"Strategy single is for 1 worker, not {max(counts)}: use --strategy mirrored.")
    if strategy == "jax" and not importlib.util.find_spec("jax"):
        raise UseError("JAX is not installed, so nothing was started. Run `make jax`, or use --strategy mirrored.")
    if strategy == "jax" and not devices.on_jax() and devices.gpus():
        raise UseError(
            "TensorFlow sees GPUs here, and JAX may not. For JAX on them type KERAS_BACKEND=jax labs study "
            "--strategy jax ...; for one on the CPU add CUDA_VISIBLE_DEVICES= (empty)."
        )
    images = data.load(plan.dataset, images=plan.images).images
    for count in counts:
        data.check_batch(len(images), plan.local_batch * count, count)
    for count, launcher in (launchers or {}).items():
        launch.check(count, launcher)


def _on_record(paths, wanted):
    """Whether these records are there, finished, and of one study."""
    runs = [reusable(path, each) for path, each in zip(paths, wanted, strict=True)]
    return all(runs) and len({run.study for run in runs if run}) == 1


def verdicts(runs: Sequence[Run]) -> list[tuple[int, verdict.Verdict]]:
    """(number of workers, verdict on its efficiency against the first network's) for each network after the first and
    each number of workers above 1. Empty for one network or one number of workers."""
    names, counts = list(dict.fromkeys(run.model for run in runs)), sorted({run.workers for run in runs})
    if counts[0] != 1:
        return []
    return [(count, verdict.compare(runs, name, names[0], count)) for name in names[1:] for count in counts[1:]]


def write_table(runs: Sequence[Run], out: str | Path) -> str:
    """Write the table and the verdicts into `out`, as table.txt; return its text. Raises files.WriteError."""
    lines = [results.table(runs)]
    lines += [f"Is the difference on {count} workers real? {answer}" for count, answer in verdicts(runs)]
    files.write(Path(out, "table.txt"), "\n".join(lines) + "\n")
    return "\n".join(lines)


def draw(runs: Sequence[Run], out: str | Path) -> list[Path]:
    """Write epoch_time.png, throughput.png, speedup.png and learning.png into `out`, each with its text
    alternative beside it (.txt); return the paths of the pictures. Raises files.WriteError."""
    from labs.show import plots
    from labs.show.figure import png

    figures = {name: plots.scaling(runs, (name,)) for name in ("epoch time", "throughput", "speedup")}
    pictures = []
    for name, figure in (figures | {"learning": plots.learning(runs)}).items():
        picture = Path(out) / f"{name.replace(' ', '_')}.png"
        files.write(picture, png(figure))
        files.write(picture.with_suffix(".txt"), figure.alt + "\n")
        pictures.append(picture)
    return pictures
