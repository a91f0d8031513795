"""Large batches, several runs at once, one late worker (W1).

one_rate      one run with a given rate, on given cores (a program)
late_workers  a server and workers of which one is late: wait for it, or leave it out (a program)

Its other experiments and its figures are those of lessons.when_workers_do_not_help: small, trials, pictures, compared.
"""
