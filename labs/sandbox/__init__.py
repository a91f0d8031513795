"""Untrusted code, run where it can reach nothing: bubblewrap (`bwrap`), with limits on all that it starts.

run_walled         runs a program and returns its SandboxOutcome; the other modules say what it sees and what it may use
sandbox_missing    why there is no sandbox on this machine, or None
interpreter        what Python needs to see, for `read_only`

run             one program from its start to its last process
walls           bubblewrap's options: what is seen inside, and as which user
refused_calls   system calls that are refused inside
limits          what all processes together may use, and what each limit is enforced by; a check in a notebook, outside
                of any sandbox, is ended by labs.checks.student_code
written         the files that it leaves, read from outside

Nothing is left behind: the files lie in memory and go with the last process, and all processes with the first one,
also if this process is killed. A caller that gets a SandboxOutcome judges it outside: it is data, of any content.
"""

from labs.sandbox.limits import Limits
from labs.sandbox.run import SandboxError, SandboxOutcome, run_walled, sandbox_missing
from labs.sandbox.walls import interpreter
