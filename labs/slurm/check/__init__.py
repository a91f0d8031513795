"""What is wrong in a batch script: also what `sbatch --test-only` does not see.

script       all checks of one script, and the report of `labs slurm check`
subject      what all checks look at
finding      one finding
form         directives, files, personal names; where bash ends the script
resources    nodes, GPUs, tasks, cores
commands     what is started
training     one start of a Python script: its launcher, ranks, options, global batch; the same on other nodes
program      what a Python script takes
"""

from labs.slurm.check.finding import ScriptFinding
from labs.slurm.check.script import ScriptError, check_and_try, check_script, report_on_script, scheduler_refusal
