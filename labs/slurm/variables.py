"""The variables of a job, as a batch script gets them on its first node."""

from pathlib import PurePosixPath


def of_job(script, name, folder, asked=None):
    """{name: value} for a job with these directives (directives.Script) in a script of this name (SLURM 22.05).

    folder: where it was submitted. asked: what it gets, if not script.resources().
    """
    asked = asked or script.resources()
    nodes, tasks, gpus = asked["nodes"] or 1, asked["tasks"] or 1, asked["gpus_per_node"] or 0
    here = -(-tasks // nodes)
    times = f"(x{nodes})" if nodes > 1 else ""
    told = dict.fromkeys(("JOB_ID", "JOBID"), 1000) | dict.fromkeys(("NODEID", "PROCID", "LOCALID"), 0)
    told |= dict.fromkeys(("NNODES", "JOB_NUM_NODES"), nodes)
    told |= dict.fromkeys(("NODELIST", "JOB_NODELIST"), f"node[1-{nodes}]" if nodes > 1 else "node1")
    told |= {
        "JOB_NAME": script.value("job-name") or PurePosixPath(name).name,
        "JOB_PARTITION": script.value("partition") or "main",
        "JOB_USER": "student",
        "CLUSTER_NAME": "cluster",
        "SUBMIT_HOST": "login",
        "SUBMIT_DIR": folder,
        "CPUS_ON_NODE": asked["cpus_per_node"] or 1,
        "JOB_CPUS_PER_NODE": f"{asked['cpus_per_node'] or 1}{times}",
        "TASKS_PER_NODE": f"{here}{times}",
        "GPUS": script.value("gpus"),
        "GPUS_PER_NODE": script.value("gpus-per-node"),
        "GPUS_PER_TASK": script.value("gpus-per-task"),
        "GPUS_ON_NODE": gpus or None,
        "JOB_GPUS": ",".join(map(str, range(gpus))) or None,
    }
    # SLURM sets these only for a script that asks for them.
    for option in ("cpus-per-task", "ntasks-per-node"):
        if script.value(option) is not None:
            told[option.replace("-", "_").upper()] = asked[option.replace("-", "_")] or 1
    if script.find("ntasks", "ntasks-per-node"):
        told["NTASKS"] = told["NPROCS"] = tasks
    if script.value("array"):
        told |= {f"ARRAY_{key}": 1 for key in ("TASK_ID", "TASK_MIN", "TASK_MAX", "TASK_COUNT")}
        told["ARRAY_JOB_ID"] = 1000
    env = {f"SLURM_{key}": str(value) for key, value in told.items() if value is not None}
    return env | ({"CUDA_VISIBLE_DEVICES": env["SLURM_JOB_GPUS"]} if gpus else {})
