"""What Python runs first in every process of a job: labs.jobs puts this folder on PYTHONPATH.

labs.quiet is installed also where TensorFlow is imported before labs, as by horovodrun. Then the environment's own
sitecustomize runs, if it has one.
"""

import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent

runpy.run_path(str(HERE.parents[1] / "quiet.py"))["install"]()
hidden = PathFinder.find_spec("sitecustomize", [part for part in sys.path if Path(part or ".").resolve() != HERE])
if hidden and hidden.origin:
    runpy.run_path(hidden.origin)
