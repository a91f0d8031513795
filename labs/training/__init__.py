"""Inside a training process: options, repeats, and the recorder that leaves the run record.

arguments   arguments, parse: the options of every training script
observed    what the recorder sees of the model: network, strategy, workers, optimizer, images that the steps took
recorder    Recorder: the Keras callback that leaves the run record (labs.results.run); repeats of a training
program     the training program of `labs study`
"""

from labs.training.arguments import arguments, parse
from labs.training.recorder import Recorder, repeats

__all__ = ["Recorder", "arguments", "parse", "repeats"]
