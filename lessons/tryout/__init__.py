"""A student's training script tried out: a process of its own, a few images, a tiny network; what happened, as facts.

client      try_out_script: the facts of a script, from the kernel's side
server      the process that imports TensorFlow once and forks one for each performance
play        one performance: the script runs among stand-ins, and what it does is written down
standins    the stand-ins: networks, data, devices, `fit`
ranks       the stand-ins of a Horovod rank
"""

from lessons.tryout.client import Performance, horovod_numbers, try_out_script

__all__ = ["Performance", "horovod_numbers", "try_out_script"]
