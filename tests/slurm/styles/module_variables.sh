#!/bin/bash
#SBATCH --time=00:30:00
#SBATCH --output=notebooks/runs/%x_%j.out
#SBATCH --error=notebooks/runs/%x_%j.err
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2
set -eu
module load cuda
export LD_LIBRARY_PATH=$CUDA_HOME/lib64:$LD_LIBRARY_PATH
. ~/.bashrc
conda activate labs
gcc -O2 tools/x.c -o x
./x --warm-up
python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 300
# found: nothing
