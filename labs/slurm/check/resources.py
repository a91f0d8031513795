"""Findings on what is asked for: nodes, GPUs, tasks and cores, by the rule of the site."""

from labs.printed import several
from labs.slurm import directives
from labs.slurm.check.finding import finding


def findings(subject):
    """All findings of this theme."""
    asked, site = subject.asked, subject.site
    gpus, nodes = asked["gpus_per_node"], asked["nodes"]
    if nodes and nodes > site.nodes_max:
        yield finding("too_many_nodes", subject.line("nodes"), nodes=nodes, site=site)
    threads = list(_threads(subject))
    yield from threads
    if gpus is None or not site.gpus or threads:
        return
    if gpus == 0 and ("gpu" in (subject.meant.value("gres") or "") or subject.miswritten("gpu")):
        return  # its name is wrong, which is told
    if gpus == 0 and any(one.kind for one in subject.trainings):
        yield finding("no_gpu", subject.line(), site=site)
    elif gpus == 0:  # a job that trains nothing needs none
        if subject.untried:
            yield finding("no_gpu", subject.line(), severity="note", site=site)
    elif gpus > site.gpus:
        line = subject.line("gres", "gpus-per-node", "gpus", "gpus-per-task")
        yield finding("too_many_gpus", line, gpus=gpus, site=site)
    elif subject.meant.parts == 1:  # else each part of the job has tasks of its own
        yield from list(_tasks(subject)) or list(_used(subject)) or list(_cores(subject))


def _threads(subject):
    """More CPUs than cores, where a job has one thread of a core."""
    asked, site = subject.asked, subject.site
    one = subject.meant.find("hint") or subject.meant.find("threads-per-core")
    cores = site.cpus // site.threads_per_core
    if one and one.value in ("nomultithread", "1") and (asked["cpus_per_node"] or 0) > cores:
        line, cpus = subject.line("cpus-per-task", "cpus-per-gpu", one.option), asked["cpus_per_node"]
        yield finding("threads", line, one=one, cpus=cpus, cores=cores, site=site)


def _tasks(subject):
    """Tasks that do not fit the way of training."""
    nodes, gpus, tasks = (subject.asked[name] for name in ("nodes", "gpus_per_node", "tasks_per_node"))
    if tasks is None:
        return
    line, trainings = subject.line("ntasks-per-node", "ntasks", "nodes"), subject.trainings
    if any(one.kind == "horovod" for one in trainings):
        if tasks != gpus:
            asked = {"tasks": several(tasks, "task"), "gpus": several(gpus, "GPU"), "number": gpus}
            yield finding("tasks_and_gpus", line, **asked)
        return
    mirrored = [one for one in trainings if one.kind == "mirrored"]
    copies = [one for one in mirrored if one.tasks and one.tasks > 1]
    if copies:
        yield finding("copies", copies[0].line_number, one=copies[0])
    elif sum(one.call.background for one in mirrored) > 1:
        return  # several trainings at the same time, which share what the job has
    elif mirrored and (nodes or 1) > 1:
        yield finding("idle_nodes", subject.line("nodes"), nodes=nodes)
    elif mirrored and subject.asked["tasks"] > 1:
        yield finding("idle_tasks", line, tasks=subject.asked["tasks"])


def _used(subject):
    """More workers than GPUs in the job, or in the step that srun starts."""
    here = subject.asked["gpus_per_node"]
    for one in subject.trainings:
        gpus, workers = one.gpus(here), one.workers
        if one.kind == "horovod" and workers:
            nodes = directives.number(one.launcher.env.get("SLURM_NNODES")) if one.launcher else 1
            workers = -(-workers // (nodes or 1))
        if not one.kind or not workers or not gpus or workers <= gpus:
            continue
        if gpus < here:
            yield finding("step_gpus", one.line_number, one=one, gpus=several(gpus, "GPU"), workers=workers)
            return
    mirrored = [one for one in subject.trainings if one.kind == "mirrored" and (one.workers or 0) > here]
    if mirrored:
        most = max(mirrored, key=lambda one: one.workers)
        asked = {"workers": most.workers, "gpus": several(here, "GPU"), "number": here}
        yield finding("workers_without_gpu", most.line_number, **asked)


def _cores(subject):
    """CPUs that the site's rule does not give to that many GPUs."""
    asked, site = subject.asked, subject.site
    gpus, cpus = asked["gpus_per_node"], asked["cpus_per_node"]
    if cpus is None or subject.meant.find("exclusive"):
        return
    least, most = site.cpus_for(gpus)
    if least <= cpus <= most:
        return
    tasks = asked["tasks_per_node"] or 1
    low, high = -(-least // tasks), most // tasks
    said = f"{tasks} tasks with {cpus // tasks} CPUs each are {cpus}" if tasks > 1 else f"the script asks for {cpus}"
    gaps = {"few_or_many": "few" if cpus < least else "many", "asked": said, "gpus": several(gpus, "GPU"), "site": site}
    gaps |= {"allowed": f"{least}" if least == most else f"{least} to {most}"}
    gaps |= {"write": f"{high}" if low >= high else f"{low} to {high}"}
    severity = "note" if least == 1 and cpus <= site.cpus else None  # a fair share, which nothing enforces
    line = subject.line("cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks")
    yield finding("cpus", line, severity, **gaps)
