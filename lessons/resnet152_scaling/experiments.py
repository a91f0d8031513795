"""What notebooks 09 and 10 take over from earlier ones: runs, the largest batch, and the script for many ranks.

Own and recorded runs come from two machines, so a comparison of the two networks never mixes them.
"""

from pathlib import Path

from labs import blanks, jobs
from labs.jobs.job import GOING
from labs.measure import maxbatch, study
from labs.results.run import load

SMALL, LARGE = "ResNet50V2", "ResNet152V2"
MADE_IN = {"MirroredStrategy": "05", "Horovod": "08"}  # notebooks of the smaller network's runs
LARGEST = {(SMALL, 32): 512, (LARGE, 32): 256}  # what a search with 1 GiB found on a machine with 2 cores


def earlier(plan, name, strategy, network=SMALL):
    """Run records of your `network` on each of the plan's numbers of workers, the files `name`_w1.json and so on.

    An empty list if one is missing, did not finish, or is of other sizes or versions: then no comparison would be fair.
    """
    files = {workers: jobs.folder() / f"{name}_w{workers}.json" for workers in plan.workers}
    same = (study.reusable(file, study.configuration(plan, network, n, strategy)) for n, file in files.items())
    return list(files.values()) if all(same) else []


def lacks(small_files, large, way, beside=(), going=False):
    """What is missing for a comparison of your own runs of both networks, as a sentence; "" if nothing is.

    small_files: what `earlier` found; large: the same of the larger network, or its jobs.Turns, which may still compute
    if `going`; way: a key of MADE_IN; beside: other records of yours, with which these are compared. Hardware must be
    of one kind.
    """
    missing, now, there, large_files = [], "notebook 09", bool(large), large
    if not isinstance(large, list):
        state = large.state if large.jobs else ""
        now = f"this notebook: {f'yours are {state}' if state else 'none were started'}"
        there = state == "finished" or (going and state in GOING)
        large_files = [job.record for job in large.jobs if state == "finished"]
    if not small_files:
        missing.append(f"finished runs of {SMALL} with {way}, of these sizes and versions (notebook {MADE_IN[way]})")
    if not there:
        missing.append(f"finished runs of {LARGE} with {way} ({now})")
    if missing:
        return f"You have no {'; no '.join(missing)}."
    hardware = sorted({str(load(file).hardware) for file in (*small_files, *large_files, *beside)})
    return f"Your own runs come from different hardware: {', '.join(hardware)}." if len(hardware) > 1 else ""


def largest_batch(model, image_size):
    """(the largest batch that the search of T8 found, "measured"); without a search of both networks with the same
    memory one of another machine and "recorded"; where there is no recorded one either, None. A printed line says why.
    """
    recorded = LARGEST.get((model, image_size))
    try:
        if found := maxbatch.largest_kept(model, image_size, {SMALL, LARGE} - {model}):
            return found, "measured"
        why = "" if recorded else "no search of T8 (notebook 09) is kept here"
    except maxbatch.BatchError as problem:
        why = str(problem)
    if why:
        print(f"{model}: {why}.")
    return recorded, "recorded"


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
