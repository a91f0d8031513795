"""Findings on what is asked for: nodes, GPUs, tasks and cores, by the rule of the site."""

from labs.slurm.check.finding import finding, several


def findings(subject, trainings):
    """All findings of this theme. trainings: the Trainings that the script would start."""
    asked, site = subject.asked, subject.site
    gpus, nodes = asked["gpus_per_node"], asked["nodes"]
    if nodes and nodes > site.nodes_max:
        yield finding("too_many_nodes", subject.line("nodes"), nodes=nodes, site=site)
    if gpus is None or not site.gpus:
        return
    if gpus == 0 and ("gpu" in (subject.meant.value("gres") or "") or subject.miswritten("gpu")):
        return  # its name is wrong, which is told
    if gpus == 0:
        yield finding("no_gpu", subject.line(), site=site)
    elif gpus > site.gpus:
        line = subject.line("gres", "gpus-per-node", "gpus", "gpus-per-task")
        yield finding("too_many_gpus", line, gpus=gpus, site=site)
    elif subject.meant.parts == 1:  # else each part of the job has tasks of its own
        yield from list(_tasks(subject, trainings)) or list(_used(subject, trainings)) or list(_cores(subject))


def _tasks(subject, trainings):
    """Tasks that do not fit the way of training."""
    nodes, gpus, tasks = (subject.asked[name] for name in ("nodes", "gpus_per_node", "tasks_per_node"))
    if tasks is None:
        return
    line = subject.line("ntasks-per-node", "ntasks", "nodes")
    if any(one.kind == "horovod" for one in trainings):
        if tasks != gpus:
            asked = {"tasks": several(tasks, "task"), "gpus": several(gpus, "GPU"), "number": gpus}
            yield finding("tasks_and_gpus", line, **asked)
        return
    mirrored = [one for one in trainings if one.kind == "mirrored"]
    copies = [one for one in mirrored if one.tasks and one.tasks > 1]
    if copies:
        yield finding("copies", copies[0].line_number, one=copies[0])
    elif sum(one.beside for one in mirrored) > 1:
        return  # several trainings at the same time, which share what the job has
    elif mirrored and (nodes or 1) > 1:
        yield finding("idle_nodes", subject.line("nodes"), nodes=nodes)
    elif mirrored and subject.asked["tasks"] > 1:
        yield finding("idle_tasks", line, tasks=subject.asked["tasks"])


def _used(subject, trainings):
    """More workers than GPUs."""
    gpus = subject.asked["gpus_per_node"]
    more = [one for one in trainings if one.kind == "mirrored" and one.workers and one.workers > gpus]
    if more:
        most = max(more, key=lambda one: one.workers)
        asked = {"workers": most.workers, "gpus": several(gpus, "GPU"), "number": gpus}
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
    yield finding(
        "cpus",
        subject.line("cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks"),
        few_or_many="few" if cpus < least else "many",
        asked=f"{tasks} tasks with {cpus // tasks} CPUs each are {cpus}"
        if tasks > 1
        else f"the script asks for {cpus}",
        gpus=several(gpus, "GPU"),
        site=site,
        allowed=f"{least}" if least == most else f"{least} to {most}",
        write=f"{high}" if low >= high else f"{low} to {high}",
    )
