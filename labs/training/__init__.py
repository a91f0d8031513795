"""Inside a training process: options, repeats, and the recorder that leaves the run record.

arguments   arguments, parse: the options of every training script
observed    what the recorder sees itself, and where the script told it something else
recorder    Recorder: the Keras callback that leaves the run record (labs.results.run); repeats of a training
program     the training program of `labs study`
"""

from labs.training.arguments import arguments, parse
from labs.training.recorder import Recorder, reinitialise, repeats

__all__ = ["Recorder", "arguments", "parse", "reinitialise", "repeats"]
