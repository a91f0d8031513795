"""Measurements of this machine, by real trainings in processes of their own.

study       models x workers x repeats, as jobs: records, table, plots
maxbatch    the largest batch that fits into memory
allreduce   latency and bandwidth between real ranks
breakdown   where the seconds of a step go; breakdown_program: what each of its processes runs
step        one training step, compiled and timed, as maxbatch and breakdown_program take it
"""
