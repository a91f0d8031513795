"""What runs say: records and logs read, failures named, numbers with intervals.

load, table, compare    files to runs, runs to a table, two networks to a verdict: what notebooks ask for

run         a run: its record, checked when it is read back; how it was trained
log         read what Keras' fit printed
text        the lines of a log, also of a large one
failures    the line that proves a failure, and what to do
loading     load: files to runs
tables      what `labs results` prints, and the brackets behind its numbers
metrics     epoch time, images/second, speedup, efficiency; which rounds were too disturbed by other programs to count
steps       single steps in time, their distribution, and what waiting alone would make of it
intervals   95 % intervals of means and ratios
verdict     is a difference real?
"""

from labs.results.loading import load
from labs.results.tables import table
from labs.results.verdict import compare

__all__ = ["compare", "load", "table"]
