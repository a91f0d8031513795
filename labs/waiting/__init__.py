"""What a training does until its turn comes, where several take turns (labs.jobs.Turns).

gate     join, Gate: each epoch waits here, stopped
keeper   the process that stops it, and lets it go on or ends it
"""

from labs.waiting.gate import VARIABLE, Gate, join
