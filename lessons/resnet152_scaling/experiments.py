"""What notebooks 09 and 10 take over from earlier ones: runs, and the largest batch.

Own and recorded runs come from two machines, so a comparison of the two networks never mixes them.
"""

import json
from contextlib import suppress

from labs import jobs
from labs.errors import UseError
from labs.measure import maxbatch, study
from labs.results.run import load_record

SMALL, LARGE = "ResNet50V2", "ResNet152V2"
LARGEST = {(SMALL, 32): 512, (LARGE, 32): 256}  # what a search with 1 GiB found on a machine with 2 cores


def earlier(plan, name, strategy, network=SMALL):
    """Run records of your `network` on each of the plan's numbers of workers, the files `name`_w1.json and so on.

    An empty list if one is missing, did not finish, or is of other sizes or versions: then no comparison would be fair.
    """
    files = {workers: jobs.folder() / f"{name}_w{workers}.json" for workers in plan.workers}
    same = (study.reusable(file, study.configuration(plan, network, n, strategy)) for n, file in files.items())
    return list(files.values()) if all(same) else []


def lacks(small_files, large_files):
    """What is missing for a comparison of your own finished runs of both networks, as a sentence; "" if nothing is.

    small_files, large_files: of each network, as `earlier` finds them. Hardware must be of one kind.
    """
    found = {f"{SMALL} (notebook 05)": small_files, f"{LARGE} (notebook 09)": large_files}
    if missing := [network for network, files in found.items() if not files]:
        return f"You have no finished runs, of these sizes and versions, of {' and of '.join(missing)}."
    hardware = sorted({str(load_record(file).hardware) for file in (*small_files, *large_files)})
    return f"Your own runs come from different hardware: {', '.join(hardware)}." if len(hardware) > 1 else ""


def largest_kept(model, image_size, beside):
    """The largest batch that the search of `model` found and kept.

    Raises UseError without one, and if the network `beside` was not searched with the same memory on the same device:
    then the two largest batches cannot be compared.
    """
    result, other = _kept(model, image_size), _kept(beside, image_size)
    if not result:
        raise UseError("no search of T8 (notebook 09) is kept here")
    if maxbatch.conditions(result) != maxbatch.conditions(other):
        budgets = f"{model} ({maxbatch.conditions(result)}) and {beside} ({maxbatch.conditions(other)})"
        raise UseError(f"the largest batches of {budgets} cannot be compared")
    return result["largest"]


def _kept(model, image_size):
    """The result of a search as it was kept; {} if there is none."""
    with suppress(OSError, ValueError):
        return json.loads((jobs.folder() / f"maxbatch_{model}_{image_size}.maxbatch.json").read_text(encoding="utf-8"))
    return {}


def largest_batch(model, image_size):
    """(the largest batch that the search of T8 found, "measured"); without a search of both networks with the same
    memory one of another machine, or None, and "recorded": a printed line says why."""
    try:
        return largest_kept(model, image_size, LARGE if model == SMALL else SMALL), "measured"
    except UseError as problem:
        print(f"{model}: {problem}.")
        return LARGEST.get((model, image_size)), "recorded"
