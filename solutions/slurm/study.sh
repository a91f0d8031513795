#!/bin/bash
# A scaling study with Horovod on @STUDY_NODES_TEXT@ of @SITE@. In one job, a run on 1 rank and one on more ranks
# take turns, an epoch each, so that the machine's drift affects both alike.
#
# Submit it in the top folder of the course:  sbatch @PATH@
@MORE_NODES@
# MirroredStrategy, on one node: sbatch --nodes=1 @PATH@ --strategy mirrored
# Options after the script's name go to `labs study`, such as --models ResNet50V2 ResNet152V2. After a time limit,
# submit it again with --out and the folder of that job: it continues after the pairs of runs that have finished.
@PERSONAL@
#SBATCH --job-name=study
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
@PARTITION@
#SBATCH --time=@TIME@
# Two trainings share the GPUs, cores and memory of the job, and only one of them computes. Tasks, GPUs and cores are
# counted for each node, cores for each task:
# @RULE@
### BEGIN SOLUTION
#SBATCH --nodes=@STUDY_NODES@
#SBATCH --ntasks-per-node=@NODE_TASKS@
@NODE_GRES@
#SBATCH --cpus-per-task=@CPUS_PER_TASK@
### END SOLUTION

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

@SETUP@
@HOROVOD@

# The records lie in a folder of their own beside the job's log.
study=(--preset @PRESET@ --strategy horovod --workers @WORKERS@ "$SLURM_NTASKS")
study+=(--out "$LABS_RUNS/${LABS_JOB:-${SLURM_JOB_NAME:-study}_${SLURM_JOB_ID:-local}}")
@STUDY_LAUNCHER@
"${python[@]}" -m labs study "${study[@]}" "$@"
