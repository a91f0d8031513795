r"""What one line of a log says: the results of an epoch, a header, or the command that was echoed.

196/196 - 45s - loss: 1.7626 - accuracy: 0.3536                            TensorFlow 2.2 to 2.6
196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step   Keras 2 (TensorFlow 2.7 to 2.15)
196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626               Keras 3
196/196 [====...] - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536       verbose=1, Keras 2
196/196 ━━━━━━━━━ 45s 229ms/step - accuracy: 0.3536 - loss: 1.7626         verbose=1, Keras 3
50000/50000 - 45s - loss: 1.7626 - accuracy: 0.3536                        tf.keras before 2.2: samples, not steps
 - 45s - loss: 1.7626 - acc: 0.3536                                        verbose=2, Keras to 2.3, TensorFlow 1
"""

import re
import shlex
from dataclasses import dataclass

from labs import files

_RESULT = re.compile(r"^(?:(\d{1,9})/(\d{1,9}) ?(\[[=>.\s-]*\]|[━ ]+)? ?)?(?:- )?(\d{1,9})s(?= |$)(.*)$")
_BARE = re.compile(r" (?:\d+(?:us|ms|s)/\w+ )?- loss: ")  # what follows the seconds where no steps stand before
_NUMBERS = {kind: re.compile(pattern) for kind, pattern in files.beside(__file__).items()}
_RATE = re.compile(r"(?<![\w.])(\d{1,12})(us|ms|s)/(step|epoch|sample)(?!\w)")
_METRIC = re.compile(r"- ([A-Za-z_][\w./]*): (-?\d+\.?\d*(?:e[+-]?\d+)?|-?nan|-?inf)(?=\s|$)", re.I)
_WHOLE = re.compile(r"(?:\.\d{4}|e[+-]\d\d|nan|inf|/step|/epoch|/sample)$")
_UNIT = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read(line):
    """(kind, what) of a line (without rank prefix, colours and control characters), or None if it says nothing.

    "epoch", "repeat": [number, planned] of the one that begins; "stopped": [], the training ended early, as planned;
    "samples": [of an epoch], on which Keras before TensorFlow 2.2 trains; of Horovod's synthetic benchmarks "batch":
    [of a worker], "iteration", "mean": [images/s of a worker] in one iteration, in all; "result": an EpochLine;
    "settings": what `settings` gives.
    """
    for kind, pattern in _NUMBERS.items():
        if match := pattern.match(line):
            return kind, [float(number) if "." in number else int(number) for number in match.groups()]
    if found := result(line):
        return "result", found
    return ("settings", found) if (found := settings(line)) else None


@dataclass
class EpochLine:
    """The results of an epoch: whole `seconds`, `rates` as (number, unit, per), `metrics`.

    steps: None where the line has none; of old Keras they are samples (`per_sample` where it says so);
    bar: whether a progress bar showed them; whole: whether the line is complete.
    """

    steps: int | None
    seconds: int
    rates: list
    metrics: dict
    bar: bool
    whole: bool

    @property
    def per_sample(self):
        return any(per == "sample" for *_, per in self.rates)

    def same_form(self, other: "EpochLine") -> bool:
        """Whether both lines hold the same metrics in the same order, and the same units of time."""
        return list(self.metrics) == list(other.metrics) and [r[2] for r in self.rates] == [r[2] for r in other.rates]

    def time(self) -> tuple[float, float, str | None]:
        """(seconds of the epoch, width of their rounding, note or None).

        The finest of the whole seconds and the times per epoch and step that agrees with the whole seconds within the
        rounding of both. Bars give ms/step without the first step, so there only whole seconds count, and us/sample of
        all.
        """
        counts = {"epoch": 1, "step": None if self.bar else self.steps, "sample": self.steps}
        times = [
            (number * _UNIT[unit] * counts[per], _UNIT[unit] * counts[per])
            for number, unit, per in self.rates
            if number and counts[per]
        ]
        note = None
        for time, resolution in sorted(times, key=lambda pair: pair[1]):
            if resolution >= 1.0:
                break
            if abs(time - self.seconds) <= (1.0 + resolution) / 2 + 1e-9:
                return time, resolution, note
            note = "times per step and whole seconds disagree: the whole seconds are used"
        if self.bar and self.rates and not self.per_sample:
            note = "a log of progress bars: times in whole seconds only (verbose=2 gives finer ones)"
        return float(self.seconds), 1.0, note


def result(line: str) -> EpochLine | None:
    """The results in a line (without rank prefix, colours and control characters), or None for another line."""
    match = _RESULT.match(line)
    if not match or match[1] != match[2] or not (match[1] or _BARE.match(match[5])):
        return None
    metrics = {key: float(value) for key, value in _METRIC.findall(match[5])}
    rates = [(int(number), unit, per) for number, unit, per in _RATE.findall(match[5])]
    bar = bool(match[3] and match[3].strip())
    steps = match[1] and int(match[1])
    return EpochLine(steps, int(match[4]), rates, metrics, bar, bool(_WHOLE.search(line))) if metrics else None


# Header "Name: value" (spaces and capitals do not matter) or option "--name value" -> field of a run.
_COUNTS = ("global_batch", "local_batch", "workers", "images", "image_size")
_FIELDS = {name: name for name in (*_COUNTS, "strategy", "learning_rate", "dataset", "model")}
_FIELDS |= {"batch_size": "global_batch", "n_replicas": "workers", "n_gpus": "workers"}  # the batch size is global here
_FIELDS |= {f"number_of_{name}": "workers" for name in ("gpus", "cpus", "devices")}
_HEADERS_ONLY = ("learning_rate", "images")  # the option is the rate before scaling, and the images of a subset
_COUNTED = re.compile(r"^Model:?\s+([\w.-]+),?\s+(\d{1,9})\s+(?:GPU|worker|replica|device)s?\b", re.I)
_HEADER = re.compile(r"^([A-Za-z][A-Za-z_ ]{1,40}?)\s*[:=]\s*([\w.+-]+)\s*$")
_FAMILY = re.compile(r"^(?:ResNet|VGG|MobileNet|DenseNet|Inception|Xception|EfficientNet)\w*$", re.I)
_BEFORE = "time|srun|mpirun|mpiexec|horovodrun|singularity|apptainer|uv|exec"  # what starts Python
_ECHO = re.compile(
    rf"^(?:\++ |[$>] )?((?:\w+=\S* )*(?:(?:\S*/)?(?:{_BEFORE})\b.*? )?"
    r"(?:\S*/)?python[\d.]*(?: -[a-zA-Z]+)* \S+\.py\b.*)$"
)
_LAUNCHERS = {
    "horovodrun": ("-np", "--num-proc"),
    "mpirun": ("-np", "-n"),
    "mpiexec": ("-n", "-np"),
    "srun": ("-n", "--ntasks"),
}


def settings(line: str) -> list[tuple]:
    """What a line says about the run: (field, value, "header" | "command" | "script"); [] for any other line.

    For example `Model ResNet50V2 2 GPUs` gives model and workers, `+ python ResNet50.py --batch_size=512` gives
    global_batch, model (after the script's name, the weakest witness) and command.
    """
    if counted := _COUNTED.match(line):
        return [("model", counted[1], "header"), ("workers", int(counted[2]), "header")]
    if header := _HEADER.match(line):
        key = _FIELDS.get(header[1].strip().lower().replace(" ", "_"))
        if header[1].lower() == "batch size" or (key == "model" and not _FAMILY.match(header[2])):
            return []  # "Batch size" alone is per device as often as not; "Model: functional" is Keras' summary
        return _value(key, header[2], "header")
    if len(line) < 2000 and "python" in line and (echo := _ECHO.match(line)):
        return _command(echo[1])
    return []


def _value(key, text, origin):
    try:
        if key in _COUNTS:
            return [(key, int(text), origin)] if 0 < int(text) < 10**9 else []
        if key == "learning_rate":
            return [(key, float(text), origin)]
    except ValueError:
        return []
    return [(key, text, origin)] if key else []


def _command(text):
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    words = [part for word in words for part in (word.split("=", 1) if word.startswith("-") else [word])]
    start = next((n for n, word in enumerate(words) if re.match(r"(?:.*/)?python[\d.]*$", word)), None)
    script = next((n for n, word in enumerate(words) if start is not None and n > start and word.endswith(".py")), None)
    if script is None:
        return []  # quoted in an unusual way
    found = [("command", " ".join(words), "command")]
    for launcher, options in _LAUNCHERS.items():
        names = [word.rsplit("/", 1)[-1] for word in words[:start]]
        if launcher in names:
            for option, value in zip(words[:start], words[1:start], strict=False):
                found += _value("workers", value, "command") if option in options else []
            found += [("strategy", "horovod", "command")] if launcher == "horovodrun" else []
    for option, value in zip(words[script + 1 :], words[script + 2 :], strict=False):
        name = option[2:].replace("-", "_")
        if option.startswith("--") and name in _FIELDS and name not in _HEADERS_ONLY:
            found += _value(_FIELDS[name], value, "command")
    stem = words[script].rsplit("/", 1)[-1][:-3]
    return [*found, ("model", stem, "script")] if _FAMILY.match(stem) else found


def names_model(found) -> bool:
    """Whether settings hold a header that names the network."""
    return any(key == "model" and origin == "header" for key, _, origin in found)


def begins_run(found) -> bool:
    """Whether settings begin a run by themselves: they name a network with a header, or are a command."""
    return names_model(found) or any(key == "command" for key, _, _ in found)
