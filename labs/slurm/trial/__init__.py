"""A batch script tried out: bash runs it in the sandbox, with stand-ins for Python, srun, and what a cluster has.

Its variables are those of a job with its directives; nothing is trained or submitted. What is told is what happened:
which programs were started, with which words, at which line; or how bash says that it fails.

script       try_out: a script's text from its beginning to its end, or to where it fails
calls        the programs that it started, as the stand-ins have written them down
stand_in.sh  what stands for a program
before.sh    what bash reads before the script: traps that tell its lines
"""

from labs.slurm.trial.calls import UNKNOWN, Call
from labs.slurm.trial.script import Tried, similar_variable, try_out
