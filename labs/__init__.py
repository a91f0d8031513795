"""Helpers of the course: small modules, each one thing. Importing this package loads none of them.

TensorFlow's start-up messages are silenced here, in the environment, before anything imports it:
the standard error of a run is evidence and stays readable.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors stay visible
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

__version__ = "0.1.0"
