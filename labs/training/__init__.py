"""Inside a training process: options, repeats, and the recorder that leaves the run record.

recorder    arguments, parse, repeats, Recorder
program     the training program of `labs study`
"""

from labs.training.recorder import Recorder, RecordError, arguments, parse, reinitialise, repeats, write_record

__all__ = ["RecordError", "Recorder", "arguments", "parse", "reinitialise", "repeats", "write_record"]
