"""The run record: a Keras callback that times every step and writes `runs/<name>.json`.

One training program leaves one record. It may hold several repeats of the same training, each from
newly drawn weights, which share TensorFlow's start-up and tracing.
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
from datetime import UTC, datetime
from pathlib import Path

import keras

from labs import blanks, devices, files, ranks

VERSION = 1


class RecordError(OSError):
    """A run record cannot be read or written."""


def write_record(path, record):
    """Write a record atomically: whoever reads `path` sees the old record or the new one, never half of one.

    Raises RecordError (unwritable folder, full disk); an older record then stays as it was.
    """
    try:
        files.write(path, json.dumps(record, indent=1))
    except OSError as problem:
        raise RecordError(
            f"Cannot write the run record {path}: {problem.strerror or problem}. Without it the run leaves no "
            "evidence. Check that the folder is yours and that the disk has room, or choose another with --runs."
        ) from None


def arguments(parser):
    """Add the options that every training script of the course shares to an argparse parser."""
    add = parser.add_argument
    add("--dataset", default="digits", help="digits, cifar10, folder:PATH or synthetic (default: digits)")
    add("--image_size", type=int, default=32, help="pixels per side that the network sees (default: 32)")
    add("--images", type=int, help="train on this many images only (default: all)")
    add("--repeats", type=int, default=1, help="train this many times, each from new weights (default: 1)")
    add("--seed", type=int, default=0, help="seed of weights and shuffling (default: 0)")
    add("--run", help="name of the run record (default: made from model, workers and batch)")
    add("--runs", default=os.environ.get("LABS_RUNS", "runs"), help="folder of the run records (default: runs)")


def parse(parser):
    """Arguments of the command line; a script that still has blanks stops here with one clear line."""
    script = Path(sys.argv[0])
    args = parser.parse_args()
    for line, text in blanks.blanks(script):
        sys.exit(f"{script.name}, line {line}: not done yet: {text.strip()}")
    return args


def repeats(args, recorder, model):
    """Count from 0 to args.repeats - 1; before each training but the first, draw new weights.

    Seed of repeat r: args.seed + r. The compiled step is reused, so only the first repeat traces.
    """
    for repeat in range(args.repeats):
        if repeat:
            if recorder.rank == 0:
                print(f"Repeat {repeat + 1} of {args.repeats}", flush=True)
            reinitialise(model, args.seed + repeat)
        recorder.repeat = repeat
        yield repeat


def reinitialise(model, seed):
    """Give the variables of `model` and its optimizer the start that a new model with this seed would have.

    Keras' initializers draw their seeds from Python's `random`. tf.random.set_seed would do more than needed:
    it empties TensorFlow's cache of compiled steps, and the next step would take as long as the first one.
    """
    random.seed(seed)
    model.set_weights(keras.models.clone_model(model).get_weights())
    for variable in model.optimizer.variables:
        if variable.path.endswith("learning_rate"):
            continue
        variable.assign(keras.ops.zeros(variable.shape, dtype=variable.dtype))


class Recorder(keras.callbacks.Callback):
    """Times every step of `fit` and keeps runs/<name>.json up to date.

    args: parsed command line (see `arguments`; also `epochs` and `batch_size`, the global batch)
    model: name of the network; strategy: "single", "mirrored" or "horovod"
    workers: how many take part; images: number of images in the data set
    learning_rate: the rate in use (after scaling)

    With "horovod" every rank has a recorder, and they compare: equal settings before the training, equal weights after
    it. Rank 0 alone writes; if it dies, the others mark its record as failed.

    A step's time runs from its begin (the epoch's, for the first) to the begin of the next one (the epoch's
    end, or the begin of validation, for the last); so the steps of an epoch add up to the epoch. The recorder
    never waits for the device: on a GPU, Python runs ahead and single step times are smoothed; their
    sum is exact, because the end of an epoch waits for the metrics.

    Raises RecordError if the record cannot be written, ValueError for less than 1 epoch or repeat, with "horovod"
    labs.ranks.RankError if ranks disagree.
    """

    def __init__(self, args, *, model, strategy, workers, images, learning_rate):
        super().__init__()
        for value, what in ((args.epochs, "epochs"), (args.repeats, "repeats")):
            if value < 1:
                raise ValueError(f"{value} {what}: nothing would be trained. Pass --{what} 1 or more.")
        self.rank, nodes, oversubscribed = 0, 1, devices.oversubscribed(workers)
        if strategy == "horovod":
            self.rank, nodes, oversubscribed = ranks.place()
            ranks.agree(**vars(args) | {"workers": workers, "model": model, "learning_rate": learning_rate})
            ranks.agree("they would not train on the same data", images=images)
        name = args.run or os.environ.get("LABS_RUN") or f"{model}_{strategy}_w{workers}_b{args.batch_size}"
        if not args.run and os.environ.get("SLURM_JOB_ID"):
            name = f"{os.environ.get('SLURM_JOB_NAME', name)}_{os.environ['SLURM_JOB_ID']}_w{workers}"
        elif not args.run and os.environ.get("LABS_JOB"):  # one of several trainings of a batch script
            name = f"{os.environ['LABS_JOB']}_w{workers}"
        self.path = Path(args.runs) / f"{name}.json"
        self.progress = self.path.with_suffix(".progress")
        self.repeat = 0
        self.total_images = images
        self.record = {
            "version": VERSION,
            "name": name,
            "kind": "measured",
            "state": "running",
            "model": model,
            "strategy": strategy,
            "workers": workers,
            "nodes": nodes,
            "global_batch": args.batch_size,
            "local_batch": args.batch_size // workers,
            "learning_rate": learning_rate,
            "dataset": args.dataset,
            "image_size": args.image_size,
            "precision": keras.config.dtype_policy().name,
            "steps": None,
            "repeats": args.repeats,
            "epochs_per_repeat": args.epochs,
            "dataset_images": images,
            "requested_images": args.images,
            "oversubscribed": oversubscribed,
            "seed": args.seed,
            "epochs": [],
            "machine": devices.machine(),
            "versions": devices.versions(),
            "command": _command(),
            "started": _now(),
            "finished": None,
            "job_id": os.environ.get("SLURM_JOB_ID"),
        }
        if self.rank == 0:
            write_record(self.path, self.record)  # an unwritable folder is found before the training, not after
        atexit.register(self._close)
        script = "ipykernel" not in sys.modules and threading.current_thread() is threading.main_thread()
        if script and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that `_close` is called

    def on_train_begin(self, logs=None):
        if self.record["strategy"] == "horovod":
            from labs import hvd

            hvd.callbacks.check(self.model, self.params)
            ranks.same_weights(self.model, "before the first step")

    def on_epoch_begin(self, epoch, logs=None):
        self._steps, self._running = [], False
        self._begin = self._last = time.perf_counter()

    # Not on_train_batch_end: for a callback that has it, Keras fetches loss and metrics from the device after
    # every step, and the training waits for them.
    def on_train_batch_begin(self, batch, logs=None):
        if self._running:
            self._end_step()
        self._running = True

    def on_test_begin(self, logs=None):  # validation within the epoch
        if self._running:
            self._end_step()
        self._running = False

    def _end_step(self):
        now = time.perf_counter()
        self._steps.append(now - self._last)
        self._last = now
        if self.rank == 0 and now - self._reported > 0.5:
            self._report(now)

    _running = False  # a step has begun and not ended
    _reported = 0.0  # when the progress was last told

    def _report(self, now):
        """A few bytes for the progress bar, twice a second; losing them loses nothing."""
        self._reported = now
        done = len(self.record["epochs"])
        total = self.record["epochs_per_repeat"] * self.record["repeats"]
        steps = self.record["steps"] or (self.params or {}).get("steps")
        spent = self._steps[1:] or self._steps
        rate = self.record["global_batch"] * len(spent) / sum(spent)
        fraction = (done + (len(self._steps) / steps if steps else 0)) / total
        state = {
            "epochs_done": done,
            "epochs": total,
            "step": len(self._steps),
            "steps": steps,
            "images_per_second": rate,
            "fraction": fraction,
        }
        with contextlib.suppress(OSError):
            self.progress.write_text(json.dumps(state))

    def on_epoch_end(self, epoch, logs=None):
        metrics = {key: float(value) for key, value in (logs or {}).items()}  # waits for the device
        if self._running:
            self._end_step()
        self._running = False
        seconds = time.perf_counter() - self._begin
        steps = len(self._steps)
        self.record["steps"] = steps
        self.record["epochs"].append(
            {
                "repeat": self.repeat,
                "epoch": epoch,
                "seconds": seconds,
                "images": min(self.total_images, steps * self.record["global_batch"]),
                "step_seconds": self._steps,
                "metrics": metrics,
            }
        )
        self._save()

    def on_train_end(self, logs=None):
        if self.record["strategy"] == "horovod":
            self.record["weights"] = ranks.same_weights(self.model)
        if self.repeat + 1 >= self.record["repeats"]:
            self.record.update(state="finished", finished=_now())
            if self.rank == 0:
                write_record(self.path, self.record)
                self.progress.unlink(missing_ok=True)

    def _save(self):
        if self.rank:
            return
        try:
            write_record(self.path, self.record)
        except RecordError as problem:  # the training goes on; the next epoch tries again
            print(f"Warning: {problem}", file=sys.stderr, flush=True)

    def _close(self):
        """The program ends. If the training has not, the record says so, whichever rank is left to write it."""
        if self.record["state"] == "finished":
            return
        with contextlib.suppress(OSError, ValueError):
            self.progress.unlink(missing_ok=True)
            record = self.record if self.rank == 0 else json.loads(self.path.read_text())
            if record["state"] == "running":
                record.update(state="failed", finished=_now())
                write_record(self.path, record)


def _command():
    """What started this program: `-m labs.training.program` as it was typed, not as the path that Python makes of it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return ["-m", spec.name, *sys.argv[1:]] if spec else sys.argv


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")
