"""What is wrong in a batch script: also what `sbatch --test-only` does not see.

script       all checks of one script, and the report of `labs slurm check`
form         directives, files, personal names
resources    nodes, GPUs, tasks, cores
commands     what would be started
rehearse     a script gone through in bash without starting a program
program      what a training script does with its workers
"""

from labs.slurm.check.finding import Finding
from labs.slurm.check.script import check, refusal, report

__all__ = ["Finding", "check", "refusal", "report"]
