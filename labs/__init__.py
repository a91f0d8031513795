"""The helper package of the course. Importing it loads none of its packages. The docstring of each says what it offers.

Beside it stand `lessons`, what belongs to single notebooks, and `teaching`, for instructors and authors. Each imports
only those before it: labs, lessons, teaching. Inside of labs nothing imports what stands above it (pyproject.toml,
[tool.importlinter]):

    cli                          the command `labs`
    report                       the report on all tasks as PDF, and what is handed in
    course                       starting over, a newer release
    checks                       answers judged (by lessons/NAME/questions.py, tasks.toml); points and answers kept
    measure                      studies, the largest batch, the all-reduce, the parts of a step
    show                         figures, tables, widgets
    jobs                         a program or batch script run anywhere (by SLURM, or by bash here), in turns; the
                                 launchers' command lines; ended when the notebook's kernel is gone (guard); which rank
                                 of a job that hangs waits for what (why)
    slurm                        batch scripts: their directives read, tried out, judged by a site's rules before they
                                 are submitted (check)
    sandbox                      untrusted code, run where it reaches nothing
    training, hvd, waiting       inside a training process; Horovod's names on Keras 3; waiting for a turn
    data, models, doctor         data sets and batches; networks and what they need; what this machine lacks
    results, recorded            records and logs in numbers with intervals; which rounds were too disturbed by other
                                 programs to count; runs that come with the kit

Modules that packages share: blanks (what is still to be filled in), command_line (commands and their options), compat
(private parts of TensorFlow, Keras and Horovod), devices (what computes here, also as records say it; which core or GPU
a worker, as a replica of MirroredStrategy, or a rank gets), errors, files (written atomically, locked, moved aside by a
run's name), presets (the sizes of a study by name: images, epochs), printed (text for people and programs: digits,
plurals, JSON; values grouped for it), ranks (what must be equal on all of them, and shards that must be disjoint),
schema (files checked: a mistake is one line), stacks (a process writes its stack, for `labs why`: why a job hangs).

The training scripts that students write, also the one that saves and resumes, are no part of the package: whole in
solutions/scripts/, with blanks in notebooks/scripts/.

TensorFlow's start-up messages are silenced here, before anything imports it: the standard error of a run is evidence
and stays readable. oneDNN is turned on for every CPU: TensorFlow has it on only for CPUs with instructions for neural
networks (AVX512_VNNI and newer); on one without them, ResNet50V2 trains 4.8 times as fast with it (docs/measured.md).
Two lines remain, each twice, which TensorFlow prints before it reads its settings: "WARNING: All log messages before
absl::InitializeLog() ..." and "oneDNN custom operations are on ...".
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # errors stay visible
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

__version__ = "0.1.0"
