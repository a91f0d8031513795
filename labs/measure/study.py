"""A scaling study: models x workers, as jobs that take turns; their records, a table and plots."""

import contextlib
import importlib.util
import math
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from labs import data, devices, files, jobs
from labs import models as networks
from labs.errors import LabsError, UseError
from labs.jobs import launch
from labs.presets import Preset
from labs.results import failures, intervals, metrics, verdict
from labs.results import run as records
from labs.results.record import Configuration, RecordError
from labs.results.run import Run

LARGEST = 10**9  # of any size; more is a mistake in typing


class StudyError(UseError):
    """The study cannot be run as asked."""


class RunError(LabsError):
    """A run of the study did not finish; the message says why."""


def configuration(plan: Preset, model: str, workers: int, strategy: str, seed: int = 0) -> Configuration:
    """What the run record of a run of this plan must show to count as the same configuration."""
    same = {key: getattr(plan, key) for key in ("dataset", "images", "image_size", "repeats")}
    asked = {"model": model, "strategy": strategy, "workers": workers, "global_batch": plan.local_batch * workers}
    return Configuration(**asked, **same, seed=seed, epochs_per_repeat=plan.epochs)


def reusable(path: str | Path, wanted: Configuration) -> Run | None:
    """The run on record in `path` if it is finished, of the configuration `wanted`, and of these versions, or None."""
    found = _finished(path)
    fits = found and found.configuration.fulfils(wanted) and found.versions == devices.versions(wanted.strategy)
    return found if fits else None


def pairs(workers):
    """Numbers of workers that are measured together, in turns: 1 with each of the others; without 1, each alone."""
    counts = sorted(set(workers))
    if counts[0] != 1 or len(counts) == 1:
        return [(count,) for count in counts]
    return [(1, count) for count in counts[1:]]


def groups(plan, names, counts, strategy, twice=False):
    """(network, {name of a run: its number of workers}) of all that take turns with each other.

    twice: in the last of them, the first network takes turns with itself, on the smallest number of workers.
    """

    def called(name, count, ending=""):
        return f"{name}_{strategy}_w{count}_b{plan.local_batch * count}{ending}"

    for name in names:
        for place, pair in enumerate(pairs(counts)):
            beside = f"_beside_w{pair[-1]}" if place else ""
            yield name, {called(name, count, beside if count == 1 else ""): count for count in pair}
    if twice:
        yield names[0], {called(names[0], counts[0], ending): counts[0] for ending in ("_once", "_again")}


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
    twice: bool = False,
    show: bool = True,
    report: Callable[[str], object] = print,
) -> list[Path]:
    """Measure what of the plan is not on record yet; return the paths of all records.

    plan: the sizes; models, workers: others than the plan's networks and numbers of workers
    strategy: "single", "mirrored", "horovod" or "jax"; seed: of weights and shuffling
    launcher: of Horovod's ranks (labs.jobs.launch); by default a local one. With "srun", in a batch script, the
        trainings are steps over the nodes of its job
    out: folder of the records; fresh: measure again what is on record
    twice: at the end one configuration takes turns with itself (`groups`): the last two paths, for `itself`
    show: progress bars; report: is called with each line on how far the study is

    Of each network, 1 worker and one of the other numbers train in turns (labs.jobs.Turns), an epoch of each in a
    round, so that drift of the machine does not look like scaling; never more than two, since both stay in memory. With
    a third number of workers, 1 worker is measured again beside it, as <name>_beside_w<workers>. Where two do not fit
    into a GPU's memory beside each other, each round starts both anew, one after the other; the record's `sharing`
    says which was done.

    Raises RunError at the first run that fails, with the reason that its .err gives; records of the pairs
    before it stay, and the next call goes on from there. A finished record is replaced by a finished one only. Raises
    another LabsError before anything runs for a study that cannot be run: see `check`.
    """
    names, counts = tuple(models or plan.models), tuple(sorted(set(workers or plan.workers)))
    # MPI is faster, but where ranks share cores those that wait over MPI keep them busy.
    local = {True: "horovodrun", False: "mpiexec"}
    launchers = {n: launcher or local[devices.oversubscribed(n)] for n in counts} if strategy == "horovod" else {}
    check(plan, names, counts, strategy, seed, launchers)
    together = list(groups(plan, names, counts, strategy, twice))
    paths, checked = [], False
    for number, (name, pair) in enumerate(together, 1):
        wanted = {run_name: configuration(plan, name, count, strategy, seed) for run_name, count in pair.items()}
        beside = [Path(out) / f"{run_name}.json" for run_name in pair]
        paths += beside
        shared = "srun" not in (launcher or "") and any(devices.oversubscribed(count) for count in pair.values())
        title = f"[{number}/{len(together)}] {' and '.join(pair)}"
        if not fresh and _on_record(beside, wanted.values()):
            report(f"{title}: on record, reused (--fresh measures again)")
            continue
        if not checked:
            checked = check_data(plan, counts)
        how = " each, in turns" if len(pair) > 1 else ""
        crowded = " (oversubscribed: workers share cores)" if shared else ""
        report(f"{title}: {plan.repeats} x {plan.epochs} epochs{how}{crowded}")
        trainings = {}
        for run_name, count in pair.items():
            asked = {"model": name, "strategy": strategy, "workers": count, "seed": seed}
            asked["batch_size"] = wanted[run_name].global_batch
            words = [*(f"--{key}={value}" for key, value in asked.items()), *plan.arguments()]
            ranks = {"ranks": count, "launcher": launchers[count]} if launchers else {}
            backend = {"env": {"KERAS_BACKEND": "jax"}} if strategy == "jax" else {}
            trainings[run_name] = ["-m", "labs.training.program", *words], {"runs": out} | ranks | backend
        turns = jobs.Turns(show, explain=False)
        try:
            with turns:
                for run_name, (arguments, options) in trainings.items():
                    turns.start(*arguments, name=run_name, **options)
            if waited := turns.explain_waiting():
                report(waited)
            if turns.state != "finished":
                first = next((job for job in turns.jobs if job.state == "failed"), turns.jobs[0])
                if not (len(pair) > 1 and devices.gpus() and _no_room(first)):
                    _give_way(turns.jobs)
                    raise RunError(f"The study stops here. {first.explain()}")
                report(f"{title}: not both fit into a GPU's memory, so each round starts them anew")
                _anew(trainings, plan.epochs - 1, show)
        except BaseException:
            _give_way(turns.jobs)
            raise
    return paths


def check(plan, names, counts, strategy, seed, launchers):
    """Raise a LabsError for a study that cannot be run: StudyError, models.ModelError, launch.LaunchError.

    names, counts: of the networks and numbers of workers; launchers: {number of ranks: launcher} with Horovod.
    """
    for name in names:
        networks.check_size(name, plan.image_size)
    sizes = [(plan.repeats, "repeats"), (plan.epochs, "epochs"), (plan.local_batch, "batch")]
    sizes += [(plan.images, "images")] if plan.images is not None else []
    for value, what in [*sizes, (plan.image_size, "pixels per side"), *((count, "workers") for count in counts)]:
        if not 1 <= value <= LARGEST:
            raise StudyError(f"{value} {what}: a study needs at least 1{f', at most {LARGEST}' if value > 0 else ''}.")
    if not 0 <= seed < 2**31:
        raise StudyError(f"Seed {seed}: no training starts from it. Give a whole number from 0 to {2**31 - 1}.")
    if strategy == "single" and counts != (1,):
        raise StudyError(f"Strategy single is for 1 worker, not {max(counts)}: use --strategy mirrored.")
    if strategy == "jax" and not importlib.util.find_spec("jax"):
        raise StudyError("JAX is not installed, so nothing was started. Run `make jax`, or use --strategy mirrored.")
    if strategy == "jax" and not devices.on_jax() and devices.gpus():
        raise StudyError(
            "TensorFlow sees GPUs here, and JAX may not. For JAX on them type KERAS_BACKEND=jax labs study "
            "--strategy jax ...; for one on the CPU add CUDA_VISIBLE_DEVICES= (empty)."
        )
    for count, launcher in launchers.items():
        launch.command(count, launcher)


def check_data(plan, counts):
    """Read the data set and raise data.DataError if it cannot be trained on with these numbers of workers."""
    images = data.load(plan.dataset, images=plan.images).images
    for count in counts:
        data.check_batch(len(images), plan.local_batch * count, count)
    return True


def _give_way(started):
    """Of jobs that did not all finish, move the files aside where they stand in the place of a finished record."""
    for job in started:
        if job.moved and _finished(job.stem.with_name(f"{job.moved}.json")):
            job.give_way()


def _finished(path):
    """The run on record in a file, if it is finished, else None."""
    with contextlib.suppress(RecordError):
        return found if (found := records.load(path)).state == "finished" else None


def _no_room(job):
    """Whether a job failed for lack of memory."""
    found = failures.in_files(job.err)
    return found is not None and found["kind"] == "out of memory"


def _anew(trainings, rounds, show):
    """Measure trainings that cannot stay in memory beside each other: in each round each in a process of its own, for a
    warm-up epoch and one that counts, in an order that is drawn. Weights do not go on from round to round.

    trainings: {name of the record: (arguments, options) of labs.jobs.start}. Raises RunError.
    """
    group, seed, made = secrets.token_hex(8), secrets.randbelow(2**31), {}
    for number, order in zip(range(1, rounds + 1), jobs.orders(seed, len(trainings)), strict=False):
        for place, which in enumerate(order):
            name, (arguments, options) = list(trainings.items())[which]
            asked = [*arguments, "--epochs", 2, "--repeats", 1]
            for left in ("out", "err", "json"):  # by a study that did not come to its end
                Path(options["runs"], f"{name}_round{number}.{left}").unlink(missing_ok=True)
            job = jobs.start(*asked, name=f"{name}_round{number}", **options).wait(show=show)
            if job.state != "finished":
                raise RunError(f"The study stops here. {job.explain()}")
            found = records.load(job.record)
            whole = made.setdefault(name, found.model_copy(update={"epochs": found.epochs[:1]}))
            whole.epochs.append(found.epochs[1].model_copy(update={"epoch": number, "round": number, "order": place}))
            whole.finished = found.finished
    for name, whole in made.items():
        whole.name, whole.study, whole.order_seed, whole.sharing = name, group, seed, "started anew in each round"
        whole.configuration.epochs_per_repeat = rounds + 1
        folder = Path(trainings[name][1]["runs"])
        for ending in (".out", ".err"):
            texts = [(folder / f"{name}_round{number}{ending}").read_text() for number in range(1, rounds + 1)]
            files.write(folder / f"{name}{ending}", "".join(texts))
        records.save(folder / f"{name}.json", whole)
        for number in range(1, rounds + 1):  # it is all in there; apart, they would look like runs of their own
            for ending in (".out", ".err", ".json"):
                (folder / f"{name}_round{number}{ending}").unlink()


def _on_record(paths, wanted):
    """Whether these records are there, finished, and of one study."""
    found = [reusable(path, each) for path, each in zip(paths, wanted, strict=True)]
    return all(found) and len({each.study for each in found if each}) == 1


def itself(paths: Sequence[Path]) -> tuple[intervals.Estimate, float | None]:
    """(the ratio of two runs of one configuration that took turns, as an Estimate; the floor: the largest relative
    difference in its interval, below which no difference of this study is believed, or None)."""
    one, other = map(records.load, paths)
    rounds, _ = metrics.quiet_rounds(one, other)
    ratio = intervals.paired([one.rounds[n] for n in rounds], [other.rounds[n] for n in rounds])
    return ratio, ratio.interval and max(ratio.interval[1], 1 / ratio.interval[0]) - 1


def believed(runs: Sequence[Run], found: tuple[intervals.Estimate, float | None]) -> list[str]:
    """Lines on what `itself` found, and on the speedups and efficiencies of `runs` that differ from 1 by less."""
    ratio, floor = found
    said = f"One configuration against itself (A/A): {ratio.value:.3f}"
    if not floor or not ratio.interval:
        return [f"{said}, of 1 round and so without an interval: train 3 epochs or more."]
    lines = ["{} [{:.3f}, {:.3f}]. Believe no difference below {:.1%}.".format(said, *ratio.interval, floor)]
    for run in runs:
        for name, value in (("speedup", run.speedup.value), ("efficiency", run.efficiency.value)):
            if run.workers != 1 and value and abs(math.log(value)) <= math.log1p(floor):
                lines.append(f"{run.source}: its {name} of {value:.3f} differs from 1 by no more than that.")
    return lines


def verdicts(runs: Sequence[Run], floor: float = 0.0) -> list[dict]:
    """For each network after the first and each number of workers above 1, the verdict on its efficiency against the
    first network's: {"workers": p, "verdict": labs.results.verdict.Verdict}. Empty for one network or one number of
    workers. floor: see labs.results.verdict.compare."""
    names, counts = dict.fromkeys(run.model for run in runs), sorted({run.workers for run in runs})
    if len(names) < 2 or counts[0] != 1:
        return []
    first, *others = names
    pairs = [(name, count) for name in others for count in counts[1:]]
    return [
        {"workers": count, "verdict": verdict.compare(runs, name, first, count, floor=floor)} for name, count in pairs
    ]


def draw(runs: Sequence[Run], out: str | Path) -> list[Path]:
    """Write epoch_time.png, throughput.png, speedup.png and learning.png into `out`, each with its text
    alternative beside it (.txt); return the paths of the pictures. Raises RunError: they cannot be written."""
    from labs.show import plots
    from labs.show.figure import png

    figures = {name: plots.scaling(runs, (name,)) for name in ("epoch time", "throughput", "speedup")}
    pictures = []
    for name, figure in (figures | {"learning": plots.learning(runs)}).items():
        picture = Path(out) / f"{name.replace(' ', '_')}.png"
        try:
            picture.write_bytes(png(figure))
            picture.with_suffix(".txt").write_text(figure.alt + "\n")
        except OSError as problem:
            raise RunError(
                f"Cannot write {picture}: {problem.strerror}. The records are complete: check that the folder is "
                "yours and that the disk has room, and call it again."
            ) from None
        pictures.append(picture)
    return pictures
