#!/bin/bash
# The largest batch of a network that fits into the memory of one worker of @SITE@ (tasks T4 and T8).
#
# Submit it in the top folder of the course:  sbatch @PATH@
# Options after the script's name go to the search, such as --model ResNet152V2.
@PERSONAL@
#SBATCH --job-name=maxbatch
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
@PARTITION@
#SBATCH --time=@TIME@
# One GPU is enough. The site's rule for its cores:
# @RULE@
### BEGIN SOLUTION
#SBATCH --nodes=1
#SBATCH --ntasks=1
@GRES_ONE@
#SBATCH --cpus-per-task=@CPUS_ONE@
### END SOLUTION

set -euo pipefail # stop at the first error: a job that goes on after one looks like a success

@SETUP@

# Doubles the batch until memory runs out; the line of the .err that proves it is in the evidence it prints.
"${python[@]}" -m labs maxbatch --image_size @IMAGE_SIZE@ --out "$LABS_RUNS" "$@"
