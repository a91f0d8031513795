"""Findings on what is asked for: nodes, GPUs, tasks and cores, by the rule of the site and by what is started."""

import itertools

from labs.printed import several
from labs.slurm import directives
from labs.slurm.check.finding import error


def findings(subject):
    """The first finding on each part of the job: what comes after it may follow from it."""
    for index, (part, asked) in enumerate(zip(subject.meant.parts, subject.asked, strict=True)):
        trainings = [one for one in subject.trainings if one.part == index]
        for look in (_nodes, _gpus, _tasks, _workers, _cores):
            found = list(itertools.islice(look(subject, part, asked, trainings), 1))
            yield from found
            if found:
                break


def _nodes(subject, part, asked, _):
    if asked["nodes"] > (most := subject.site.nodes_max):
        problem = f"{asked['nodes']} nodes: {subject.site.name} has {most}."
        yield error("too_many_nodes", part.line("nodes"), problem, "The job is refused.", f"Write --nodes={most}.")


def _gpus(subject, part, asked, trainings):
    gpus, most, given = asked["gpus_per_node"], subject.site.gpus, part.value("gres") or ""
    if gpus is None or not most or (gpus == 0 and ("gpu" in given or subject.miswritten("gpu"))):
        return  # its name is wrong, which is told
    elsewhere = [index for index, other in enumerate(subject.asked) if other["gpus_per_node"]]
    known = [one for one in trainings if one.kind]
    if gpus == 0 and known and elsewhere:
        problem = f"{known[0].script.name} starts in part {known[0].part} of the job, which asks for no GPU."
        why = "srun starts in the first part of a heterogeneous job, unless it is told another."
        yield error("no_gpu", known[0].line_number, problem, why, f"Write srun --het-group={elsewhere[0]}.")
    elif gpus == 0 and (known or (subject.untried and not elsewhere)):
        each = [asked["tasks_per_node"] if one.kind == "horovod" else one.workers for one in known]
        fix = _write(subject.site, part, ("gres", f"gpu:{min(max(filter(None, each), default=most), most)}"))
        why = "The job gets cores only; TensorFlow trains on them, slowly and without an error."
        severity = "error" if known else "note"
        yield error("no_gpu", part.line(), "The script asks for no GPU.", why, fix, severity)
    elif gpus > most:
        problem = f"{gpus} GPUs per node: a node of {subject.site.name} has {most}."
        why = "SLURM refuses the job; more GPUs are on more nodes."
        option = _gpu_option(part, most, asked["nodes"])
        line = part.line("gres", "gpus-per-node", "gpus", "gpus-per-task")
        tasks = [] if asked["tasks_per_node"] in (None, 1) else _task_options(part, most, asked["nodes"])
        yield error("too_many_gpus", line, problem, why, _write(subject.site, part, option, *tasks))


def _tasks(subject, part, asked, trainings):
    """Tasks that do not fit the way of training."""
    nodes, gpus, here = (asked[name] for name in ("nodes", "gpus_per_node", "tasks_per_node"))
    if not gpus or here is None:
        return
    site, line = subject.site, part.line("ntasks", "ntasks-per-node", "nodes")
    if gpus == 1 < here <= site.gpus and (part.value("gres") or "").partition("(")[0] == "gpu":
        problem = f"--gres=gpu without a number is 1 GPU on each node, for {here} tasks."
        why = "All tasks of a node share it, or find no GPU."
        yield error("one_gpu", part.line("gres"), problem, why, _write(site, part, ("gres", f"gpu:{here}")))
    elif any(one.kind == "horovod" for one in trainings):
        if here != gpus:
            problem = f"{several(here, 'task')} and {several(gpus, 'GPU')} on each node."
            if part.find("ntasks") and part.find("ntasks-per-node"):
                problem += " --ntasks counts; with it --ntasks-per-node is only the most that a node may have."
            why = "Horovod needs one process for each GPU: with fewer, GPUs are idle; with more, processes share one."
            fix = _write(site, part, *_task_options(part, gpus, nodes))
            yield error("tasks_and_gpus", line, problem, why, fix)
        return
    mirrored = [one for one in trainings if one.kind == "mirrored"]
    copies = [one for one in mirrored if (one.tasks or 0) > 1]
    if copies:
        one = copies[0]
        problem = f"{one.launcher_name} starts {one.script.name} {one.tasks} times."
        why = "MirroredStrategy is one process that uses all GPUs: these would be trainings of their own, each on all "
        why += "GPUs, that overwrite each other's files."
        fix = _write(site, part, *_task_options(part, 1, 1), ("nodes", 1)) if asked["tasks"] > 1 else None
        yield error("copies", one.line_number, problem, why, fix or f"Remove {one.launcher_name} and its options.")
    elif sum(one.call.background for one in mirrored) > 1:
        return  # several trainings at the same time, which share what the job has
    elif mirrored and asked["tasks"] > 1:
        what = several(nodes, "node") if nodes > 1 else several(asked["tasks"], "task")
        why = "It is one process that uses the GPUs of one node; all others, with their cores and GPUs, would be idle."
        options = [*_task_options(part, 1, 1), *([("nodes", 1)] if nodes > 1 else [])]
        line = part.line("nodes") if nodes > 1 else line
        yield error("idle", line, f"{what} for MirroredStrategy.", why, _write(site, part, *options))
    elif mirrored and nodes > 1:
        why = "It uses the GPUs of one node; the other nodes would be paid for and stay idle."
        fix = _write(site, part, ("nodes", 1))
        yield error("idle", part.line("nodes"), f"{nodes} nodes for MirroredStrategy.", why, fix)


def _workers(subject, part, asked, trainings):
    """More workers than GPUs: in the job, in the step that srun starts, or in CUDA_VISIBLE_DEVICES."""
    here = asked["gpus_per_node"]
    for one in trainings if here else ():
        workers = one.workers
        if one.kind == "horovod" and workers:
            workers = -(-workers // (directives.number(one.launcher and one.launcher.env.get("SLURM_NNODES")) or 1))
        if not one.kind or not workers:
            continue
        name, line, gpus, visible = one.script.name, one.line_number, one.gpus(here), one.visible()
        seen = [word for word in (visible or "").split(",") if word.strip() not in ("", "-1", "NoDevFiles")]
        if gpus and workers > gpus and gpus < here:
            problem = f"srun gives its step {several(gpus, 'GPU')}, and {name} has {workers} workers on the node."
            why = "A step sees only its own GPUs: the training stops with an error, or ranks share one."
            yield error(
                "step_gpus", line, problem, why, "Remove the GPUs from srun's options: the step gets the job's."
            )
        elif len(seen) > here or (one.kind == "mirrored" and 0 < len(seen) < workers):
            gap = f"leaves {several(len(seen), 'GPU')} for {workers} workers of {name}"
            gap = f"names {len(seen)} GPUs, and the job has {here} on a node" if len(seen) > here else gap
            why = "Workers find no GPU, or several of them take the same one."
            fix = "Remove CUDA_VISIBLE_DEVICES: SLURM sets it to the GPUs of the job."
            yield error("visible", line, f"CUDA_VISIBLE_DEVICES={visible} {gap}.", why, fix)
        elif one.kind == "mirrored" and workers > here:
            problem = f"--n_gpus {workers}, but the job has {several(here, 'GPU')} on its node."
            why = "The training stops with an error when it asks for the GPU that is not there."
            fix = f"Train on {here} at most."
            if workers <= subject.site.gpus:
                fix = _write(subject.site, part, _gpu_option(part, workers, asked["nodes"]))
            yield error("workers_without_gpu", line, problem, why, fix)


def _cores(subject, part, asked, _):
    """CPUs that the site's rule does not give to that many GPUs."""
    site, gpus, cpus = subject.site, asked["gpus_per_node"], asked["cpus_per_node"]
    least, most, threads = _allowed(site, part, gpus or 0)
    if not site.gpus or cpus is None or (not gpus and cpus <= most) or part.find("exclusive") or least <= cpus <= most:
        return
    tasks = asked["tasks_per_node"] or 1
    said = f"{tasks} tasks with {cpus // tasks} CPUs each are {cpus}" if tasks > 1 else f"the script asks for {cpus}"
    span = f"{least}" if least == most else f"{least} to {most}"
    rule = f", with one thread of each core: it has {most} cores for these" if threads else ""
    problem = f"Too {'few' if cpus < least else 'many'} CPUs: {said}, and {several(gpus, 'GPU')} of a node of "
    problem += f"{site.name} go with {span}{rule}."
    why = "With too few, the GPUs wait for data; with too many, others cannot use the node's other GPUs. The site "
    why += "refuses the job, or makes you pay for the idle GPUs."
    severity = "note" if least == 1 and cpus <= site.cpus and not threads else "error"  # a share that nothing enforces
    line = part.line("cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks")
    yield error("cpus", line, problem, why, _write(site, part), severity)


def _allowed(site, part, gpus):
    """(least, most) CPUs per node for a part with that many GPUs; and does it have one thread of each core only?"""
    least, most = site.cpus_for(gpus)
    threads = part.value("hint") == "nomultithread" or part.value("threads-per-core") == "1"
    cores = site.cpus // site.threads_per_core if threads else most
    return min(least, cores), min(most, cores), cores < most


def _gpu_option(part, gpus, nodes):
    """(option, value) that asks for that many GPUs per node, by the option that the part has."""
    if part.find("gpus") and not part.find("gres"):
        return "gpus", gpus * nodes
    return ("gpus-per-node", gpus) if part.find("gpus-per-node") and not part.find("gres") else ("gres", f"gpu:{gpus}")


def _task_options(part, tasks, nodes):
    """[(option, value)] that ask for that many tasks per node, by the option that the part has."""
    both = [("ntasks", tasks * nodes)] * bool(part.find("ntasks"))
    return both + [("ntasks-per-node", tasks)] * (not both or bool(part.find("ntasks-per-node")))


def _write(site, part, *options):
    """The fix that sets options of a part, with the cores that the site's rule then wants."""
    options = [(name, str(value)) for name, value in options if part.value(name) != str(value)]
    asked = part.with_options(options).resources()
    gpus, cpus, tasks = asked["gpus_per_node"] or 0, asked["cpus_per_node"], asked["tasks_per_node"] or 1
    least, most, _ = _allowed(site, part, gpus)
    if cpus is not None and not least <= cpus <= most:
        name, share = ("cpus-per-gpu", gpus) if part.find("cpus-per-gpu") else ("cpus-per-task", tasks)
        options.append((name, str(max(most // share if cpus > most else -(-least // share), 1))))
    return f"Write {' and '.join(f'--{name}={value}' for name, value in options)}."
