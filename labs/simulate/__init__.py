"""Small simulators of what the course explains, in NumPy at most: each from a formula, each with its source.

reduce      ring all-reduce chunk by chunk; what a ring and parameter servers cost
memory      what a training step keeps on each device, and what sharding divides
"""
