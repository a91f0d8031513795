"""What Python runs first in every process of a job: labs.jobs puts this folder on PYTHONPATH.

labs.quiet is installed also where TensorFlow is imported before labs, as by horovodrun. The job's program itself, and
no launcher, writes its stacks where it is asked to (labs.stacks). Then the environment's own sitecustomize runs, if it
has one.
"""

import os
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent

runpy.run_path(str(HERE.parents[1] / "quiet.py"))["install"]()
if os.environ.get("LABS_RUN") and os.environ.get("LABS_SCRIPT") in sys.orig_argv[1:2]:
    stem = Path(os.environ["LABS_RUNS"], os.environ["LABS_RUN"])
    runpy.run_path(str(HERE.parents[1] / "stacks.py"))["register"](stem)
hidden = PathFinder.find_spec("sitecustomize", [part for part in sys.path if Path(part or ".").resolve() != HERE])
if hidden and hidden.origin:
    runpy.run_path(hidden.origin)
