"""A real SLURM of simulated nodes on this machine: to practise on (`make cluster`), and for the tests.

practice    start, stop, ask; configured like a site of the course
keeper      the process that keeps its daemons and all that they start
"""
