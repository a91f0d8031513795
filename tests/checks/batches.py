"""Batch scripts that students write: right in many styles (the files beside this one), and wrong in as many ways."""

from pathlib import Path


def _styles(name):
    """{style: commands} of a file with sections that begin with a line `#### style`."""
    sections = Path(__file__).with_name(name).read_text().split("\n#### ")[1:]
    return {style: commands for style, _, commands in (section.partition("\n") for section in sections)}


RIGHT, RIGHT_RANKS = _styles("right_one_node.sh"), _styles("right_nodes.sh")

# What stands for `batch=...` in the loop `for workers in 1 2` (slurm.2): what the hint says.
WRONG = {
    "batch=64*$workers": r"Line 32 .*--batch_size '64\*1', which is not a whole number",
    'batch="64 * workers"': r"Line 32 .*--batch_size '64 \* workers', which is not a whole number",
    "batch='$((64 * workers))'": r"--batch_size '\$\(\(64 \* workers\)\)', which is not a whole number",
    "batch=": r"--batch_size '', which is not a whole number",
    "batch=$(bc <<< '64.0 * 1')": r"--batch_size '64.0', which is not a whole number",
    "batch=64 * workers": r"Line 31: .*command not found",
    "batch = $((64 * workers))": r"Line 31: batch: command not found",
    "batch =$((64 * workers))": r"Line 31: batch: command not found",
    "set batch=$((64 * workers))": r"Line 32: batch: unbound variable",
    "$batch=$((64 * workers))": r"Line 31: batch: unbound variable",
    "batch=$(64 * workers)": r"Line 31: 64: command not found",
    "batch=$((64 * worker))": r"Line 31: worker: unbound variable",
    "batch=$((64 x workers))": r"Line 31: x: unbound variable",
    "batch=$((64 * $n_gpus))": r"Line 31: n_gpus: unbound variable",
    "batch=$((64 workers))": r"Line 31: .*syntax error in expression",
    "batch=$((64.0 * workers))": r"Line 31: .*syntax error: invalid arithmetic operator",
    "batch=$((64 / (workers - 1)))": r"Line 31: .*division by 0",
    "batch=$(expr 64 * $workers)": r"Line 31: .*expr: syntax error",
    "batch=$(expr 64*$workers)": r"--batch_size '64\*1', which is not a whole number",
    'batch=$(python -c "print(64 * workers)")': r"Line 31: .*NameError: name 'workers' is not defined",
    "let batch = 64 * workers": r"Line 31: batch: unbound variable",
    "batch=$((64 * workers)": r"Line 31: bash cannot read",
    "batch=$((32 * workers))": r"on 1 worker with a global batch of 32: 32 images for each",
    "batch=$((128 * workers))": r"on 1 worker with a global batch of 128: 128 images for each",
    "batch=64": r"on 2 workers with a global batch of 64: 32 images for each",
    "batch=128": r"on 1 worker with a global batch of 128: 128 images for each",
    "batch=$((64 / workers))": r"on 2 workers with a global batch of 32: 16 images for each",
    "batch=$((64 + workers))": r"on 1 worker with a global batch of 65: 65 images for each",
    "batch=$((64 * workers)); workers=1": r"on 1 worker with a global batch of 128: 128 images for each",
    "batch=$((64 * workers)); break": r"starts no training with ResNet50.py",
    "batch=$((64 * workers)); exit 3": r"Line 31: `exit 3` ends the script",
    "batch=0; while ((batch < 64)); do :; done": r"Line 31: this runs again and again",
    "batch=$((64 * workers)); sbatch again.sh; workers=2": r"on 2 workers with a global batch of 64",
    "batch=$((64 * workers)); cd no_such_folder": r"Line 31: cd: no_such_folder: No such file",
    "batch=$((64 * workers)); python() { :; }; python=(python)": r"starts no training with ResNet50.py",
    "batch=$((64 * workers)); set -- --n_gpus 1": r"on 1 worker with a global batch of 128",
    "batch=$((64 * workers)); [ $workers -eq 1 ] && continue": r"with --n_gpus 2 only: a speedup needs 1 worker",
}

# What stands for `batch=...` in the script over nodes (nodes.7).
WRONG_RANKS = {
    "batch=64*SLURM_NTASKS": r"Line 32 .*--batch_size '64\*SLURM_NTASKS', which is not a whole number",
    "batch=$((64 * SLURM_NNODES))": r"on 4 ranks with a global batch of 128: 32 images for each",
    "batch=$((64 * SLURM_NTASKS_PER_NODE))": r"on 4 ranks with a global batch of 128: 32 images for each",
    "batch=$((32 * SLURM_NTASKS))": r"on 4 ranks with a global batch of 128: 32 images for each",
    "batch=$((128 * SLURM_NTASKS))": r"on 4 ranks with a global batch of 512: 128 images for each",
    "batch=$((64 * SLURM_TASKS_PER_NODE))": r"Line 31: .*syntax error in expression",
    "batch=$((64 * SLURM_NTASK))": r"Line 31: SLURM_NTASK: unbound variable",
    "batch=$((64 * SLURM_GPUS))": r"Line 31: SLURM_GPUS: unbound variable",
    "batch=64": r"on 4 ranks with a global batch of 64: 16 images for each",
    "batch=$((64 * $SLURM_JOB_NODELIST))": r"Line 31: node: unbound variable",
    "batch=$((64 * SLURM_NTASKS)); SLURM_NTASKS=two": r"with ranks 'two', which is not a whole number",
    "batch=256": r"`sbatch --nodes=3`: .* on 6 ranks, and its global batch is 256 as it was on 4",
    "batch=$((64 * SLURM_NTASKS_PER_NODE * 2))": r"`sbatch --nodes=3`: .* its global batch is 256 as it was on 4",
    "batch=$((64 + 96 * SLURM_NNODES))": r"`sbatch --nodes=3`: .* on 6 ranks with a global batch of 352: 58.6667",
    "batch=$((SLURM_NNODES < 9 ? 64 * SLURM_NTASKS : 512))": r"`sbatch --nodes=64`: .* on 128 ranks .* 512: 4 images",
    "batch=256; SLURM_NTASKS=4": r"`sbatch --nodes=3`: .* runs on 4 ranks, as many as on 2 nodes",
    "batch=$((64 * SLURM_NTASKS)); export SLURM_NTASKS=2": r"srun starts 2 of the 4 tasks",
}
