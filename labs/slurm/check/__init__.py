"""What is wrong in a batch script: also what `sbatch --test-only` does not see.

script       all checks of one script, and the report of `labs slurm check`
finding      one finding, and what all checks look at
form         directives, files, personal names
resources    nodes, GPUs, tasks, cores
commands     what would be started
starts       which programs a script would start, by reading it
bash, builtins, words, arithmetic    a text of bash followed on paper; nothing of it is run
program      what a training script does with its workers

findings.toml has the words of all findings.
"""

from labs.slurm.check.finding import Finding
from labs.slurm.check.script import ScriptError, check, refusal, report

__all__ = ["Finding", "ScriptError", "check", "refusal", "report"]
