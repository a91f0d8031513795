"""A folder of runs that was copied from a cluster: the report and submission.zip hold all of it, and no node's name."""

import shutil
import sys
import zipfile

from labs import report
from labs.results import run as records

from .submitted import ROOT, Job

sys.path.insert(0, str(ROOT / "tests/report"))
import reported  # noqa: E402

# Two trainings as their log shows them; their records are recorded ones.
SCRIPT = r"""#!/bin/bash
#SBATCH --job-name=ResNet50
echo "Job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, GPUs none"
printf "Model ResNet50V2 %s workers\nEpoch 1/1\n4/4 - 5s - 1s/step - accuracy: 0.5000 - loss: 1.5000\n" 1 2
echo "a warning on $SLURM_JOB_NODELIST" >&2
"""


def test_the_report_of_a_clusters_runs_is_complete_and_names_no_node(cluster, tmp_path):
    (tmp_path / "ResNet50.sh").write_text(SCRIPT)
    job = Job(cluster, tmp_path / "ResNet50.sh", runs=tmp_path / "runs")
    assert job.end() == "COMPLETED", job.said()
    for run in reported.study(name=f"ResNet50_{job.id}").values():
        run.job_id, run.command = job.id, ["scripts/ResNet50.py"]
        records.save_record(job.runs / f"{run.name}.json", run)
    root = reported.course(tmp_path / "course", {"T5": "Made on the cluster."})
    shutil.copytree(job.runs, root / "notebooks/runs", dirs_exist_ok=True)
    made = report.make(tmp_path / "out", start=root)
    task = next(task for task in made.report["tasks"] if task["id"] == "T5")
    assert task["runs"] == [path.stem for path in job.records]
    (log,) = [log for log in task["logs"] if log["file"].endswith(".out")]
    assert log["lines"][0] == f"Job {job.id} on <host>, GPUs none" and sum("4/4" in line for line in log["lines"]) == 2
    with zipfile.ZipFile(made.zip) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    files = {f"notebooks/runs/{path.name}" for path in job.runs.iterdir()}
    assert len(files) == 4 and files <= set(contents)
    node = job.out.read_text().split()[3].rstrip(",").encode()
    assert [name for name, content in contents.items() if node in content] == []
