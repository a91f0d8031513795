"""Measurements of this machine, by real trainings in processes of their own.

study       models x workers x repeats, as jobs: records, table, plots
maxbatch    the largest batch that fits into memory
allreduce   latency and bandwidth between real ranks
breakdown   where the seconds of a step go; its program steps
step        one training step, as maxbatch and breakdown take it
"""
