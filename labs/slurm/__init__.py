"""SLURM: a site's description, the job scripts made from it, their check, and the queue.

    slurm/sites/<site>.toml + solutions/slurm/X.sh -> solutions/slurm/<site>/X.sh (complete), slurm/<site>/X.sh (blanks)
"""
