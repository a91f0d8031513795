"""With WARM=1, programs of the tests that import TensorFlow are forked from a process that has done so.

To import it takes 6 s of processor time, and 200 programs of the suite do. A line in the environment's folder lets each
Python look for that process first (warm_client.py); the process itself is warm_server.py.
"""

import contextlib
import os
import sysconfig
from pathlib import Path

HOOK = Path(sysconfig.get_path("purelib"), "labs_tests_warm.pth")
LINE = "sys.path.insert(0, os.environ['WARM_CODE']); import warm_client; sys.path.pop(0); warm_client.hand_over()"


def begin(shared):
    """From here on, where WARM=1. shared: a folder of this run of the tests; its server ends with this process."""
    if os.environ.get("WARM") == "1":
        os.environ |= {"WARM_SERVER": str(shared / "server"), "WARM_OWNER": str(os.getpid())}
        os.environ["WARM_CODE"] = str(Path(__file__).parent)
        with contextlib.suppress(OSError):  # a folder that cannot be written: everything starts cold
            HOOK.write_text(f"import os, sys; exec(\"if os.environ.get('WARM_SERVER'): {LINE}\")\n")


def end():
    if os.environ.get("WARM") == "1":  # or the line is that of another run
        HOOK.unlink(missing_ok=True)
