"""The variables of a job, as SLURM sets them on its first node; where bash runs it: some (labs.jobs.anywhere)."""

import re
from pathlib import PurePosixPath

# Options that SLURM hands on as the script gives them.
_AS_GIVEN = ("mem-per-cpu", "cpus-per-gpu", "ntasks-per-gpu", "gpus", "gpus-per-node", "gpus-per-task")
_AS_GIVEN += ("cpus-per-task", "ntasks-per-node")


def of_job(script, name, folder):
    """{name: value} for a job with the directives of a BatchScript, in a script of this name (SLURM 22.05).

    folder: where it was submitted. Of a job array it is the last task, for an index beyond an array shows there.
    """
    resources = script.resources()
    nodes, gpus = resources["nodes"], resources["gpus_per_node"]
    times = f"(x{nodes})" if nodes > 1 else ""
    values = {option.replace("-", "_").upper(): script.value(option) for option in _AS_GIVEN}
    values |= dict.fromkeys(("NNODES", "JOB_NUM_NODES"), nodes)
    values |= dict.fromkeys(("NODELIST", "JOB_NODELIST"), f"node[1-{nodes}]" if nodes > 1 else "node1")
    values |= dict.fromkeys(("NODEID", "PROCID", "LOCALID"), 0) | dict.fromkeys(("JOB_ID", "JOBID"), 1000)
    values |= {
        "SUBMIT_DIR": folder,
        "JOB_NAME": script.value("job-name") or PurePosixPath(name).name,
        "JOB_PARTITION": script.value("partition") or "main",
        "JOB_ACCOUNT": script.value("account") or "account",
        "CPUS_ON_NODE": resources["cpus_per_node"],
        "JOB_CPUS_PER_NODE": f"{resources['cpus_per_node']}{times}",
        "TASKS_PER_NODE": f"{resources['tasks_per_node']}{times}",
        "GPUS_ON_NODE": gpus or None,
        "JOB_GPUS": ",".join(map(str, range(gpus))) or None,
        "MEM_PER_NODE": script.value("mem"),
        "EXPORT_ENV": script.value("export"),
    }
    # SLURM sets these only for a script that asks for tasks.
    if script.find("ntasks", "ntasks-per-node", "ntasks-per-gpu", "gpus-per-task"):
        values["NTASKS"] = values["NPROCS"] = resources["tasks"]
    if numbers := re.findall(r"\d+", (script.value("array") or "").partition("%")[0].partition(":")[0]):
        values |= {"ARRAY_TASK_ID": max(map(int, numbers)), "ARRAY_JOB_ID": 1000}
    env = {f"SLURM_{key}": str(value) for key, value in values.items() if value is not None}
    return env | ({"CUDA_VISIBLE_DEVICES": env["SLURM_JOB_GPUS"]} if gpus else {})
