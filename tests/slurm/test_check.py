"""The check of batch scripts: wrong scripts, each by one change of a right one."""

import re
from pathlib import Path

import pytest

from labs import sandbox
from labs.errors import UseError
from labs.slurm import check

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parents[1] / "data" / "slurm"
RENDERED = ROOT / "solutions" / "slurm"
ONE, NODES, HOROVOD = "ResNet50.sh", "ResNet50_horovod_nodes.sh", "ResNet50_horovod.sh"
SRUN = "srun --mpi=pmi2"
START = SRUN + ' --kill-on-bad-exit=1 --label --ntasks="$SLURM_NTASKS" '
# (site, script): name: what is replaced, by what, words of the finding, text of its line
CHANGES = {
    ("local", ONE): {
        "blank after #": ("#SBATCH --gres", "# SBATCH --gres", "blank between # and SBATCH", "gpu:2"),
        "misspelt SBATCH": ("#SBATCH --time", "#SBTACH --time", "spelt #SBTACH", "#SBTACH"),
        "indented": ("#SBATCH --nodes", "  #SBATCH --nodes", "start of the line", "--nodes"),
        "after a command": ("#SBATCH --ntasks=1", "cd .\n#SBATCH --ntasks=1", "after the first", "#SBATCH --ntasks"),
        "no interpreter": ("#!/bin/bash\n", "", "first line", "# ResNet50V2 on"),
        "Windows": ("\n", "\r\n", "line ends of Windows", "#!/bin/bash"),
        "no time": ("--time=00:30:00", "--time=30min", "not a value for --time", "30min"),
        "too long": ("--time=00:30:00", "--time=3:00:00", "longer than the 2 hours", "3:00:00"),
        "without end": ("--time=00:30:00", "--time=UNLIMITED", "longer than the 2 hours", "UNLIMITED"),
        "other partition": ("partition=main", "partition=booster", "no partition 'booster'", "booster"),
        "no folder": ("--output=notebooks/runs/", "--output=logs/", "folder logs of --output", "=logs/"),
        "variable in a directive": ("--output=notebooks", "--output=$HOME", "fill in variables", "$HOME"),
        "no GPU": ("#SBATCH --gres=gpu:2\n", "", "no GPU", "--cpus-per-task"),
        "GPUs of two nodes": ("gres=gpu:2", "gres=gpu:8", "8 GPUs per node", "gpu:8"),
        "copies": ('    "${python[@]}" "$S', '    srun -n 2 "${python[@]}" "$S', "ResNet50.py 2 times", "srun -n 2"),
        "idle tasks": ("--ntasks=1", "--ntasks=4", "4 tasks for MirroredStrategy", "--ntasks=4"),
        "idle node": ("--nodes=1", "--nodes=2", "2 nodes for MirroredStrategy", "--nodes=2"),
        "same batch": ("64 * workers", "64", "64 on 1 worker, 64 on 2 workers", "--dataset"),
        "no script": ('ResNet50.py"', 'ResNet05.py"', "no notebooks/scripts/ResNet05.py, seen from", 'ResNet05.py"'),
        "wrong folder": ("for workers", "cd notebooks\nfor workers", ".venv/bin/python: No such file", "--dataset"),
    },
    ("cte-power", ONE): {
        "letters of a directive": ("--cpus-per-task", "--cpus-per-taks", "Did you mean --cpus-per-task? If", "-taks"),
        "too few cores": ("task=160", "task=80", "4 GPUs of a node of CTE-POWER go with 160", "=80"),
        "a node of its own": ("task=160", "task=80\n#SBATCH --exclusive", None, "=80"),  # so no mistake
        "no modules": ("module load ", "echo ", "Not loaded: gcc/8.3.0", "module purge"),
    },
    ("marenostrum5", "maxbatch.sh"): {"too many cores": ("task=20", "task=40", "Too many CPUs", "--cpus-per-task")},
    ("cte-power", HOROVOD): {"cores of all tasks": ("task=40", "task=20", "4 tasks with 20 CPUs each are 80", "=20")},
    ("local", NODES): {
        "more nodes than there are": ("--nodes=2", "--nodes=20", "20 nodes", "--nodes=20"),
        "fewer tasks than GPUs": ("per-node=2", "per-node=1", "1 task and 2 GPUs", "per-node=1"),
        "no launcher": (START, "", "without a launcher", "ResNet50_horovod.py"),
    },
    ("local", HOROVOD): {
        "batch in unequal parts": ("64 * ranks", "64 * ranks + 1", "129 on 2 workers", "srun --mpi=pmi2")
    },
    ("juwels-booster", ONE): {
        "too many cores of a share": ("--cpus-per-task=96", "--cpus-per-task=97", "4 GPUs of a node", "--cpus-per-task")
    },
}
WRONG = {name: (*where, *change) for where, changes in CHANGES.items() for name, change in changes.items()}
FILES = "--output=notebooks/runs/%j.out --error=notebooks/runs/%j.err"
HEAD = f"#!/bin/bash\n#SBATCH --time=00:20:00 {FILES}\n#SBATCH "
RANKS = "--nodes=1 --ntasks-per-node=2 --cpus-per-task=12 --gres=gpu:2"
SHARED = "python notebooks/scripts/ResNet50_horovod.py --batch_size 128"
STEP = f"srun -c 12 {SHARED}"
ONE_TASK = "--ntasks=1 --cpus-per-task=12 --gres=gpu:2"
TRAIN = "python notebooks/scripts/ResNet50.py"
ALONE = f"{TRAIN} --n_gpus 2 --batch_size 128"
# Directives and command of a script for juwels-booster, and what is found; None: nothing.
SLURM = {
    "tasks for each GPU": ("--nodes=1 --gres=gpu:2 --ntasks-per-gpu=1", f"srun {SHARED}", None),
    "tasks counted twice": (f"{RANKS} --ntasks=1", STEP, "Write --ntasks=2."),
    "a single GPU": (RANKS.replace("gpu:2", "gpu"), STEP, "2 tasks and 1 GPU on each node"),
    "handed on by srun": (f"{RANKS} --export=NONE", STEP.replace("srun", "srun --export=ALL"), None),
    "worker without GPU": (ONE_TASK.replace("gpu:2", "gpu:1"), ALONE, "Write --gres=gpu:2."),
    "launcher in launcher": (RANKS, STEP.replace("python", "horovodrun -np 2 python"), "Remove horovodrun"),
    "only options": (RANKS, "srun -c 12 python -u $*", None),
    "awaited by a loop": (ONE_TASK, f"{ALONE} &\nwhile kill -0 $!; do sleep 9; done", None),
}  # fmt: skip
MINE, NODE = "--ntasks=1 --cpus-per-task=4 --gres=gpu:2", "--nodes=1 --ntasks=1 --cpus-per-task=4 --gres=gpu:2"
FOUR = "--nodes=2 --ntasks-per-node=2 --cpus-per-task=2 --gres=gpu:2"
LOOP = f"for workers in 1 2; do\nBATCH\n{TRAIN} --n_gpus $workers --batch_size $batch\ndone"
PART = "python notebooks/scripts/ResNet50_horovod.py --batch_size"
# The same for site local, with `set -eu` before the command.
LOCAL = {
    "conda's hook": (MINE, f'eval "$(conda shell.bash hook)"\nconda activate labs\n{ALONE}', None),
    "conda's module": (MINE, f"module load miniforge3\nconda activate labs\nsrun -n1 -c4 {ALONE} |& cat", None),
    "other batches on more nodes": (
        FOUR, f"for n in 1 2; do srun -c 2 --nodes=$n --ntasks=$((2*n)) {PART} $((64 * n)); done", None),
    "one batch on more nodes": (
        FOUR, f"for n in 1 2; do srun -c 2 --nodes=$n --ntasks=$((2*n)) {PART} 256; done", "256 on 2 workers, 256"),
    "ranks of one node": (FOUR, f"srun -c 2 -n 2 {PART} 128", "starts 2 tasks, the job has 4: GPUs are"),
    "too many ranks": (FOUR, f"srun -c 2 --ntasks-per-node=4 --ntasks=8 {PART} 512", "starts 8 tasks, the job has 4"),
    "no seed": (MINE, f'{ALONE} --seed "$seed"', "$seed is not set"),
    "no tasks per node": (MINE, f"echo $SLURM_NTASKS_PER_NODE; {ALONE}", "Add #SBATCH --ntasks-per-node="),
    "letters of a name": (MINE, f"BATCHSIZE=64\n{ALONE} $BATCH_SIZE", "Did you mean $BATCHSIZE?"),
    "a name with $": (MINE, LOOP.replace("BATCH", "$batch=$((64*workers))"), "Set it above by batch=VALUE, without $"),
    "blanks around =": (MINE, LOOP.replace("BATCH", "batch = $((64*workers))"), "without blanks around the ="),
    "a program that computes": (MINE, LOOP.replace("BATCH", "batch=$(64*workers)"), "$((...)) computes"),
    "text for a number": (MINE, LOOP.replace("BATCH", "batch=64*workers"), "'64*workers', which is not a whole"),
    "blanks behind \\": (MINE, ALONE.replace("--b", "\\ \n--b"), "no blank follows a \\ at the end"),
    "an index too many": (
        f"{MINE} --array=0-2 -o notebooks/runs/%A_%a.out -e notebooks/runs/%A_%a.err",
        f"sizes=(16 32)\n{ALONE} --seed ${{sizes[$SLURM_ARRAY_TASK_ID]}}", "the first index is 0"),
    "letters of a folder": (MINE, f"cd notebook\n{ALONE}", "cd: notebook: No such file"),
    "megabytes": (f"{MINE} --mem=16", ALONE, "is 16 MB"),
    "no size": (f"{MINE} --mem=lots", ALONE, "a size such as 4G"),
    "an option of a plugin": (f"{MINE} --qqqzzz=1", ALONE, "If it belongs to a plugin of your site"),
    "too many by --gpus": ("--gpus=8 --ntasks=1 --cpus-per-task=4", ALONE, "8 GPUs per node"),
    "seconds": (f"{MINE} --time=00:01:59", ALONE, "119 seconds"),
    "gpus": (MINE.replace("gpu:", "gpus:"), ALONE, "does not know this resource"),
    "dashes in a directive": (f"{MINE} \u2013-mem=4G", ALONE, "is not an option"),
}  # fmt: skip
FIRST = {
    "byte-order mark": ("\ufeff#!", "begins with a byte-order mark"),
    "a dash in it": ("#!/bin/bash \u2013l\n#", "first line is not #!/bin/bash"),
    "two options": ("#!/bin/bash -e -u\n#", "first line is not #!/bin/bash"),
    "merge": ("<<<<<<< HEAD\n#SBATCH -n1\n=======\n>>>>>>> main\n#!/bin/bash\n", "bash cannot read the script"),
}


def found(text, site, root):
    return check.look_at(text, site, root).findings


def script(name):
    """(text, site, words of its one finding or None, numbers of the lines where it may stand) of a case."""
    if name in WRONG:
        site, source, old, new, words, mark = WRONG[name]
        right = (RENDERED / site / source).read_text()
        assert old in right, f"{source} of {site} has no {old!r} any more"
        text = right.replace(old, new)
        lines = text.split("\n")
        return text, site, words, [at for at, line in enumerate(lines, 1) if mark in line or at == len(lines)]
    if name in FIRST:
        start, words = FIRST[name]
        text = f"{HEAD}{ONE_TASK}\nset -e\n{ALONE}\n"
        return text.replace("#!/bin/bash\n#" if start.endswith("\n#") else "#!", start, 1), "juwels-booster", words, [1]
    site, flags = ("local", "eu") if name in LOCAL else ("juwels-booster", "e")
    directives, command, words = (SLURM | LOCAL)[name]
    return f"{HEAD}{directives}\nset -{flags}\n{command}\n", site, words, range(1, 20)


def fixed(text, one):
    """A script with a finding's fix applied, where that is to write or remove directives; None for another one."""
    options = re.findall(r"--([a-z-]+)=([\w:]+)", one.fix) if one.fix.startswith("Write --") else []
    gone = [*re.findall(r"(?:Remove|in place of) --([a-z-]+)", one.fix), *(name for name, _ in options)]
    if not gone:
        return None
    lines = [re.sub(rf" --({'|'.join(gone)})=\S*", "", line) if line[:1] == "#" else line for line in text.split("\n")]
    lines[1:1] = [f"#SBATCH --{name}={value}" for name, value in options]
    return "\n".join(line for line in lines if line.strip() != "#SBATCH")


@pytest.mark.parametrize("name", [*WRONG, *FIRST, *SLURM, *LOCAL])
def test_a_mistake_gives_its_own_finding_alone_whose_fix_leaves_nothing_to_find(name, course):
    text, site, words, numbers = script(name)
    findings = found(text, site, course)
    assert len(findings) == (words is not None), "\n".join(one.text() for one in findings)
    for one in findings:
        assert words in one.text() and one.line_number in numbers and one.fix, one.text()
        after = fixed(text, one)
        assert after is None or [each.text() for each in found(after, site, course)] == [], one.fix


def label(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", sorted([*RENDERED.glob("*/*.sh"), *DATA.glob("*.sh")]), ids=label)
def test_right_scripts_are_right(path, course):
    site = "local" if path.parent == DATA else path.parent.name
    assert [one.text() for one in found(path, site, course)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "slurm").glob("*/*.sh")), ids=label)
def test_blanks_are_named_and_nothing_else(path, course):
    findings = found(path, path.parent.name, course)
    lines = [line.removesuffix("  # your code here") for line in path.read_text().split("\n")]
    blanks = [number for number, line in enumerate(lines, 1) if line.endswith("=...") and not line.startswith("# ")]
    assert blanks and [one.line_number for one in findings] == blanks
    assert all("Still blank" in one.problem for one in findings)


def test_personal_settings_are_missed_only_where_the_site_wants_them(course, monkeypatch):
    text = (RENDERED / "marenostrum5" / ONE).read_text()
    monkeypatch.delenv("SBATCH_QOS")
    (one,) = found(text, "marenostrum5", course)
    assert "a QOS" in one.problem and "SBATCH_QOS" in one.fix
    (course / "slurm/sites/marenostrum5.local.toml").write_text('qos = "course"\n')
    monkeypatch.delenv("SBATCH_ACCOUNT")
    (one,) = found(text, "marenostrum5", course)
    assert "an account" in one.problem
    assert found((RENDERED / "local" / ONE).read_text(), "local", course) == []


def test_ranks_that_are_too_few_leave_cores_idle_where_the_job_has_no_gpus(course):
    text = f"{HEAD}--nodes=2 --ntasks-per-node=2\nset -eu\nsrun -n 2 {PART} 128\n"
    assert "starts 2 tasks, the job has 4: cores are idle" in found(text, "local", course)[-1].problem


def test_several_findings_come_in_the_order_of_lines(course):
    text = (RENDERED / "local" / NODES).read_text().replace("partition=main", "partition=x").replace("gpu:2", "gpu:9")
    lines = [one.line_number for one in found(text.replace("--time=00", "--time=09"), "local", course)]
    assert len(lines) >= 3 and lines == sorted(lines)


@pytest.fixture
def report(course, capsys, monkeypatch):
    """report(text) -> (exit code, what is printed) of the check of a script with this text."""
    monkeypatch.chdir(course)

    def report(text):
        (course / "x.sh").write_text(text)
        return check.report_on_script(course / "x.sh", "local"), capsys.readouterr().out

    return report


def test_report(report):
    code, told = report("#!/bin/bash\n# SBATCH --nodes=1\n")
    assert code == 1 and "line 2: SLURM ignores" in told
    with pytest.raises(UseError, match="none.sh cannot be checked: No such file"):
        check.report_on_script("none.sh", "local")


def test_where_it_cannot_be_tried_out_that_is_said_first_and_nothing_is_claimed(report, monkeypatch):
    monkeypatch.setattr(sandbox, "sandbox_missing", lambda: "no bubblewrap")
    monkeypatch.setattr(sandbox, "run_walled", None)
    code, told = report((RENDERED / "local" / ONE).read_text().replace('--batch_size "$batch"', "--batch_size 64*w"))
    first, last = told.splitlines()
    assert code == 3 and first == "Not tried out: no bubblewrap. What the script starts was not checked."
    assert last.startswith("Nothing found in the directives of") and "nothing is known of what it starts" in last
    code, told = report(script("too long")[0])
    assert code == 1 and "no bubblewrap" in told.splitlines()[0] and "1 error in the directives of" in told


# Scripts that got out of a restricted bash, or would take all of a machine; SAFE: a folder that is to stay as it is.
HOSTILE = {
    "files into findings": 'cd "$(</etc/hostname)"; x=$(cat /etc/passwd); python "$x.py" $x; . /etc/passwd',
    "every way to start": """touch SAFE/a; x=$(touch SAFE/a) y=`touch SAFE/a`; eval touch SAFE/a; coproc touch SAFE/a
trap 'touch SAFE/a' EXIT DEBUG; builtin eval 'touch SAFE/a'; BASH_ENV=<(echo touch SAFE/a) bash; rm -rf SAFE""",
    "an empty folder that is not": 'rm -rf "$SCRATCH"/*; rm -rf "${NOWHERE:-}"/*; exit 1',
    "processes without end": "bomb() { bomb | bomb; }; bomb",
    "loops without traps": "shopt() { :; }; trap - DEBUG ERR; while :; do :; done",
    "records of its own": 'rm -rf .calls; mkdir -p .calls/7; echo x > "$LABS_CALLS/9"; echo 9 9 > .calls/not_found',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_script_reaches_nothing_and_gets_an_answer(name, course, tmp_path, monkeypatch):
    limits = sandbox.Limits(seconds=3, memory=200 << 20, processes=64, disk=20 << 20)
    monkeypatch.setattr("labs.slurm.trial.script.LIMITS", limits)
    safe = tmp_path / "safe"
    safe.mkdir()
    (safe / "kept").write_text("x")
    monkeypatch.setenv("SCRATCH", str(safe))
    before = sorted(course.rglob("*"))
    text = "#!/bin/bash\n" + HOSTILE[name].replace("SAFE", str(safe)) + "\npython end.py\n"
    subject = check.look_at(text, "local", course)
    told = [one.text() for one in subject.findings] + subject.unknown()
    assert sorted(course.rglob("*")) == before and (safe / "kept").read_text() == "x"
    assert told and max(map(len, told)) < 3_000
    secret = Path("/etc/passwd").read_text().split("\n")[0]
    assert not any(secret in one for one in told)
