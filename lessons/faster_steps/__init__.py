"""Notebooks 24 and 25: their questions, pictures and the small programs that they measure.

limited     six training runs, each with its own bottleneck, and what removes it; recorded, watched by a sampler
feeding     an image folder to decode, the network that reads it, and how long it waits
networks    what small networks are built of
by_hand     what scripts that exchange by hand share: a network, batches, one process to compare with
precision   one network in float32, bfloat16 and float16
recompute   activations kept for the backward pass, or computed again: memory and time
samples     what the sampler wrote beside a run record, read
profile     some steps of `fit`, by TensorFlow's profiler
sampler     a few numbers a second on what a training process uses
watched     pictures of what a training used while it ran
pictures    the other figure of notebook 24
"""
