"""Findings on what is asked for: nodes, GPUs, tasks and cores, by the rule of the site."""

from labs.slurm.check.finding import Finding


def findings(subject, trainings):
    """All findings of this theme. trainings: the Trainings that the script would start."""
    asked, site = subject.asked, subject.site
    gpus, nodes = asked["gpus_per_node"], asked["nodes"]
    if nodes and nodes > site.nodes_max:
        yield Finding(
            subject.line("nodes"),
            f"{nodes} nodes: {site.name} has {site.nodes_max}.",
            "The job is refused.",
            "Ask for fewer nodes.",
            True,
        )
    if gpus is None or not site.gpus:
        return
    if gpus == 0:
        yield Finding(
            subject.line(),
            "The script asks for no GPU.",
            "The job gets cores only; TensorFlow trains on them, slowly and without an error.",
            f"Add #SBATCH --gres=gpu:N, with N from 1 to {site.gpus}: GPUs on each node.",
            True,
        )
        return
    if gpus > site.gpus:
        yield Finding(
            subject.line("gres", "gpus-per-node", "gpus", "gpus-per-task"),
            f"{gpus} GPUs per node: a node of {site.name} has {site.gpus}.",
            "SLURM refuses the job.",
            f"Ask for {site.gpus} on each node at most, and for more nodes with --nodes.",
            True,
        )
        return
    if subject.meant.refused:
        return  # what is asked for is not known before these are right
    found = list(_tasks(subject, trainings)) or list(_used(subject, trainings)) or list(_cores(subject))
    yield from found


def _tasks(subject, trainings):
    """Tasks that do not fit the way of training."""
    asked = subject.asked
    gpus, tasks = asked["gpus_per_node"], asked["tasks_per_node"]
    if tasks is None:
        return
    line = subject.line("ntasks-per-node", "ntasks", "nodes")
    if any(one.kind == "horovod" for one in trainings):
        if tasks != gpus:
            yield Finding(
                line,
                f"{tasks} task{'s' * (tasks > 1)} and {gpus} GPU{'s' * (gpus > 1)} on each node.",
                "Horovod is one process for each GPU: with fewer, GPUs idle; with more, they fight for one.",
                f"Write --ntasks-per-node={gpus}, or ask for as many GPUs as tasks.",
                True,
            )
        return
    mirrored = [one for one in trainings if one.kind == "mirrored"]
    copies = [one for one in mirrored if one.tasks and one.tasks > 1]
    if copies:
        one = copies[0]
        yield Finding(
            one.line_number,
            f"{one.launcher} starts {one.path.name} {one.tasks} times.",
            "Mirrored"
            f"Strategy is one process that rules all GPUs: these would be {one.tasks} independent trainings, "
            "each on all GPUs, that overwrite each other's files.",
            "Ask for --ntasks=1, or start it without a launcher.",
            True,
        )
    elif mirrored and (asked["nodes"] or 1) > 1:
        yield Finding(
            subject.line("nodes"),
            f"{asked['nodes']} nodes for MirroredStrategy.",
            "It rules the GPUs of one node; the others would be paid for and idle.",
            "Write --nodes=1; over several nodes take Horovod.",
            True,
        )
    elif mirrored and asked["tasks"] > 1:
        yield Finding(
            line,
            f"{asked['tasks']} tasks for MirroredStrategy.",
            "It is one process that rules all GPUs; the cores of the other tasks would idle.",
            "Write --ntasks=1, and all cores in --cpus-per-task.",
            True,
        )


def _used(subject, trainings):
    """More workers than GPUs."""
    gpus = subject.asked["gpus_per_node"]
    more = [one for one in trainings if one.kind == "mirrored" and one.workers and one.workers > gpus]
    if more:
        most = max(more, key=lambda one: one.workers)
        yield Finding(
            most.line_number,
            f"--n_gpus {most.workers}, but the job has {gpus} GPU{'s' * (gpus > 1)} on its node.",
            "The training stops with an error when it asks for the GPU that is not there.",
            f"Ask for gpu:{most.workers} and its cores, or train on {gpus} at most.",
        )


def _cores(subject):
    asked, site = subject.asked, subject.site
    gpus, cpus = asked["gpus_per_node"], asked["cpus_per_node"]
    if cpus is None or subject.meant.find("exclusive"):
        return
    least, most = site.cpus_for(gpus)
    if least <= cpus <= most:
        return
    tasks, each = asked["tasks_per_node"], cpus // (asked["tasks_per_node"] or 1)
    allowed = f"{least}" if least == most else f"{least} to {most}"
    span = (-(-least // tasks), most // tasks)
    write = f"{span[1]}" if span[0] >= span[1] else f"{span[0]} to {span[1]}"
    text = f"{tasks} tasks with {each} CPUs each are {cpus}" if tasks > 1 else f"the script asks for {cpus}"
    yield Finding(
        subject.line("cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks"),
        f"Too {'few' if cpus < least else 'many'} CPUs: {text}, and {gpus} GPU{'s' * (gpus > 1)} of a node "
        f"of {site.name} go with {allowed}.",
        "Too few starve the GPUs of data, too many keep others "
        "from the node's other GPUs; the site refuses or bills it.",
        f"Write --cpus-per-task={write}.",
        True,
    )
