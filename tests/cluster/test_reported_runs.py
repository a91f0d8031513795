"""A folder of runs that was copied from a cluster: the report and submission.zip hold all of it, and no node's name."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from labs import report
from labs.results import run as records

from .submitted import ROOT, Job

sys.path.insert(0, str(ROOT / "tests/report"))
import reported  # noqa: E402

# A batch script that trains on 1 and 2 workers without TensorFlow: its records are there already, under other names.
SCRIPT = """#!/bin/bash
#SBATCH --job-name=ResNet50
#SBATCH --ntasks=1
set -euo pipefail
echo "Job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, GPUs none"
for workers in 1 2; do
    echo "Model ResNet50V2 $workers workers"
    echo "Epoch 1/1"
    echo "4/4 - 5s - 1s/step - accuracy: 0.5000 - loss: 1.5000"
    name=ResNet50_${SLURM_JOB_ID}_w$workers
    sed -e "s/\\"ResNet50_w$workers\\"/\\"$name\\"/" -e "s/\\"job_id\\": null/\\"job_id\\": \\"$SLURM_JOB_ID\\"/" \\
        "$RECORDS/ResNet50_w$workers.json" >"$LABS_RUNS/$name.json"
done
echo "a warning on $SLURM_JOB_NODELIST" >&2
"""


@pytest.fixture(scope="module")
def copied(cluster, tmp_path_factory):
    """(a course whose folder of runs was copied from a cluster, the job)."""
    there, here = tmp_path_factory.mktemp("cluster"), tmp_path_factory.mktemp("here")
    reported.keep(reported.course(there), reported.study(), log=False)
    (there / "ResNet50.sh").write_text(SCRIPT)
    job = Job(cluster, there / "ResNet50.sh", runs=there / "runs", RECORDS=str(there / "notebooks/runs"))
    assert job.end() == "COMPLETED", job.said()
    root = reported.course(here / "course", {"T5": "Made on the cluster."})
    shutil.copytree(there / "runs", root / "notebooks/runs", dirs_exist_ok=True)
    return root, job


def test_the_report_of_a_clusters_runs_is_complete(copied, tmp_path):
    root, job = copied
    names = [f"ResNet50_{job.id}_w{workers}" for workers in (1, 2)]
    node = job.out.read_text().split()[3].rstrip(",")
    made = report.make(tmp_path / "out", start=root)
    task = next(task for task in made.report.tasks if task.id == "T5")
    assert task.runs == names and [run.job_id for run in made.report.runs] == [job.id, job.id]
    (log,) = [log for log in task.logs if log.file.endswith(".out")]
    assert log.lines[0] == f"Job {job.id} on <host>, GPUs none" and sum("4/4" in line for line in log.lines) == 2
    with zipfile.ZipFile(made.zip) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    there = {f"notebooks/runs/{path.name}" for path in job.runs.iterdir() if path.suffix in (".json", ".out", ".err")}
    assert len(there) == 4 and there <= set(contents)
    record = json.loads(contents[f"notebooks/runs/{names[1]}.json"])
    assert record == json.loads((Path(root) / f"notebooks/runs/{names[1]}.json").read_text())
    assert records.read(record, "zip").job_id == job.id
    assert [name for name, content in contents.items() if node.encode() in content] == []


def test_its_two_trainings_stand_in_one_table_with_a_speedup(copied, tmp_path):
    root, job = copied
    made = report.make(tmp_path / "out", start=root)
    table = next(table for task in made.report.tasks if task.id == "T5" for table in task.tables)
    speedup = table.columns.index("speedup")
    assert [row[0].text for row in table.rows] == [f"ResNet50_{job.id}_w{n}" for n in (1, 2)]
    assert table.rows[0][speedup].value == 1 and table.rows[1][speedup].value == pytest.approx(1.56, abs=0.01)
