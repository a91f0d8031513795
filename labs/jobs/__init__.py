"""Run a program as a job, wherever it runs: a process here, ranks here, a batch script here or in SLURM's queue.

anywhere    start, run, find: the one interface
turns       Turns: trainings that are compared, an epoch of one, an epoch of the other; orders: drawn, round by round
job         a job, its files, how it is followed and explained
local       a process of this machine
batch       batch scripts: submitted, or run by bash here
slurm       a job in SLURM's queue; queue: SLURM's own commands
launch      the command that starts connected ranks
guard       between a job of this machine and us: when it ends, nothing of it stays
srun        what srun does, on this machine
bar         the progress bar
standing    asks the ranks of a job for their stacks (labs.stacks answers in each of them)
standstill  what they say, in words: where each rank is, who waits for whom
startup/    what Python runs first in each process of a job
"""

from labs.jobs.anywhere import find, folder, run, start
from labs.jobs.job import Job, JobError
from labs.jobs.turns import Turns, orders
