"""Measurements of this machine, by real trainings in processes of their own.

study       models x workers x repeats, as jobs: records, table, plots
maxbatch    the largest batch that fits into memory
allreduce   latency and bandwidth between real ranks
breakdown   where the seconds of a step go, with Horovod or MirroredStrategy
side_by_side    its program for MirroredStrategy
step        one training step, as maxbatch and breakdown take it
compare     two commands, or two commits, in turns
"""
