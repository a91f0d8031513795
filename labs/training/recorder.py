"""The Keras callback that times every step and keeps the run record `runs/<name>.json` (labs.results.run).

One training program leaves one record. It may hold several repeats of the same training, each from newly drawn weights:
they share TensorFlow's start-up and tracing.
"""

import atexit
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import keras

from labs import compat, devices, files, ranks, stacks, waiting
from labs.errors import LabsError
from labs.results import run as records
from labs.results.run import Configuration, Epoch, Run
from labs.training import observed
from labs.training.arguments import check_arguments

REPORT_EVERY = 0.5  # seconds between two reports to the progress bar, at the least


class Recorder(keras.callbacks.Callback):
    """Times every step of `fit` and writes the run record.

    path: runs/<name>.json, which it keeps up to date; record: what has been recorded so far

    args: parsed command line (see `arguments`; also `epochs` and `batch_size`, the global batch)
    model: compiled; it says which network trains, on how many workers, with which strategy and rate
    images: number of images in the data set

    Where trainings take turns (labs.jobs.turns), an epoch begins when it is this one's turn.

    With "horovod" every rank has a recorder, and they compare: equal settings before the training, equal weights after
    it. Rank 0 alone writes; if it dies, the others mark its record as failed.

    A step lasts until the next one begins, the first from the beginning of the epoch, the last until the epoch ends or
    the validation begins; so steps add up to the epoch. The recorder never waits for the device: on a GPU and with JAX,
    single step times are smoothed; their sum is exact: the end of an epoch waits for the metrics.

    Raises LabsError if the record cannot be written at the beginning or the end (after an epoch it warns), or if steps
    take other numbers of images than `batch_size`, UseError for less than 1 epoch or repeat, with "horovod"
    ranks.RankError if ranks disagree.
    """

    model: keras.Model  # set by Keras
    _running = False  # a step has begun and not ended
    _reported = 0.0  # when the progress was last told

    def __init__(self, args: Namespace, model: keras.Model, *, images: int):
        super().__init__()
        check_arguments(args)
        self._args = args
        self.rank, self.repeat, self._processes = 0, 0, 1
        seen = observed.configuration(model)
        workers = seen["workers"]
        name = run_name(args, seen["model"], seen["strategy"], workers)
        self.path = Path(args.runs) / f"{name}.json"
        self.progress = self.path.with_suffix(".progress")
        options = {key: getattr(args, key) for key in ("dataset", "images", "image_size", "seed", "repeats")}
        configuration = Configuration(
            nodes=1,
            global_batch=args.batch_size,
            local_batch=args.batch_size // workers,
            precision=keras.config.dtype_policy().name,
            epochs_per_repeat=args.epochs,
            **options,
            **seen,
        )
        self.record = Run(
            name=name,
            state="running",
            configuration=configuration,
            dataset_images=images,
            oversubscribed=devices.oversubscribed(workers),
            epochs=[],
            machine=devices.machine(),
            versions=devices.versions(seen["strategy"]),
            command=_command(),
            script_sha256=_script_sha256(),
            started=_now(),
            job_id=os.environ.get("SLURM_JOB_ID") or os.environ.get("LABS_JOB"),
        )
        self._ranks = workers if seen["strategy"] == "horovod" else 1  # processes of this training
        if seen["strategy"] == "horovod":
            self._agree(vars(args) | seen)
        self._join_turns()
        if self.rank == 0:
            self._first_record()
        if os.environ.get("LABS_RUN") or self._ranks > 1:
            stacks.register(self.path.with_suffix(""))  # from now on `labs why` sees the process
        self._until_the_end()

    def _agree(self, settings):
        """Compare with the other ranks what must be equal on all of them, {name: value}, and note where they run."""
        from labs import hvd

        self.rank, self._processes = hvd.rank(), hvd.local_size()  # those of this node are all as busy as this one
        record = self.record
        record.configuration.nodes, record.oversubscribed = ranks.where_ranks_run()
        ranks.agree(**settings)
        ranks.agree("they would not train on the same data", images=record.dataset_images)

    def _join_turns(self):
        """Join the trainings that take turns, if this one does."""
        self._gate, record = waiting.join(self._ranks), self.record
        if self._gate:
            record.study, record.order_seed = self._gate.study, self._gate.order_seed
            record.job_id = record.job_id or os.environ.get("LABS_WITHIN")  # of the study

    def _first_record(self):
        """Move an earlier record aside, and write this one: an unwritable folder is found before the training."""
        with contextlib.suppress(OSError):  # a job's start has done this already
            self.path.rename(self.path.with_name(f"{files.next_aside(self.path.parent, self.record.name)}.json"))
        records.save_record(self.path, self.record)

    def _until_the_end(self):
        """`_close` is called however the program ends."""
        atexit.register(self._close)
        script = "ipykernel" not in sys.modules and threading.current_thread() is threading.main_thread()
        if script and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that `_close` is called

    def on_train_begin(self, logs=None):
        if self.record.configuration.strategy == "horovod":
            from labs.hvd.fit import check_fit

            check_fit(self.model, self.params, recorder=True)
            ranks.require_same_weights(self.model, "before the first step")
        observed.prepare(self.model)
        if self.repeat == 0:
            self.record.observed = observed.optimizer(self.model)

    def on_epoch_begin(self, epoch, logs=None):
        self._turn = self._gate.wait() if self._gate else {}
        if epoch == 0:
            self._turn["round"] = None  # warm-up
        self._steps, self._running, self._images = [], False, None
        self._moment_begun = devices.moment() if self._gate else None
        self._epoch_began = self._last = time.perf_counter()

    def _others(self):
        """Share of the node's cores that other programs took since the epoch began; None where it is not known, and
        without turns."""
        if not self._gate:
            return None
        # However short the epoch: a round of which nothing is known would count as undisturbed (labs.results.metrics).
        return devices.others([(self._moment_begun, devices.moment())] * self._processes, shortest=0.0)[0]

    # Not on_train_batch_end: for a callback that has it, Keras fetches loss and metrics from the device after
    # every step, and the training waits for them.
    def on_train_batch_begin(self, batch, logs=None):
        self._end_step()
        self._running = True

    def on_test_begin(self, logs=None):  # validation within the epoch
        self._end_step()
        self._images = self._consumed()

    def _consumed(self):
        """Images of all workers in this epoch, as Keras counted them, else by the steps. Raises LabsError."""
        steps, every, batch = len(self._steps), self.record.dataset_images or 0, self._args.batch_size
        counted = observed.images(self.model, self.record.configuration, steps, self._ranks)
        images = counted or steps * batch
        # Of ranks that did not shard, each has seen all images; where Keras counts none, the last batch may be smaller.
        most = self._ranks * every if counted else every + batch - 1
        return every if every < images <= most else images

    def _end_step(self):
        if not self._running:
            return
        self._running, now = False, time.perf_counter()
        self._steps.append(now - self._last)
        self._last = now
        if self.rank == 0 and now - self._reported > REPORT_EVERY:
            self._report(now)

    def _report(self, now):
        """A few bytes for the progress bar; losing them loses nothing."""
        self._reported = now
        done = len(self.record.epochs)
        total = self._args.epochs * self._args.repeats
        steps = self.record.steps or (self.params or {}).get("steps")
        spent = self._steps if done else []  # the first epoch holds tracing: its steps tell no rate
        fraction = (done + (len(self._steps) / steps if steps else 0)) / total
        state = {"epochs_done": done, "epochs": total, "step": len(self._steps), "steps": steps, "fraction": fraction}
        state["workers"] = self.record.configuration.workers
        state["images_per_second"] = self._args.batch_size * len(spent) / sum(spent) if spent else None
        with contextlib.suppress(OSError):
            self.progress.write_text(json.dumps(state))

    def on_epoch_end(self, epoch, logs=None):
        metrics = {key: float(value) for key, value in (logs or {}).items()}  # waits for the device
        self._end_step()
        seconds, record = time.perf_counter() - self._epoch_began, self.record
        done = {"repeat": self.repeat, "epoch": epoch, "seconds": seconds, "others": self._others(), **self._turn}
        record.steps = len(self._steps)
        record.observed.setdefault("parameters", self.model.count_params())
        images = self._images or self._consumed()
        record.epochs.append(Epoch(**done, images=images, step_seconds=self._steps, metrics=metrics))
        if self.rank:
            return
        try:
            records.save_record(self.path, record)
        except LabsError as problem:  # the training goes on; the next epoch tries again
            print(f"Warning: {problem}", file=sys.stderr, flush=True)

    def on_train_end(self, logs=None):
        if self.record.configuration.strategy == "horovod":
            self.record.weights = ranks.require_same_weights(self.model)
        if self.repeat + 1 >= self._args.repeats:
            self.record.state, self.record.finished = "finished", _now()
            if self.rank == 0:
                records.save_record(self.path, self.record)
                self.progress.unlink(missing_ok=True)

    def _close(self):
        """The program ends. If the training has not, the record says so, whichever rank is left to write it."""
        if self._gate:
            self._gate.close()
        if self.record.state == "finished":
            return
        with contextlib.suppress(OSError, LabsError):
            self.progress.unlink(missing_ok=True)
            record = self.record if self.rank == 0 else records.load_record(self.path)
            if record.state == "running":
                record.state, record.finished = "failed", _now()
                records.save_record(self.path, record)


def repeats(args: Namespace, recorder: "Recorder", model: keras.Model) -> Iterator[int]:
    """Count the repeats, and before each but the first begin from new weights.

    From 0 to args.repeats - 1.

    args: parsed command line (labs.training.arguments); recorder: of all these trainings; model: compiled.
    Seed of repeat r: args.seed + r. The compiled step is reused, so only the first repeat traces.
    """
    for repeat in range(args.repeats):
        if repeat:
            if recorder.rank == 0:
                print(f"Repeat {repeat + 1} of {args.repeats}", flush=True)
            reinitialise(model, args.seed + repeat)
            with contextlib.suppress(TypeError):  # a schedule begins anew with the optimizer's iterations
                model.optimizer.learning_rate = recorder.record.configuration.learning_rate
        recorder.repeat = repeat
        yield repeat


def reinitialise(model: keras.Model, seed: int) -> None:
    """Give the variables of `model` and its optimizer the start that a new model with this seed and rate would have.

    Keras' initializers draw their seeds from Python's `random`. tf.random.set_seed would do more than needed:
    it empties TensorFlow's cache of compiled steps, and the next step would take as long as the first one.
    """
    random.seed(seed)
    model.set_weights(keras.models.clone_model(model).get_weights())
    optimizer = model.optimizer
    with getattr(compat.strategy(model), "scope", contextlib.nullcontext)():
        new = type(optimizer).from_config(optimizer.get_config())
        new.build(model.trainable_variables)
    for variable, start in zip(compat.state(optimizer), compat.state(new), strict=True):
        variable.assign(start.numpy())


def run_name(args, model, strategy, workers):
    """Name of the run record: given by the user, by the job that started this program (which may itself be inside a job
    of SLURM's), or by what is trained."""
    if name := args.run or os.environ.get("LABS_RUN"):
        return name
    name = records.run_name(model, strategy, workers, args.batch_size)
    batch = os.environ.get("LABS_JOB")  # a batch script's, of which this may be one of several trainings
    if job_id := os.environ.get("SLURM_JOB_ID"):
        batch = f"{os.environ.get('SLURM_JOB_NAME', name)}_{job_id}"
    return f"{batch}_w{workers}" if batch else name


def _command():
    """What started this program: `-m labs.training.program` as typed, not as the path that Python makes of it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["-m", spec.name, *sys.argv[1:]] if spec else sys.argv


def _script_sha256():
    """SHA-256 of the file of this program; None where it has none, as in a notebook."""
    try:
        return files.digest(Path(sys.modules["__main__"].__file__).read_bytes())
    except (AttributeError, OSError):
        return None


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")
