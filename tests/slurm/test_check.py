"""The check of batch scripts: wrong scripts, each by one change of a right one."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from labs import sandbox
from labs.slurm import check, sites
from teaching.author import render

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
        "small letters": ("#SBATCH --nodes", "#sbatch --nodes", "spelt #sbatch", "#sbatch"),
        "indented": ("#SBATCH --nodes", "  #SBATCH --nodes", "start of the line", "--nodes"),
        "after a command": ("#SBATCH --ntasks=1", "cd .\n#SBATCH --ntasks=1", "after the first", "#SBATCH --ntasks"),
        "no interpreter": ("#!/bin/bash\n", "", "first line", "# ResNet50V2 on"),
        "Windows": ("\n", "\r\n", "line ends of Windows", "#!/bin/bash"),
        "open loop": ("\ndone", "\n", "syntax error", ""),
        "no time": ("--time=00:30:00", "--time=30min", "not a value for --time", "30min"),
        "too long": ("--time=00:30:00", "--time=3:00:00", "longer than the 2 hours", "3:00:00"),
        "other partition": ("partition=main", "partition=booster", "no partition 'booster'", "booster"),
        "no folder": ("--output=notebooks/runs/", "--output=logs/", "folder logs of --output", "=logs/"),
        "no job number": ("%x_%j.out", "%x.out", "next job overwrites", "%x.out"),
        "variable in a directive": ("--output=notebooks", "--output=$HOME", "fill in variables", "$HOME"),
        "one file for both": ("%x_%j.err", "%x_%j.out", "name the same file", "--error"),
        "no error file": ("#SBATCH --error=notebooks/runs/%x_%j.err\n", "", "No --error", "--output"),
        "no GPU": ("#SBATCH --gres=gpu:2\n", "", "no GPU", "--cpus-per-task"),
        "GPUs of two nodes": ("gres=gpu:2", "gres=gpu:8", "8 GPUs per node", "gpu:8"),
        "copies": (
            '    "${python[@]}" "$S',
            '    srun --mpi=pmi2 -n 2 "${python[@]}" "$S',
            "ResNet50.py 2 times",
            "srun --mpi=pmi2",
        ),
        "idle tasks": ("--ntasks=1", "--ntasks=4", "4 tasks for MirroredStrategy", "--ntasks=4"),
        "idle node": ("--nodes=1", "--nodes=2", "2 nodes for MirroredStrategy", "--nodes=2"),
        "same batch": ("64 * workers", "64", "same global batch of 64 on 1, 2", "--dataset"),
        "batch that grows too slowly": ("64 * workers", "32 + 32 * workers", "64 on 1, 96 on 2", "--dataset"),
        "no script": ('ResNet50.py"', 'ResNet05.py"', "no notebooks/scripts/ResNet05.py", 'ResNet05.py"'),
        "wrong folder": ("for workers", "cd notebooks\nfor workers", ".venv/bin/python: No such file", "--dataset"),
        "path of a machine": ("set -euo", "export LABS_DATA=/lustre/data\nset -euo", "/lustre/data", "/lustre"),
        "goes on": ("set -euo", "set -uo", "goes on after an error", "set -uo"),
    },
    ("cte-power", ONE): {
        "partition elsewhere": (
            "#SBATCH --nodes",
            "#SBATCH --partition=booster\n#SBATCH --nodes",
            "JUWELS",
            "=booster",
        ),
        "too few cores": ("task=160", "task=80", "4 GPUs of a node of CTE-POWER go with 160", "=80"),
        "no modules": ("module load ", "echo ", "Not loaded: gcc/8.3.0", "module purge"),
    },
    ("marenostrum5", "maxbatch.sh"): {"too many cores": ("task=20", "task=40", "Too many CPUs", "--cpus-per-task")},
    ("cte-power", HOROVOD): {"cores of all tasks": ("task=40", "task=20", "4 tasks with 20 CPUs each are 80", "=20")},
    ("local", NODES): {
        "more nodes than there are": ("--nodes=2", "--nodes=20", "20 nodes", "--nodes=20"),
        "fewer tasks than GPUs": ("per-node=2", "per-node=1", "1 task and 2 GPUs", "per-node=1"),
        "no launcher": (START, "", "without a launcher", "ResNet50_horovod.py"),
        "other launcher": (START, 'mpirun -np "$SLURM_NTASKS" ', "mpirun starts ranks", "mpirun"),
        "one core for a rank": ("export SRUN_CPUS_PER_TASK", "export OTHER", "1 CPU of the 2", "srun --mpi=pmi2"),
    },
    ("local", HOROVOD): {"batch in unequal parts": ("64 * ranks", "64 * ranks + 1", "129", "srun --mpi=pmi2")},
    ("juwels-booster", ONE): {
        "threads without hyperthreading": (
            "#SBATCH --nodes",
            "#SBATCH --hint=nomultithread\n#SBATCH --nodes",
            "it has 48 cores",
            "--cpus-per-task",
        ),
        "account": ("#SBATCH --nodes", "#SBATCH --account=hpc123\n#SBATCH --nodes", "hpc123", "hpc123"),
    },
}
WRONG = {name: (*where, *change) for where, changes in CHANGES.items() for name, change in changes.items()}


def found(text, site, root):
    return check.check_script(text, site, root=root, scheduler=False)


def changed(name):
    """(text, expected line number) of a wrong script."""
    site, script, old, new, _, mark = WRONG[name]
    right = (RENDERED / site / script).read_text()
    assert old in right, f"{script} of {site} has no {old!r} any more"
    text = right.replace(old, new)
    lines = [line.rstrip("\r") for line in text.split("\n")]
    numbers = [number for number, line in enumerate(lines, 1) if mark in line] if mark else [len(lines)]
    return text, numbers


def test_a_misspelt_option_is_named_once_and_counts_as_the_one_that_was_meant():
    text = (RENDERED / "cte-power" / ONE).read_text().replace("--cpus-per-task", "--cpus-per-taks")
    (one,) = found(text, "cte-power", ROOT)
    assert one.problem.endswith("--cpus-per-taks is not an option of sbatch.")
    assert one.fix == "Did you mean --cpus-per-task?"


@pytest.mark.parametrize("name", WRONG)
def test_wrong_script_gives_its_own_finding_alone(name, course):
    text, numbers = changed(name)
    site, _, _, _, words, _ = WRONG[name]
    findings = found(text, site, course)
    assert len(findings) == 1, "\n".join(one.text() for one in findings)
    assert words in findings[0].text() and findings[0].line_number in numbers, findings[0].text()
    assert findings[0].why and findings[0].fix


def label(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", sorted(RENDERED.glob("*/*.sh")), ids=label)
def test_rendered_scripts_are_right(path, course):
    assert [one.text() for one in found(path, path.parent.name, course)] == []


@pytest.mark.parametrize("path", sorted(DATA.glob("*.sh")), ids=lambda path: path.stem)
def test_right_scripts_of_another_style(path, course):
    assert [one.text() for one in found(path, "local", course)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "slurm").glob("*/*.sh")), ids=label)
def test_blanks_are_named_and_nothing_else(path, course):
    findings = found(path, path.parent.name, course)
    lines = [line.removesuffix("  # your code here") for line in path.read_text().split("\n")]
    blanks = [number for number, line in enumerate(lines, 1) if line.endswith("=...") and not line.startswith("# ")]
    assert blanks and [one.line_number for one in findings] == blanks
    assert all("Still blank" in one.problem for one in findings)


@pytest.mark.parametrize(("launcher", "options"), [("mpiexec", '["-prepend-rank"]'), ("horovodrun", '["--gloo"]')])
def test_rendered_scripts_of_a_site_with_another_launcher(launcher, options, course):
    for source in (ROOT / "solutions" / "slurm").glob("*.sh"):
        (course / "solutions" / "slurm").mkdir(parents=True, exist_ok=True)
        shutil.copy(source, course / "solutions" / "slurm")
    text = (course / "slurm" / "sites" / "local.toml").read_text()
    text = text.replace('launcher = "srun"', f'launcher = "{launcher}"').replace('["--mpi=pmi2"]', options)
    (course / "slurm" / "sites" / "own.toml").write_text(text)
    made = {name: text for name, text in render.scripts(course).items() if name.startswith("solutions/slurm/own/")}
    assert any(launcher in text for text in made.values())
    assert {name: [one.text() for one in found(text, "own", course)] for name, text in made.items()} == {
        name: [] for name in made
    }
    site = sites.load("own", course)
    text = (RENDERED / "local" / NODES).read_text()
    (one,) = found(text, site, course)
    assert f"srun starts ranks, not {launcher}" in one.problem


def test_personal_settings_are_missed_only_where_the_site_wants_them(course, monkeypatch):
    text = (RENDERED / "marenostrum5" / ONE).read_text()
    monkeypatch.delenv("SBATCH_QOS")
    (one,) = found(text, "marenostrum5", course)
    assert "a QOS" in one.problem and "SBATCH_QOS" in one.fix
    local = course / "slurm" / "sites" / "marenostrum5.local.toml"
    local.write_text('qos = "course"\n')
    assert found(text, "marenostrum5", course) == []
    local.unlink()
    monkeypatch.delenv("SBATCH_ACCOUNT")
    assert len(found(text, "marenostrum5", course)) == 2
    assert found((RENDERED / "local" / ONE).read_text(), "local", course) == []


def test_several_findings_come_in_the_order_of_lines(course):
    text = (RENDERED / "local" / NODES).read_text().replace("set -euo", "set -uo")
    text = text.replace("gpu:2", "gpu:9").replace("--time=", "--tim =").replace("64 * SLURM_NTASKS", "63")
    lines = [one.line_number for one in found(text, "local", course)]
    assert len(lines) >= 4 and lines == sorted(lines)


# Directives and command of a script for juwels-booster, and what is found.
HEAD = "#!/bin/bash\n#SBATCH --time=00:20:00 --output=notebooks/runs/%j.out --error=notebooks/runs/%j.err\n#SBATCH "
RANKS = "--nodes=1 --ntasks-per-node=2 --cpus-per-task=12 --gres=gpu:2"
SHARED = "python notebooks/scripts/ResNet50_horovod.py --batch_size 128"
STEP = f"srun -c 12 {SHARED}"
ONE_TASK = "--ntasks=1 --cpus-per-task=12 --gres=gpu:2"
ALONE = "python notebooks/scripts/ResNet50.py --n_gpus 2 --batch_size 128"
SLURM = {
    "ranks": (RANKS, STEP, None),
    "tasks for each GPU": ("--nodes=1 --gres=gpu:2 --ntasks-per-gpu=1", SHARED.join(("srun ", "")), None),
    "GPUs by tasks": ("--nodes=1 --ntasks=2 --ntasks-per-gpu=1", SHARED.join(("srun ", "")), None),
    "memory twice": (f"{RANKS} --mem=60G --mem-per-gpu=40G", STEP, "--mem-per-gpu and --mem exclude each other"),
    "CPUs twice": (f"{RANKS} --cpus-per-gpu=12", STEP, "--cpus-per-gpu and --cpus-per-task exclude each other"),
    "GPUs for no tasks": ("--gpus-per-task=1 --cpus-per-task=12", STEP, "--gpus-per-task needs one of"),
    "refused later": (
        "--nodes=1 --gres=gpu:2 --ntasks-per-gpu=1 --cpus-per-task=1", SHARED.join(("srun ", "")), "SLURM from 24.05"),
    "tasks counted twice": (f"{RANKS} --ntasks=1", STEP, "Write --ntasks=2."),
    "a single GPU": (RANKS.replace("gpu:2", "gpu"), STEP, "--gres=gpu without a number is 1 GPU on each node, for 2"),
    "nothing handed on": (f"{RANKS} --export=NONE", STEP, "by --export=NONE"),
    "handed on by srun": (f"{RANKS} --export=NONE", STEP.replace("srun", "srun --export=ALL"), None),
    "first part": (f"--ntasks=1\n#SBATCH hetjob\n#SBATCH {RANKS}", STEP, "Write srun --het-group=1."),
    "second part": (f"--ntasks=1\n#SBATCH hetjob\n#SBATCH {RANKS}", STEP.replace("srun", "srun --het-group=1"), None),
    "log of an array": (f"{ONE_TASK} --array=1-2 -o notebooks/runs/%A.out", ALONE, "all tasks of the array"),
    "logs of an array": (f"{ONE_TASK} --array=1-2 -o notebooks/runs/%A_%a.out", ALONE, None),
    "worker without GPU": (ONE_TASK.replace("gpu:2", "gpu:1"), ALONE, "Write --gres=gpu:2."),
    "GPUs of others": (ONE_TASK, f"CUDA_VISIBLE_DEVICES=0,1,2,3 {ALONE}", "names 4 GPUs, and the job has 2"),
    "launcher in launcher": (RANKS, STEP.replace("python", "horovodrun -np 2 python"), "Remove horovodrun"),
    "word behind the options": (ONE_TASK, f"{ALONE} epochs 5", "Did you mean --epochs?"),
    "end of options": (ONE_TASK, ALONE.replace("py --n", "py -- --n"), "Remove `--`"),
    "option without value": (ONE_TASK, f"{ALONE} --epochs $EPOCHS", "--epochs: expected one argument"),
    "submitted in notebooks": (
        f"{ONE_TASK} -o runs/%j.out -e runs/%j.err", ALONE.replace("notebooks/scripts", "scripts"), None),
    "only options": (RANKS, "srun -c 12 python -u $*", "Python starts without a script"),
    "text for a number, at a site": (ONE_TASK, f"set -u; ls $WORK\n{ALONE[:-3]}64*2", "'64*2', which is not"),
    "left by a subshell": (ONE_TASK, f"(for n in 2; do {ALONE}; done) &", "nothing waits"),
    "awaited by a loop": (ONE_TASK, f"{ALONE} &\nwhile kill -0 $!; do sleep 9; done", None),
}  # fmt: skip
FIRST = {
    "byte-order mark": ("\ufeff#!", "begins with a byte-order mark"),
    "a dash in it": ("#!/bin/bash \u2013l\n#", "`\u2013l` in the first line"),
    "two options": ("#!/bin/bash -e -u\n#", "several options"),
    "merge": ("<<<<<<< HEAD\n#SBATCH -n1\n=======\n>>>>>>> main\n#!/bin/bash\n", "marks of a merge"),
}


@pytest.mark.parametrize("name", SLURM)
def test_slurm_is_modelled_as_it_is(name, course):
    directives, command, words = SLURM[name]
    text = f"{HEAD}{directives}\nset -e\n{command}\n"
    findings = [one.text() for one in found(text, "juwels-booster", course)]
    assert len(findings) == (words is not None) and words in (None, *findings) or words in findings[0], findings


@pytest.mark.parametrize("name", FIRST)
def test_what_is_wrong_with_the_first_bytes_is_told_once(name, course):
    start, words = FIRST[name]
    text = f"{HEAD}{ONE_TASK}\nset -e\n{ALONE}\n".replace("#!/bin/bash\n#" if start.endswith("\n#") else "#!", start, 1)
    (one,) = found(text, "juwels-booster", course)
    assert words in one.problem and one.line_number == 1


def test_inside_a_job_what_the_next_one_keeps_of_it_is_told(course, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "100")
    (one,) = found(f"{HEAD}{ONE_TASK}\nset -e\n{ALONE}\n", "juwels-booster", course)
    assert "SLURM_MEM_PER_NODE" in one.problem and "env -u SLURM_MEM_PER_NODE sbatch" in one.fix
    assert found(f"{HEAD}{ONE_TASK} --mem=4G\nset -e\n{ALONE}\n", "juwels-booster", course) == []


def fixed(text, one):
    """A script with a finding's fix applied; None for a fix in other words."""
    lines = text.split("\n")
    options = re.findall(r"--([a-z-]+)=([\w:]+)", one.fix) if one.fix.startswith("Write --") else []
    gone = re.findall(r"(?:Remove|in place of) --([a-z-]+)", one.fix)
    if "srun --" in one.fix:
        lines[one.line_number - 1] = lines[one.line_number - 1].replace("srun", one.fix[6:].rstrip("."), 1)
    elif gone or options:
        for name in [*gone, *(name for name, _ in options)]:
            lines = [re.sub(rf" --{name}=\S*", "", line) if line.startswith("#SBATCH") else line for line in lines]
        at = max(number for number, line in enumerate(lines) if line.startswith("#SBATCH"))
        lines[at + 1 : at + 1] = [f"#SBATCH --{name}={value}" for name, value in options]
        lines = [line for line in lines if line.strip() != "#SBATCH"]
    elif match := re.match(r"Remove (\w+)(?: and its options)?[:.]", one.fix):
        line = lines[one.line_number - 1]
        lines[one.line_number - 1] = re.sub(rf"{match[1]}\b.*?(?=\S*python)", "", line, count=1)
    else:
        return None
    return "\n".join(lines)


def scripts_to_fix():
    for name, (directives, command, words) in SLURM.items():
        if words:
            yield name, f"{HEAD}{directives}\nset -e\n{command}\n", "juwels-booster"
    for name in WRONG:
        yield name, changed(name)[0], WRONG[name][0]


def test_a_fix_leaves_nothing_to_find(course):
    applied = set()
    for name, text, site in scripts_to_fix():
        for one in found(text, site, course):
            if (after := fixed(text, one)) is not None:
                applied.add(one.name)
                assert [each.text() for each in found(after, site, course)] == [], (name, one.fix)
    tried = "refused pair tasks_and_gpus one_gpu no_gpu too_many_gpus idle cpus partition too_long too_many_nodes"
    assert applied >= {*tried.split(), "two_launchers", "no_environment", "visible", "copies", "workers_without_gpu"}


NOTES = {"one file for both", "goes on"}


@pytest.mark.parametrize("name", ["too few cores", *sorted(NOTES)])
def test_a_note_is_no_error(name, course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    (course / "x.sh").write_text(changed(name)[0])
    (one,) = check.check_script(course / "x.sh", WRONG[name][0], root=course, scheduler=False)
    assert one.severity == ("note" if name in NOTES else "error")
    monkeypatch.setattr(check.script, "scheduler_refusal", lambda *_: None)
    assert check.report_on_script(course / "x.sh", WRONG[name][0], True) == (name not in NOTES)
    assert json.loads(capsys.readouterr().out)["findings"][0]["severity"] == one.severity


def test_where_it_cannot_be_tried_out_that_is_said_first_and_nothing_is_claimed(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    monkeypatch.setattr(sandbox, "sandbox_missing", lambda: "no bubblewrap")
    monkeypatch.setattr(sandbox, "run_walled", None)
    for text in ("--batch_size 64*workers", "--batch_size 128"):
        path = course / "x.sh"
        path.write_text((RENDERED / "local" / ONE).read_text().replace('--batch_size "$batch"', text))
        assert check.report_on_script(path, "local") == 3
        first, last = capsys.readouterr().out.splitlines()
        assert first == "Not tried out: no bubblewrap. What the script starts was not checked."
        assert last.startswith("Nothing found in the directives of") and "nothing is known of what it starts" in last
    path.write_text(changed("too long")[0])
    assert check.report_on_script(path, "local", True) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["tried_out"] is False and "no bubblewrap" in told["unknown"][0] and len(told["findings"]) == 1


def test_a_variable_is_never_suggested_as_itself(course):
    text = (RENDERED / "local" / ONE).read_text().replace("batch=$((", "$batch=$((")
    (one,) = found(text, "local", course)
    assert one.name == "fails" and "Did you mean" not in one.fix and "batch=..." in one.fix


@pytest.mark.parametrize("batch", [96, 256, 512])
def test_a_fixed_batch_on_a_fixed_number_of_nodes_is_right(batch, course):
    text = (RENDERED / "local" / NODES).read_text().replace("$((64 * SLURM_NTASKS))", str(batch))
    assert found(text, "local", course) == []


# Scripts that got out of a restricted bash, or would take all of a machine; SAFE: a folder that is to stay as it is.
HOSTILE = {
    "text that doubles": "x=aaaaaaaa; while :; do x=$x$x; done",
    "functions in functions": "f() { f; f; f; }; f",
    "files into findings": 'cd "$(</etc/hostname)"; x=$(cat /etc/passwd); python "$x.py" $x; . /etc/passwd',
    "every way to start": """touch SAFE/a; x=$(touch SAFE/a) y=`touch SAFE/a`; eval touch SAFE/a; coproc touch SAFE/a
trap 'touch SAFE/a' EXIT DEBUG; builtin eval 'touch SAFE/a'; BASH_ENV=<(echo touch SAFE/a) bash; rm -rf SAFE""",
    "an empty folder that is not": 'rm -rf "$SCRATCH"/*; rm -rf "${NOWHERE:-}"/*; exit 1',
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
    told = check.check_script(text, "local", root=course, scheduler=False)
    assert sorted(course.rglob("*")) == before and (safe / "kept").read_text() == "x"
    assert told and max(len(one.text()) for one in told) < 3_000
    secret = Path("/etc/passwd").read_text().split("\n")[0]
    assert not any(secret in one.text() for one in told)


def test_report_as_text_and_as_json(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    monkeypatch.setenv("PATH", "/nonexistent")  # no scheduler
    path = course / "wrong.sh"
    path.write_text("#!/bin/bash\n# SBATCH --nodes=1\n")
    site = sites.load("local")
    assert check.report_on_script(path, site) == 1
    assert "line 2: SLURM ignores" in capsys.readouterr().out
    assert check.report_on_script(path, "local", True) == 1
    rows = json.loads(capsys.readouterr().out)
    assert rows["site"] == "local" and {"line_number", "problem", "why", "fix", "severity", "name"} == set(
        rows["findings"][0]
    )
    with pytest.raises(check.ScriptError, match="none.sh cannot be checked: No such file"):
        check.report_on_script(course / "none.sh", site)


def test_the_scheduler_is_asked_for_the_site_in_use(course, monkeypatch, tmp_path):
    program = tmp_path / "bin" / "sbatch"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncat > /dev/null\necho "sbatch: error: $SAYS" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SAYS", "the node is purple")
    right = RENDERED / "local" / ONE
    (one,) = check.check_script(right, "local", root=course)
    assert "the node is purple" in one.problem and one.line_number == 1
    assert check.check_script(right, "local", root=course, scheduler=False) == []
    assert check.check_script(RENDERED / "cte-power" / ONE, "cte-power", root=course) == []
    (one,) = check.check_script(changed("too long")[0], "local", root=course)
    assert "purple" not in one.problem  # the check has said already why it is refused
    monkeypatch.setenv("SAYS", "Unable to contact slurm controller (connect failure)")
    assert check.check_script(right, "local", root=course) == []
