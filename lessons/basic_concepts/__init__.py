"""Why many devices, and how to divide the work (T1).

laws        Amdahl's and Gustafson's laws of speedup
pipeline    data, model and pipeline parallelism as the timeline of devices
pictures    the figures
"""
