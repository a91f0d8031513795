"""Run a program as a job, wherever it runs: a process here, ranks here, a batch script here or in SLURM's queue.

anywhere    start, run: the one interface; batch scripts are submitted, or run by bash here
turns       Turns: trainings that are compared, an epoch of one, an epoch of the other; orders of the turns
job         a job, its files, how it is followed and explained
local       a process of this machine: started, stopped (by guard, which stands between)
slurm_job   a job in SLURM's queue; queue: SLURM's own commands
launch      the words of the command that starts connected ranks; local_srun: what srun does, on this machine
guard       ends all that a job of this machine has started, when the job ends or the notebook's kernel dies
bar         the progress bar
why         where the ranks of a job are (labs.stacks writes it in each of them), who waits for whom
"""

from labs.jobs.anywhere import folder, run, start
from labs.jobs.job import Job
from labs.jobs.turns import Turns, orders
