"""SLURM on paper: what a site allows, what a batch script asks for, what is wrong with it.

sites        a site's description, slurm/sites/<site>.toml
directives   the #SBATCH lines, read as sbatch reads them
variables    the variables of a job with its directives
options.toml the options of sbatch and of the launchers that reading a script must know
check/       findings on a batch script: its form, what it asks for against the site's rules (resources), what it
             starts, and what its trial saw
trial/       a batch script tried out in the sandbox
"""
