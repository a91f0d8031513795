"""What a log says about a run besides its epochs: header lines and echoed command lines.

In the course `Batch_size` and `--batch_size` are the *global* batch. Where a file says two things, what the
program printed counts more than the command line; where one of them contradicts itself, nothing is known.
"""

import re
import shlex

# Header "Name: value" (spaces and capitals do not matter) or option "--name value" -> field of a Run.
_NAMES = {
    "batch_size": "global_batch",
    "global_batch": "global_batch",
    "global_batch_size": "global_batch",
    "local_batch": "local_batch",
    "local_batch_size": "local_batch",
    "batch_size_per_gpu": "local_batch",
    "batch_size_per_replica": "local_batch",
    "batch_size_per_worker": "local_batch",
    "n_replicas": "workers",
    "num_replicas": "workers",
    "number_of_replicas": "workers",
    "number_of_devices": "workers",
    "number_of_gpus": "workers",
    "n_gpus": "workers",
    "num_gpus": "workers",
    "ngpus": "workers",
    "gpus": "workers",
    "workers": "workers",
    "n_workers": "workers",
    "number_of_workers": "workers",
    "nodes": "nodes",
    "images": "images",
    "strategy": "strategy",
    "learning_rate": "learning_rate",
    "dataset": "dataset",
    "image_size": "image_size",
    "precision": "precision",
    "oversubscribed": "oversubscribed",
    "model": "model",
}
_NOT_OPTIONS = {"learning_rate", "images", "gpus"}  # a rate before scaling; images of a subset; a SLURM option
_WHOLE = {"global_batch", "local_batch", "workers", "nodes", "images", "image_size"}
_COUNTED = re.compile(r"^Model:?\s+([\w.-]+),?\s+(\d+)\s+(?:GPU|worker|replica|device)s?\b", re.I)
_HEADER = re.compile(r"^([A-Za-z][A-Za-z_ ]{1,40}?)\s*[:=]\s*([\w.+-]+)\s*$")
_FAMILY = re.compile(r"^(?:ResNet|VGG|MobileNet|DenseNet|Inception|Xception|EfficientNet)\w*$", re.I)
_ECHO = re.compile(
    r"^(?:\++ |[$>] )?((?:\w+=\S* )*(?:(?:\S*/)?(?:"
    r"time|srun|mpirun|mpiexec|horovodrun|singularity"
    r"|apptainer|uv|exec)\b.*? )?(?:\S*/)?python[\d.]*(?: -[a-zA-Z]+)* \S+\.py\b.*)$"
)
_LAUNCHERS = {
    "horovodrun": ("-np", "--num-proc"),
    "mpirun": ("-np", "-n"),
    "mpiexec": ("-n", "-np"),
    "srun": ("-n", "--ntasks"),
}


def facts(line: str) -> list[tuple[str, object, str]]:
    """What a line says: (field of a Run, value, "header" | "command" | "script"); [] for any other line.

    For example `Model ResNet50V2 2 GPUs` gives model and workers, `+ python ResNet50.py --batch_size=512` gives
    global_batch, model (after the script's name, the weakest witness) and command.
    """
    if counted := _COUNTED.match(line):
        return [("model", counted[1], "header"), ("workers", int(counted[2]), "header")]
    if header := _HEADER.match(line):
        key = _NAMES.get(header[1].strip().lower().replace(" ", "_"))
        if header[1].lower() == "batch size" or (key == "model" and not _FAMILY.match(header[2])):
            return []  # "Batch size" alone is per device as often as not; "Model: functional" is Keras' summary
        return _value(key, header[2], "header")
    if len(line) < 2000 and "python" in line and (echo := _ECHO.match(line)):
        return _command(echo[1])
    return []


def _value(key, text, origin):
    try:
        if key in _WHOLE:
            return [(key, int(text), origin)] if int(text) > 0 else []
        if key == "learning_rate":
            return [(key, float(text), origin)]
    except ValueError:
        return []
    if key == "oversubscribed":
        return [(key, text.lower() in ("true", "yes", "1"), origin)]
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
        if option.startswith("--") and name in _NAMES and name not in _NOT_OPTIONS:
            found += _value(_NAMES[name], value, "command")
    stem = words[script].rsplit("/", 1)[-1][:-3]
    return [*found, ("model", stem, "script")] if _FAMILY.match(stem) else found


class Facts:
    """What was said about one run, by whom; `notes` names contradictions once `value` was asked for them."""

    def __init__(self):
        self.said = {}
        self.notes = []

    def add(self, found):
        """Keep what `facts` found in a line."""
        for key, value, origin in found:
            self.said.setdefault(key, {}).setdefault(origin, []).append(value)

    def differs(self, found) -> bool:
        """Whether a line names another model (with its workers) or command than this run's: another run, then."""
        for key, value, origin in found:
            known = self.said.get(key, {}).get(origin, [value])
            if (key == "command" or (origin == "header" and _names_model(found))) and value not in known:
                return True
        return False

    def value(self, key):
        """The value of a field, or None if nobody named it or the strongest witness contradicts itself."""
        witnesses = self.said.get(key, {})
        chosen = None
        for origin in ("header", "command", "script"):
            values = list(dict.fromkeys(witnesses.get(origin, [])))
            if len(values) > 1 and chosen is None:
                self.notes.append(f"the file names {key} as {' and as '.join(map(str, values))}: not used")
                return None
            if values and chosen is None:
                chosen = values[0]
                if origin == "script":
                    self.notes.append("the model is named after the script")
            elif values and origin == "command" and chosen not in values:
                self.notes.append(
                    f"the program printed {key} {chosen}, the command line says {values[0]}: "
                    "what the program printed is used"
                )
        return chosen


def starts(found) -> bool:
    """Whether what a line says begins a run by itself: it names a model with a header, or is a command."""
    return _names_model(found) or any(key == "command" for key, _, _ in found)


def _names_model(found):
    return any(key == "model" and origin == "header" for key, _, origin in found)
