"""Why more workers may not help, measured: exchange that costs too much, and exchange less often.

small         a network of one hidden layer on the bundled digits, in NumPy: hundreds of runs in a minute
trials        experiments with it: batch sizes, steps to an accuracy, workers that average now and then
steps         seconds of steps of small and large networks, on one rank and on two (a program for ranks)
equal_ranks   what a student's local SGD does on 2 ranks, beside what it should do
pictures      the figures of notebooks 22 and 23
compared      their tables that compare trainings
"""
