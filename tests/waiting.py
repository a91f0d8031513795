"""What tests of jobs share: waiting for something to become true, whether a process lives, and what trains at once."""

import time

import psutil

# What a training does, without TensorFlow, under the name that its job gives it: a record that says "running", a
# progress file, a line in .out. python train.py WORKERS SECONDS of TRAINING lasts so long, and ends well.
START = """
import json, os, pathlib, sys, time
has, workers = os.environ.get, [*sys.argv[1:], "1"][0]
batch = has("LABS_JOB") or f"{has('SLURM_JOB_NAME')}_{has('SLURM_JOB_ID')}"
base = pathlib.Path(has("LABS_RUNS"), has("LABS_RUN") or f"{batch}_w{workers}")
told = {"workers": workers.isdigit() and int(workers), "global_batch": 64, "model": "M"}
record = {"version": 2, "name": base.name, "state": "running", "configuration": told, "epochs": [], "kept": "as it was"}
base.with_name(base.name + ".json").write_text(json.dumps(record))
progress = {"epochs_done": 1, "epochs": 4, "step": 3, "steps": 6, "images_per_second": 90.0, "fraction": 0.375}
progress |= {"workers": told["workers"]}
base.with_name(base.name + ".progress").write_text(json.dumps(progress))
print("started", workers, flush=True)
"""
FINISH = """
record |= {"state": "finished", "epochs": [{"repeat": 0, "epoch": 0, "seconds": 2.0 / int(workers), "images": 128}]}
base.with_name(base.name + ".json").write_text(json.dumps(record))
base.with_name(base.name + ".progress").unlink()
"""
TRAINING = f"{START}time.sleep(float(sys.argv[2])){FINISH}"


def until(condition, seconds=300):
    """Wait for a condition; its last value. The limit is for what never comes, also on a busy machine."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def alive(pid):
    """Whether a process with this number runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def begun(job, workers=1):
    """The job, once its training on so many workers has printed `started`."""
    assert until(lambda: job.out.exists() and f"started {workers}\n" in job.out.read_text()), job.explain()
    return job
