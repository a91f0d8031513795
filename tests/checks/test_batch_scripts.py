"""Batch scripts are judged by what they do: right in any style, wrong with a hint that names what was seen."""

import re

import pytest
from tree import ROOT

from labs import checks, sandbox
from teaching.grading import judge as grader

ONE, NODES = "ResNet50.sh", "ResNet50_horovod_nodes.sh"
BATCH = {ONE: "batch=$((64 * workers))", NODES: "batch=$((64 * SLURM_NTASKS))"}
CHECK = {ONE: "slurm.2", NODES: "nodes.7"}
# What stands in the place of the loop, or behind the set-up. TRAIN: "${python[@]}" and the path of the script.
RIGHT = {
    "all ways to calculate": (
        ONE,
        r"""
train() { local n=$1; shift; TRAIN --n_gpus "$n" --batch_size $((${LOCAL:-64} * n)) "$@"; }
for n in 1 2; do
    awk=$(awk -v n=$n 'BEGIN { print 64 * n }')
    for each in $awk `expr 64 \* $n` "$(bc <<< "64 * $n")" $("${python[@]}" -c "print(64 * $n)"); do
        TRAIN --n_gpus="$n" --batch_size="$each"
    done
    (cd notebooks/scripts && python ResNet50.py --n_gpus $n --batch_size $((64 * n))) &
    wait
    TRAIN --n $n --batch $((n << 6)) 2>&1 | tee -a log
    train $n "$@"
done
while read -r n batch; do
    TRAIN --n_gpus $n  \
        --batch_size $batch </dev/null || exit 1
done <<END
1 64
2 128
END
""",
    ),
    "all ways to start ranks": (
        NODES,
        r"""
ranks=${SLURM_NTASKS:-4} launch='srun --mpi=pmi2 --label'
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)
IFS=, read -ra gpus <<<"$CUDA_VISIBLE_DEVICES"
srun -n "$ranks" TRAIN --batch_size $((nodes * 2 * 64))
$launch --ntasks=$SLURM_NPROCS TRAIN --batch_size $((64 * ${#gpus[@]} * SLURM_JOB_NUM_NODES))
srun TRAIN --batch_size $((64 * SLURM_NNODES * SLURM_NTASKS_PER_NODE))
srun --kill-on-bad-exit=1 bash -c "python $SCRIPTS/ResNet50_horovod.py --batch_size $((64 * SLURM_NTASKS))"
exec srun -l TRAIN --batch_size $(expr $SLURM_NTASKS \* 64)
""",
    ),
}
# What stands for `batch=...`: what the hint says.
WRONG = {
    (ONE, "batch=64*$workers"): r"Line 32 .*--batch_size '64\*1', which is not a whole number",
    (ONE, "batch = $((64 * workers))"): r"Line 31: batch: command not found.* Bash takes no space beside the `=`",
    (ONE, "batch=$(64 * workers)"): r"Line 31: 64: command not found.* `\$\( \)` runs a command",
    (ONE, "batch=64"): r"on 2 workers with a global batch of 64: 32 images for each.*\(Bash ran the script, with stand",
    (ONE, "batch=$((64 * workers)); workers=1"): r"on 1 worker with a global batch of 128: 128 images for each",
    (ONE, "batch=$((64 * workers)); break"): r"starts no training with ResNet50.py",
    (ONE, "batch=$((64 * workers)); [ $workers -eq 1 ] && continue"): r"with --n_gpus 2 only: a speedup needs 1 worker",
    (ONE, "batch=$((64 * workers)); [ $workers -eq 2 ] && continue"): r"with --n_gpus 1 only: a speedup needs 1 worker",
    (NODES, "batch=$((64 * SLURM_NNODES))"): r"on 4 ranks with a global batch of 128: 32 images for each",
    (NODES, "batch=256"): r"`sbatch --nodes=3`: .* on 6 ranks with a global batch of 256: 42\.6667 images for each",
    (NODES, "batch=$((SLURM_NNODES < 9 ? 64 * SLURM_NTASKS : 512))"): r"nodes=64`: .* on 128 ranks .* 512: 4 images",
    (NODES, "batch=256; SLURM_NTASKS=4"): r"`sbatch --nodes=3`: .* runs on 4 ranks, as many as on 2 nodes",
}
SAID = r"^As far as it can be read here: its directives follow .* cannot try it out on this machine: no namespaces\.$"


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """judge(name of a script, old, new) -> what is said of the solution with a text replaced, at the site `local`."""
    monkeypatch.chdir(ROOT)

    def judge(name, old, new):
        path = tmp_path / "local" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text((ROOT / "solutions/slurm/local" / name).read_text().replace(old, new))
        return checks.judge(CHECK[name], path)

    return judge


@pytest.mark.parametrize("style", RIGHT)
def test_a_right_script_in_any_style(judge, needs_sandbox, style):
    name, text = RIGHT[style]
    solution = (ROOT / "solutions/slurm/local" / name).read_text()
    own = solution[solution.index({ONE: "for workers in", NODES: "# The global batch"}[name]) :]
    train = f'"${{python[@]}}" "$SCRIPTS/{ {ONE: "ResNet50.py", NODES: "ResNet50_horovod.py"}[name] }" --image_size 32'
    assert judge(name, own, text.replace("TRAIN", train)) == ("right", checks.task(CHECK[name]).why, None)


@pytest.mark.parametrize(("name", "batch"), WRONG)
def test_a_wrong_batch_gets_a_hint_that_names_it(judge, needs_sandbox, name, batch):
    state, hint, _ = judge(name, BATCH[name], batch)
    assert state == "wrong" and re.search(WRONG[name, batch], hint), hint


def test_mistakes_of_the_directives_are_named(judge, needs_sandbox):
    for old, new, says in (
        ("--ntasks=1", "--ntasks=2", r"^Line 15: 2 tasks for MirroredStrategy, one process"),
        ("--gres=gpu:2", "--gres=2", r"--gres=2: not a value for --gres, .* what was found has to be mended first"),
        ("#!/bin/bash", "#!/bin/zsh", "Line 1: The first line is not #!/bin/bash"),
    ):
        state, hint, _ = judge(ONE, old, new)
        assert state == "wrong" and re.search(says, hint), hint


def test_without_a_sandbox_a_script_passes_as_far_as_it_can_be_read(judge, monkeypatch):
    monkeypatch.setattr(sandbox, "sandbox_missing", lambda: "no namespaces")
    monkeypatch.setattr(sandbox, "run_walled", None)
    for batch in (BATCH[ONE], "batch=64", "exit"):
        judged = judge(ONE, BATCH[ONE], batch)
        assert judged.state == "right" and re.match(SAID, judged.text), judged
    assert grader._of_judge(judged, "outside").how == "person"
    state, said, _ = judge(ONE, "--gres=gpu:2", "--gres=gpu:8")
    assert state == "wrong" and "8 GPUs per node" in said
    assert said.endswith("(The script was read, and not tried out: no namespaces.)")
