"""What sbatch does, on this machine: `python -m labs.jobs.sbatch SCRIPT ARGUMENTS...` lets bash run a batch script.

When it ends or is told to, nothing of it stays.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

import psutil

_PATIENCE = 3.0  # seconds that processes have to end when they are told to
PR_SET_CHILD_SUBREAPER = 36  # prctl: children that lose their parent become this process's


def main(arguments):
    """Run bash to its end, as SLURM would: processes that it leaves, or that outlive a stop, are ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)

    def end(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        limit, sign = time.monotonic() + _PATIENCE, signal.SIGTERM
        while left := psutil.Process().children(recursive=True):
            for child in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.send_signal(sign)
            psutil.wait_procs(left, timeout=max(0.1, limit - time.monotonic()))
            sign = signal.SIGKILL
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def stop(*_):
        end()
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    code = subprocess.Popen(["bash", *arguments]).wait()
    end()
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1:])
