"""Started by tests of hvd and training: dying.py exception|kill|never RANK [OPTION ...] trains as `labs study`; one
rank dies in the second epoch, or none."""

import os
import signal
import sys

from labs import training
from labs.training import program

die, rank, *options = sys.argv[1:]
begin = training.Recorder.on_epoch_begin


def on_epoch_begin(self, epoch, logs=None):
    if epoch == 1 and self.rank == int(rank) and die == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if epoch == 1 and self.rank == int(rank) and die == "exception":
        raise ZeroDivisionError(f"a mistake of rank {rank}")
    begin(self, epoch, logs)


training.Recorder.on_epoch_begin = on_epoch_begin
program.main(["--model", "SmallCNN", "--images", "64", "--batch_size", "32", "--epochs", "4000", *options])
