"""What notebook 08 takes over from earlier notebooks: runs of the smaller network, and the script for many ranks.

Own and recorded runs are of two machines, so they never stand for the two networks of one comparison.
"""

from pathlib import Path

from labs import blanks, jobs
from labs.jobs.job import GOING
from labs.measure import study
from labs.results.run import load_record

SMALL, LARGE = "ResNet50V2", "ResNet152V2"
MADE_IN = {"MirroredStrategy": "05", "Horovod": "07"}  # notebooks of the smaller network's runs


def earlier(plan, name, strategy):
    """Run records of your ResNet50V2 on each of the plan's numbers of workers, the files `name`_w1.json and so on.

    An empty list if one is missing, did not finish, or is of other sizes or versions: then no comparison would be fair.
    """
    files = {workers: jobs.folder() / f"{name}_w{workers}.json" for workers in plan.workers}
    same = (study.reusable(file, study.configuration(plan, SMALL, n, strategy)) for n, file in files.items())
    return list(files.values()) if all(same) else []


def lacks(small_files, turns, way, beside=(), going=False):
    """What is missing for a comparison of your own runs of both networks, as a sentence; "" if nothing is.

    small_files: what `earlier` found; turns: the trainings of the larger network, which may still compute if `going`;
    way: a key of MADE_IN; beside: other records of yours, with which these are compared. Hardware must be of one kind.
    """
    missing, finished = [], bool(turns.jobs) and turns.state == "finished"
    if not small_files:
        missing.append(f"finished runs of {SMALL} with {way}, of these sizes and versions (notebook {MADE_IN[way]})")
    if not (finished or (turns.jobs and going and turns.state in GOING)):
        now = f"yours are {turns.state}" if turns.jobs else "none were started"
        missing.append(f"finished runs of {LARGE} with {way} (this notebook: {now})")
    if missing:
        return f"You have no {'; no '.join(missing)}."
    files = (*small_files, *(job.record for job in turns.jobs if finished), *beside)
    hardware = sorted({str(load_record(file).hardware) for file in files})
    return f"Your own runs are of different hardware: {', '.join(hardware)}." if len(hardware) > 1 else ""


def both(files):
    """The files of the smaller network, then those of the larger one: each has the same colour in all plots."""
    return [file for name in (SMALL, LARGE) for file in files if file.name.startswith(name)]


def with_network(script, network):
    """Copy a script of ResNet50V2 into the folder of the runs, with another network in model, log and record.

    Returns the path of the copy; None while the script has blanks, which one printed line says.
    """
    script = Path(script)
    if blanks.blanks(script):
        print(f"{script.name} has blanks. Finish it in the notebook that it comes from, then run this cell again.")
        return None
    copy = jobs.folder() / script.name.replace("ResNet50", network)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(script.read_text(encoding="utf-8").replace(SMALL, network), encoding="utf-8")
    return copy
