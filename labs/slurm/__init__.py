"""SLURM on paper: what a site allows, what a batch script asks for, what is wrong with it.

sites        a site's description, slurm/sites/<site>.toml
directives   the #SBATCH lines, read as sbatch reads them
variables    the variables of a job with its directives
trial/       a batch script tried out in the sandbox: what it starts, told without a judgement
check/       findings on a batch script, `labs slurm check`: its form, what it asks for against the site's rules
             (resources), what its trial saw it start (commands)
"""
