"""What notebook 08 takes over from earlier notebooks: runs of the smaller network, and the script for many ranks."""

from pathlib import Path

from labs import blanks, jobs
from labs.measure import study

SMALL = "ResNet50V2"


def earlier(plan, name, strategy):
    """Run records of your ResNet50V2 on each of the plan's numbers of workers, the files `name`_w1.json and so on.

    An empty list if one is missing, did not finish, or is of other sizes or versions: then no comparison would be fair.
    """
    files = {workers: jobs.folder() / f"{name}_w{workers}.json" for workers in plan.workers}
    same = (study.reusable(file, study.configuration(plan, SMALL, n, strategy)) for n, file in files.items())
    return list(files.values()) if all(same) else []


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
