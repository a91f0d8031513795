"""Rows of the table in test_tasks.py for the batch scripts of notebooks 05 and 07."""

from pathlib import Path

FOLDER = Path(__file__).parents[2] / "solutions/slurm/local"


def swapped(name, *pairs):
    """The complete batch script with some text replaced, in a folder named after its site."""

    def write(folder):
        text = (FOLDER / name).read_text()
        for old, new in pairs:
            assert old in text, f"{name} has changed: {old!r} is no more in it"
            text = text.replace(old, new)
        path = folder / "local" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return (path,)

    return write


def one(*pairs):
    return swapped("ResNet50.sh", *pairs)


def many(*pairs):
    return swapped("ResNet50_horovod_nodes.sh", *pairs)


ANSWERS = {
    "05.12": dict(right=[("b",)], wrong=[("a",), ("c",), ("d",)], secret=None),
    "05.13": dict(
        right=[one(), one(("batch=$((64 * workers))", "batch=$((workers * 32 + workers * 32))"))],
        wrong=[
            one(("#SBATCH --gres=gpu:2", "# SBATCH --gres=gpu:2")),
            one(("--cpus-per-task=4", "--cpus-per-task=2")),
            one(("--cpus-per-task=4", "--cpus-per-task=40")),
            one(("#SBATCH --gres=gpu:2", "#SBATCH --gres=gpu:1"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            one(("#SBATCH --ntasks=1", "#SBATCH --ntasks=2"), ("--cpus-per-task=4", "--cpus-per-task=2")),
            one(("batch=$((64 * workers))", "batch=64")),
            one(("ResNet50.py", "ResNet152V2.py")),
            one(("done\n", "\n")),
        ],
        secret=r"64 \* workers",
    ),
    "05.14": dict(right=[(0,)], wrong=[(4,), (1,)], secret=r"\b0\b|\bnone\b"),
    "07.22": dict(right=[(40,), (40.0,)], wrong=[(160,), (4,), (1,), (20,)], secret=r"\b40\b", same=[(1, 2)]),
    "07.23": dict(
        right=[many(), many(("batch=$((64 * SLURM_NTASKS))", "batch=256"))],
        wrong=[
            many(("--ntasks-per-node=2", "--ntasks-per-node=1")),
            many(("--cpus-per-task=2", "--cpus-per-task=4")),
            many(("batch=$((64 * SLURM_NTASKS))", "batch=$((64 * SLURM_NTASKS + 2))")),
            many(("--nodes=2", "--nodes=3")),
            many(("srun ", "# srun "), ('    "${python', '"${python')),
        ],
        secret=None,
    ),
}
