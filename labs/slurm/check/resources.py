"""Findings on what `#SBATCH` lines ask for (nodes, GPUs, tasks, cores), by the site's rules and by what is started."""

from labs.printed import several
from labs.slurm.check.finding import ScriptFinding


def findings(subject):
    """The first finding, as what comes after it may follow from it."""
    looks = (look(subject, subject.script, subject.asked) for look in (_nodes, _gpus, _tasks, _workers, _cores))
    return next(([found] for found in looks if found), [])


def _nodes(subject, script, asked):
    if asked["nodes"] > (most := subject.site.nodes_max):
        problem = f"{asked['nodes']} nodes: {subject.site.name} has {most}. The job is refused."
        return ScriptFinding(script.line("nodes"), problem, f"Write --nodes={most}.")


def _gpus(subject, script, asked):
    gpus, most = asked["gpus_per_node"], subject.site.gpus
    trainings = [one for one in subject.trainings if one.kind]
    if most and gpus == 0 and trainings:
        wanted = [asked["tasks_per_node"] if one.kind == "horovod" else one.workers or most for one in trainings]
        problem = "The script asks for no GPU: TensorFlow trains on the cores, slowly and without an error."
        return ScriptFinding(script.line(), problem, f"Write --gres=gpu:{min(max(wanted), most)}.")
    if gpus > most > 0:
        problem = f"{gpus} GPUs per node: a node of {subject.site.name} has {most}. More GPUs are on more nodes."
        by_job = script.find("gpus") and not script.find("gres")
        fix = f"Write --gpus={most * asked['nodes']}." if by_job else f"Write --gres=gpu:{most}."
        return ScriptFinding(script.line("gres", "gpus-per-node", "gpus", "gpus-per-task"), problem, fix)


def _tasks(subject, script, asked):
    """Tasks that do not fit the way of training."""
    nodes, gpus, here = (asked[name] for name in ("nodes", "gpus_per_node", "tasks_per_node"))
    line = script.line("ntasks", "ntasks-per-node", "nodes")
    option = "ntasks" if script.find("ntasks") else "ntasks-per-node"
    horovod = any(one.kind == "horovod" for one in subject.trainings)
    mirrored = [one for one in subject.trainings if one.kind == "mirrored"]
    if gpus and here != gpus and horovod:
        problem = f"{several(here, 'task')} and {several(gpus, 'GPU')} on each node: Horovod needs one process for "
        fix = f"Write --{option}={gpus * nodes if option == 'ntasks' else gpus}."
        return ScriptFinding(line, f"{problem}each GPU.", fix)
    if not gpus or not mirrored or horovod:
        return None
    problem = "for MirroredStrategy, one process that uses all GPUs of one node: "
    for many in [training for training in mirrored if (training.tasks or 0) > 1]:
        launcher = many.call.launchers[0].words[0]
        problem = f"{launcher} starts {many.script.name} {many.tasks} times {problem}they overwrite each other's files."
        fix = f"Write --{option}=1." if asked["tasks"] > 1 else f"Remove {launcher} and its options."
        return ScriptFinding(many.line_number, problem, fix)
    beside = sum(bool(one.call.launchers) for one in mirrored) > 1  # several steps, which may share what the job has
    if not beside and (asked["tasks"] > 1 or nodes > 1):
        what, line = (f"{nodes} nodes", script.line("nodes")) if nodes > 1 else (several(here, "task"), line)
        fixes = ["--nodes=1"] * (nodes > 1) + [f"--{option}=1"] * (asked["tasks"] > 1)
        return ScriptFinding(line, f"{what} {problem}all others would be idle.", f"Write {' and '.join(fixes)}.")


def _workers(subject, script, asked):
    """More workers than the job has GPUs."""
    gpus = asked["gpus_per_node"]
    for training in [one for one in subject.trainings if one.kind == "mirrored" and (one.workers or 0) > gpus > 0]:
        problem = f"--n_gpus {training.workers}, but the job has {several(gpus, 'GPU')} on its node."
        enough = training.workers <= subject.site.gpus
        fix = f"Write --gres=gpu:{training.workers}." if enough else f"Train on {gpus} at most."
        return ScriptFinding(training.line_number, problem, fix)


def _cores(subject, script, asked):
    """CPUs that the site's rule does not give to that many GPUs."""
    site, gpus, cpus, tasks = subject.site, asked["gpus_per_node"], asked["cpus_per_node"], asked["tasks_per_node"]
    least, most = site.cpus_for(gpus)
    most = site.cpus if least == 1 else most  # from 1 on it is a share, which nothing enforces
    if not site.gpus or script.find("exclusive") or least <= cpus <= most:
        return None
    what = f"{tasks} tasks with {cpus // tasks} CPUs each are {cpus}" if tasks > 1 else f"the script asks for {cpus}"
    span = f"{least}" if least == most else f"{least} to {most}"
    problem = f"Too {'few' if cpus < least else 'many'} CPUs: {what}, and {several(gpus, 'GPU')} of a node of "
    problem += f"{site.name} go with {span}. With too few, the GPUs wait for data; with too many, others cannot "
    problem += "use the node's other GPUs."
    name, share = ("cpus-per-gpu", gpus) if script.find("cpus-per-gpu") else ("cpus-per-task", tasks)
    fix = f"Write --{name}={max(most // share if cpus > most else -(-least // share), 1)}."
    return ScriptFinding(script.line("cpus-per-task", "cpus-per-gpu", "ntasks-per-node", "ntasks"), problem, fix)
