"""What is wrong in a batch script: also what `sbatch --test-only` does not see.

script       all checks of one script, and the report of `labs slurm check`
finding      one finding
form         what is written: blanks, syntax, directives, files, personal names
resources    nodes, GPUs, tasks, cores
commands     what is started, and where bash ends the script
training     one start of a Python script: its launcher, ranks, global batch
"""

from labs.slurm.check.finding import ScriptFinding
from labs.slurm.check.script import look_at, report_on_script
