"""The variables of a job, as a batch script gets them on its first node."""

import re
from pathlib import PurePosixPath

from labs.slurm.directives import OPTIONS

# Options that SLURM hands on as the script gives them.
_AS_GIVEN = ("mem-per-cpu", "mem-per-gpu", "cpus-per-gpu", "ntasks-per-gpu", "threads-per-core", "hint", "distribution")


# What a job that is submitted inside another one keeps of that one's variables, if it sets none of its own.
_KEPT = re.compile(r"SLURM_(NTASKS|NPROCS|(NTASKS|CPUS|GPUS|MEM)_PER_\w+)")


def of_job(script, name, folder):
    """{name: value} for a job with the directives of a BatchScript, in a script of this name (SLURM 22.05).

    folder: where it was submitted. A heterogeneous job has those of its first part, and those of each part with its
    number.
    """
    env, *more = of_parts = [_of_part(part, name, folder) for part in script.parts]
    if not more:
        return env
    numbered = {f"{key}_HET_GROUP_{index}": part[key] for index, part in enumerate(of_parts) for key in part}
    return env | numbered | {"SLURM_HET_SIZE": str(len(of_parts))}


def inherited(env, own):
    """Variables of the job around (env: the variables here), which a job with the variables `own` would keep."""
    return sorted(name for name in env if _KEPT.fullmatch(name) and name not in own) if "SLURM_JOB_ID" in env else []


def _of_part(script, name, folder):
    asked = script.resources()
    nodes, tasks, gpus = asked["nodes"], asked["tasks"] or 1, asked["gpus_per_node"] or 0
    here = -(-tasks // nodes)
    times = f"(x{nodes})" if nodes > 1 else ""
    told = OPTIONS["job"] | dict.fromkeys(("NNODES", "JOB_NUM_NODES"), nodes)
    told |= dict.fromkeys(("NODELIST", "JOB_NODELIST"), f"node[1-{nodes}]" if nodes > 1 else "node1")
    told |= {
        "JOB_NAME": script.value("job-name") or PurePosixPath(name).name,
        "JOB_PARTITION": script.value("partition") or "main",
        "SUBMIT_DIR": folder,
        "JOB_ACCOUNT": script.value("account") or "account",
        "JOB_QOS": script.value("qos") or "normal",
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
    if script.find("ntasks", "ntasks-per-node", "ntasks-per-gpu", "gpus-per-task"):
        told["NTASKS"] = told["NPROCS"] = tasks
    for option in _AS_GIVEN:
        told[option.replace("-", "_").upper()] = script.value(option)
    told |= {"MEM_PER_NODE": script.value("mem"), "EXPORT_ENV": script.value("export")}
    told |= _array(script.value("array") or "")
    env = {f"SLURM_{key}": str(value) for key, value in told.items() if value is not None}
    env["SLURMD_NODENAME"] = "node1"
    return env | ({"CUDA_VISIBLE_DEVICES": env["SLURM_JOB_GPUS"]} if gpus else {})


def _array(text):
    """The variables of a job array's last task: an index beyond an array shows there. {} for any other job."""
    tasks = []
    for first, last, step in re.findall(r"(\d+)(?:-(\d+)(?::(\d+))?)?", text.partition("%")[0]):
        tasks += range(int(first), min(int(last or first), int(first) + 10**6) + 1, int(step or 1) or 1)
    if not tasks:
        return {}
    told = {"TASK_ID": max(tasks), "TASK_MIN": min(tasks), "TASK_MAX": max(tasks), "TASK_COUNT": len(tasks)}
    return {f"ARRAY_{key}": value for key, value in told.items()} | {"ARRAY_JOB_ID": 1000}
