"""Waits for its turn as a training does, then computes for 0.2 s: python takes_turns.py TURNS [crash|last TURN]

Writes a line for each turn into <LABS_RUNS>/<LABS_RUN>.turns: round, order, begin and end of it. In a step of SLURM's
each process is a rank; the last one crashes, and those after the first write .1.turns, .2.turns ...
"""

import os
import sys
import time
from pathlib import Path

from labs import waiting

count, (how, when) = int(sys.argv[1]), sys.argv[2:] or ("never", -1)
rank, ranks = (int(os.environ.get(f"SLURM_{name}", value)) for name, value in (("PROCID", 0), ("NTASKS", 1)))
gate = waiting.join(ranks)
name = f"{os.environ['LABS_RUN']}.{rank}.turns" if rank else f"{os.environ['LABS_RUN']}.turns"
with Path(os.environ["LABS_RUNS"], name).open("w", buffering=1) as told:
    for number in range(count):
        turn = gate.wait()
        begin = time.time()
        if how == "crash" and number == int(when) and rank == ranks - 1:
            sys.exit("this training crashes")
        while time.time() - begin < 0.2 or (how == "last" and number == int(when)):
            pass
        print(turn["round"], turn["order"], begin, time.time(), file=told)
gate.close()
