"""Why more workers may not help, measured (W1).

small         a network of one hidden layer on the bundled digits, in NumPy: hundreds of trainings in a minute
trials        experiments with it: batch sizes, steps to an accuracy, workers that average now and then, stopping early
steps         seconds of steps of small and large networks, on one rank and on several (a program for ranks)
equal_ranks   what a student's local SGD does on 2 ranks, beside what it should do
one_rate      one training with a given rate, on given cores (a program)
late_workers  a server and workers of which one is late: wait for it, or leave it out (a program)
pictures      the figures of the notebook
"""
