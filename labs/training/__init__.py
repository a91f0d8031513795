"""Inside a training process: options, repeats, and the recorder that leaves the run record.

arguments   arguments, parse: the options of every training script
repeats     repeats: one training after another, each from new weights
sampler     Sampler: a few numbers a second on what the process uses, beside the record
observed    what the recorder sees itself, and where the script told it something else
recorder    Recorder: the Keras callback that leaves the run record (labs.results.run)
mirrored    what Keras' optimizers do differently under MirroredStrategy: refused, or told
program     the training program of `labs study`
"""

from labs.training.arguments import arguments, parse
from labs.training.recorder import Recorder
from labs.training.repeats import reinitialise, repeats

__all__ = ["Recorder", "arguments", "parse", "reinitialise", "repeats"]
