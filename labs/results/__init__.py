"""What runs say: records and logs read, failures named, numbers with intervals.

record      the run record: its form, read, checked and written
run         one configuration and its repeats, from a record or a log
text        the lines of a log, also of a large one
log         read what Keras' fit printed
line        what one line of a log says
failures    the line that proves a failure, and what to do
collect     files and folders to rows: what `labs results` prints
metrics     epoch time, images/second, speedup, efficiency
steps       single steps in time, their distribution, and what waiting alone would make of it
intervals   95 % intervals of means and ratios
verdict     is a difference real?
watched     what a sampler wrote while a run went on
standstill  where the ranks of a running job are, and who waits for whom, in words
"""
