"""Tests of labs.slurm.check, .directives, .rehearse and .program: wrong scripts, each by one change of a right one."""

import json
import os
import shutil
from pathlib import Path

import pytest

from labs.author import render
from labs.slurm import check, directives, sites
from labs.slurm.check import program, rehearse

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).parents[1] / "data" / "slurm"
RENDERED = ROOT / "solutions" / "slurm"
ONE, NODES, HOROVOD = "ResNet50.sh", "ResNet50_horovod_nodes.sh", "ResNet50_horovod.sh"
SRUN = "srun --mpi=pmi2"
NO, YES = False, True  # does `sbatch --test-only` refuse it?

# name: site, script, what is replaced, by what, words of the finding, text of its line, whether sbatch refuses it
WRONG = {
    "blank after #": ("local", ONE, "#SBATCH --gres", "# SBATCH --gres", "blank between # and SBATCH", "gpu:2", NO),
    "misspelt SBATCH": ("local", ONE, "#SBATCH --time", "#SBTACH --time", "spelt #SBTACH", "#SBTACH", NO),
    "small letters": ("local", ONE, "#SBATCH --nodes", "#sbatch --nodes", "spelt #sbatch", "#sbatch", NO),
    "indented": ("local", ONE, "#SBATCH --nodes", "  #SBATCH --nodes", "start of the line", "--nodes", NO),
    "after a command": (
        "local",
        ONE,
        "#SBATCH --ntasks=1",
        "cd .\n#SBATCH --ntasks=1",
        "after the first command",
        "#SBATCH --ntasks",
        NO,
    ),
    "no interpreter": ("local", ONE, "#!/bin/bash\n", "", "first line", "# ResNet50V2 on", YES),
    "Windows": ("local", ONE, "\n", "\r\n", "CR LF", "#!/bin/bash", YES),
    "open loop": ("local", ONE, "\ndone", "\n", "syntax error", "", NO),
    "open quote": ("local", ONE, '"$batch" "$@"', '"$batch "$@"', "bash cannot read", '"$batch "$@"', NO),
    "unknown option": ("local", ONE, "--ntasks=1", "--ntask-number=1", "no option of sbatch", "--ntask-number", YES),
    "stray word": ("local", ONE, "--ntasks=1", "--ntasks=1 one", "one is no option", "--ntasks=1", YES),
    "no time": ("local", ONE, "--time=00:30:00", "--time=30min", "no value for --time", "30min", YES),
    "no number": ("local", ONE, "--nodes=1", "--nodes=one", "no value for --nodes", "=one", YES),
    "too long": ("local", ONE, "--time=00:30:00", "--time=3:00:00", "longer than the 2 hours", "3:00:00", YES),
    "other partition": ("local", ONE, "partition=main", "partition=booster", "no partition 'booster'", "booster", YES),
    "partition elsewhere": (
        "cte-power",
        ONE,
        "#SBATCH --nodes=1",
        "#SBATCH --nodes=1\n#SBATCH --partition=booster",
        "JUWELS",
        "=booster",
        YES,
    ),
    "no folder": (
        "local",
        ONE,
        "--output=notebooks/runs/",
        "--output=logs/",
        "logs of --output does not exist",
        "=logs/",
        NO,
    ),
    "no folder for errors": ("local", ONE, "--error=notebooks/runs/", "--error=logs/", "logs of --error", "=logs/", NO),
    "no job number": ("local", ONE, "%x_%j.out", "%x.out", "no job number", "%x.out", NO),
    "variable in a directive": ("local", ONE, "--output=notebooks", "--output=$HOME", "fill in variables", "$HOME", NO),
    "one file for both": ("local", ONE, "%x_%j.err", "%x_%j.out", "same file", "--error", NO),
    "no error file": ("local", ONE, "#SBATCH --error=notebooks/runs/%x_%j.err\n", "", "No --error", "--output", NO),
    "too few cores": ("cte-power", ONE, "task=160", "task=80", "4 GPUs of a node of CTE-POWER go with 160", "=80", NO),
    "too many cores": ("marenostrum5", "maxbatch.sh", "task=20", "task=40", "Too many CPUs", "--cpus-per-task", NO),
    "cores of all tasks": ("cte-power", HOROVOD, "task=40", "task=20", "4 tasks with 20 CPUs each are 80", "=20", NO),
    "no GPU": ("local", ONE, "#SBATCH --gres=gpu:2\n", "", "no GPU", "--cpus-per-task", NO),
    "GPUs of two nodes": ("local", ONE, "gres=gpu:2", "gres=gpu:8", "8 GPUs per node", "gpu:8", YES),
    "more nodes than there are": ("local", NODES, "--nodes=2", "--nodes=20", "20 nodes", "--nodes=20", YES),
    "fewer tasks than GPUs": ("local", NODES, "per-node=2", "per-node=1", "1 task and 2 GPUs", "per-node=1", NO),
    "copies": (
        "local",
        ONE,
        '    "${python[@]}" "$S',
        f'    {SRUN} -n 2 "${{python[@]}}" "$S',
        "starts ResNet50.py 2 times",
        SRUN,
        NO,
    ),
    "idle tasks": ("local", ONE, "--ntasks=1", "--ntasks=4", "4 tasks for MirroredStrategy", "--ntasks=4", YES),
    "idle node": ("local", ONE, "--nodes=1", "--nodes=2", "2 nodes for MirroredStrategy", "--nodes=2", NO),
    "workers without GPU": ("local", ONE, "in 1 2;", "in 1 2 4;", "--n_gpus 4", '"${python[@]}" "$SCRIPTS', NO),
    "no launcher": (
        "local",
        NODES,
        SRUN + ' --kill-on-bad-exit=1 --label --ntasks="$SLURM_NTASKS" ',
        "",
        "without a launcher",
        "ResNet50_horovod.py",
        NO,
    ),
    "other launcher": (
        "local",
        NODES,
        SRUN + ' --kill-on-bad-exit=1 --label --ntasks="$SLURM_NTASKS" ',
        'mpirun -np "$SLURM_NTASKS" ',
        "mpirun starts ranks",
        "mpirun",
        NO,
    ),
    "idle ranks": ("local", NODES, '--ntasks="$SLURM_NTASKS"', "--ntasks=2", "2 of the 4 tasks", SRUN, NO),
    "too many ranks": ("local", HOROVOD, "in 1 2;", "in 1 2 4;", "the job has 2", SRUN, NO),
    "same batch": ("local", ONE, "64 * workers", "64", "same global batch of 64 on 1, 2", "--dataset", NO),
    "same batch for ranks": ("local", HOROVOD, "64 * ranks", "128", "same global batch of 128", SRUN, NO),
    "batch of one node": (
        "local",
        NODES,
        "64 * SLURM_NTASKS",
        "64 * SLURM_NTASKS_PER_NODE",
        "does not follow",
        SRUN,
        NO,
    ),
    "batch of one worker": ("local", NODES, "64 * SLURM_NTASKS", "64", "does not follow", SRUN, NO),
    "batch that grows too slowly": (
        "local",
        ONE,
        "64 * workers",
        "32 + 32 * workers",
        "64 on 1, 96 on 2",
        "--dataset",
        NO,
    ),
    "batch in unequal parts": ("local", HOROVOD, "64 * ranks", "64 * ranks + 1", "129", SRUN, NO),
    "rate scaled twice": (
        "local",
        ONE,
        '"$batch" "$@"',
        '"$batch" --learning_rate "0.0$workers" "$@"',
        "scaled twice",
        "--dataset",
        NO,
    ),
    "constant rate": (
        "local",
        ONE,
        "$SCRIPTS/ResNet50.py",
        "notebooks/scripts/constant.py",
        "constant.py (line 3) has a constant",
        "constant.py",
        NO,
    ),
    "same rate": (
        "local",
        ONE,
        "$SCRIPTS/ResNet50.py",
        "notebooks/scripts/option.py",
        "same learning rate",
        "option.py",
        NO,
    ),
    "no script": (
        "local",
        ONE,
        'ResNet50.py"',
        'ResNet05.py"',
        "There is no notebooks/scripts/ResNet05.py",
        'ResNet05.py"',
        NO,
    ),
    "wrong folder": (
        "local",
        ONE,
        "for workers",
        "cd notebooks\nfor workers",
        "no notebooks/notebooks/scripts",
        "--dataset",
        NO,
    ),
    "path of a machine": (
        "local",
        ONE,
        "set -euo",
        "export LABS_DATA=/lustre/data\nset -euo",
        "/lustre/data",
        "/lustre",
        NO,
    ),
    "account": (
        "juwels-booster",
        ONE,
        "#SBATCH --nodes",
        "#SBATCH --account=hpc123\n#SBATCH --nodes",
        "hpc123",
        "hpc123",
        NO,
    ),
    "no modules": ("cte-power", ONE, "module load ", "echo ", "Not loaded: gcc/8.3.0", "module purge", NO),
    "a module less": ("cte-power", ONE, " nccl/2.4.8", "", "Not loaded: nccl/2.4.8.", "module load", NO),
    "goes on": ("local", ONE, "set -euo", "set -uo", "goes on after an error", "set -uo", NO),
    "one core for a rank": ("local", NODES, "export SRUN_CPUS_PER_TASK", "export OTHER", "1 CPU of the 2", SRUN, NO),
}


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course's folder with the sites, complete training scripts and no personal settings but these."""
    for name in [name for name in os.environ if name.startswith(("SBATCH_", "SLURM_", "LABS_", "SRUN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("SCRIPTS", raising=False)
    monkeypatch.setenv("SBATCH_ACCOUNT", "project")
    monkeypatch.setenv("SBATCH_QOS", "course")
    shutil.copytree(ROOT / "slurm" / "sites", tmp_path / "slurm" / "sites", ignore=shutil.ignore_patterns("*.local.*"))
    shutil.copytree(ROOT / "solutions" / "scripts", tmp_path / "notebooks" / "scripts")
    (tmp_path / "notebooks" / "runs").mkdir()
    scripts = tmp_path / "notebooks" / "scripts"
    start = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
    (scripts / "constant.py").write_text(start + "optimizer = tf.keras.optimizers.SGD(0.01)\n")
    (scripts / "option.py").write_text(start + "optimizer = tf.keras.optimizers.SGD(args.learning_rate)\n")
    return tmp_path


def found(text, site, root):
    return check.check(text, site, root=root, scheduler=False)


def changed(name):
    """(text, expected line number) of a wrong script."""
    site, script, old, new, _, mark, _ = WRONG[name]
    right = (RENDERED / site / script).read_text()
    assert old in right, f"{script} of {site} has no {old!r} any more"
    text = right.replace(old, new)
    lines = [line.rstrip("\r") for line in text.split("\n")]
    numbers = [number for number, line in enumerate(lines, 1) if mark in line] if mark else [len(lines)]
    return text, numbers


@pytest.mark.parametrize("name", WRONG)
def test_wrong_script_gives_its_own_finding_alone(name, course):
    text, numbers = changed(name)
    site, _, _, _, words, _, refused = WRONG[name]
    findings = found(text, site, course)
    assert len(findings) == 1, "\n".join(one.text() for one in findings)
    assert words in findings[0].text() and findings[0].line_number in numbers, findings[0].text()
    assert findings[0].why and findings[0].fix and findings[0].refused >= refused


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
    assert "a QOS" in one.problem and "SBATCH_QOS" in one.fix and one.refused
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


def test_text_of_a_finding(course):
    (one,) = found(changed("too few cores")[0], "cte-power", course)
    first, why, fix = one.text().split("\n")
    assert first.startswith(f"line {one.line_number}: Too few CPUs") and why.startswith("    ")
    assert "--cpus-per-task=160" in fix


def test_report_as_text_and_as_json(course, capsys, monkeypatch):
    monkeypatch.chdir(course)
    monkeypatch.setenv("PATH", "/nonexistent")  # no scheduler
    path = course / "wrong.sh"
    path.write_text("#!/bin/bash\n# SBATCH --nodes=1\n")
    site = sites.load("local")
    assert check.report(path, site) == 1
    assert "line 2: SLURM ignores" in capsys.readouterr().out
    assert check.report(path, "local", True) == 1
    rows = json.loads(capsys.readouterr().out)
    assert rows["site"] == "local" and {"line_number", "problem", "why", "fix", "refused"} == set(rows["findings"][0])
    with pytest.raises(check.ScriptError, match="none.sh cannot be checked: No such file"):
        check.report(course / "none.sh", site)


def test_the_scheduler_is_asked_for_the_site_in_use(course, monkeypatch, tmp_path):
    program = tmp_path / "bin" / "sbatch"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncat > /dev/null\necho "sbatch: error: $SAYS" >&2\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SAYS", "the node is purple")
    right = RENDERED / "local" / ONE
    (one,) = check.check(right, "local", root=course)
    assert "the node is purple" in one.problem and one.refused and one.line_number == 1
    assert check.check(right, "local", root=course, scheduler=False) == []
    assert check.check(RENDERED / "cte-power" / ONE, "cte-power", root=course) == []
    (one,) = check.check(changed("too long")[0], "local", root=course)
    assert "purple" not in one.problem  # the check has said already why it is refused
    one, other = check.check(changed("no folder")[0], "local", root=course)
    assert "purple" in one.problem and "logs" in other.problem
    monkeypatch.setenv("SAYS", "Unable to contact slurm controller (connect failure)")
    assert check.check(right, "local", root=course) == []


# directives, as `sbatch --test-only -vv` (22.05) was seen to read them


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#SBATCH -N2 --job-name=a", {"nodes": "2", "job-name": "a"}),
        ("#SBATCH --nodes 2 -c4", {"nodes": "2", "cpus-per-task": "4"}),
        ("#SBATCH --job-name=a # --nodes=2", {"job-name": "a"}),
        ("#SBATCH --job-name=a#b --nodes=2", {"job-name": "a"}),
        ('#SBATCH --job-name="a b" --nodes=2', {"job-name": "a b", "nodes": "2"}),
        ("#SBATCH --nodes\n#SBATCH 2", {"nodes": "2"}),
        ("#SBATCH--nodes=2", {"nodes": "2"}),
        ("#SBATCH --job-n=a", {"job-name": "a"}),
        ("#SBATCH -J a -J b", {"job-name": "b"}),
        ("#SBATCH --job-name=$USER", {"job-name": "$USER"}),
        ("\n \t\n#\n#SBATCH -Q --exclusive -J z", {"quiet": "", "exclusive": "", "job-name": "z"}),
        ("##SBATCH -N2", {}),
        ("# SBATCH -N2", {}),
        (" #SBATCH -N2", {}),
        ("echo\n#SBATCH -N2", {}),
    ],
)
def test_directives_are_those_that_sbatch_takes(line, expected):
    script = directives.read(f"#!/bin/bash\n{line}\n")
    assert {one.option: script.value(one.option) for one in script.directives} == expected
    assert not script.refused


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("--nods=2", "--nods"),
        ("x", "x"),
        ("nodes=2", "nodes=2"),
        ("-Z", "-Z"),
        ("--nodes", "needs a value"),
        ("--contiguous=1", "takes no value"),
        ('--job-name="a', "not closed"),
        (": -N2", "colon"),
    ],
)
def test_directives_that_sbatch_refuses(line, word):
    (refused,) = directives.read(f"#!/bin/bash\n#SBATCH {line}\n").refused
    assert refused[0] == 2 and word in refused[2]


@pytest.mark.parametrize(
    "comment",
    ["##SBATCH -N2", "# SBATCH lines are read by sbatch", "# sbatch --time=5 x.sh", "# Batch - a word", "# --nodes=2"],
)
def test_comments_are_not_meant_as_directives(comment):
    assert directives.read(f"#!/bin/bash\n{comment}\n").ignored == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "-N2 --ntasks-per-node=2 --gres=gpu:2 -c4",
            {"tasks": 4, "tasks_per_node": 2, "gpus_per_node": 2, "cpus_per_node": 8},
        ),
        ("-n8 --ntasks-per-node=4", {"nodes": None, "tasks": 8, "tasks_per_node": 4}),
        ("-N2 --gpus=8", {"gpus_per_node": 4, "tasks": 2}),
        ("-N2 -n8 --gpus-per-task=1", {"gpus_per_node": 4}),
        ("--gres=gpu:v100:3,tmp:5", {"gpus_per_node": 3, "cpus_per_node": 1}),
        ("--gpus-per-node=a100:4 --cpus-per-gpu=20", {"gpus_per_node": 4, "cpus_per_node": 80}),
        ("--gres=... --ntasks=...", {"gpus_per_node": None, "tasks": None, "cpus_per_node": None}),
        ("-t 1-12:00:00 -N 1-3", {"time_minutes": 2160, "nodes": 3}),
        ("", {"nodes": None, "ntasks": None, "tasks": 1, "gpus_per_node": 0, "cpus_per_node": 1, "time_minutes": None}),
    ],
)
def test_resources(line, expected):
    asked = directives.read(f"#!/bin/bash\n#SBATCH {line}\n").resources()
    assert {key: asked[key] for key in expected} == expected


# rehearsal


def words(text, root, **options):
    return [one.words for one in rehearse.rehearse("#!/bin/bash\n" + text, root, **options)]


def test_rehearsal_fills_variables_loops_functions_and_arrays(course):
    text = """#SBATCH -N2 --ntasks-per-node=2
set -euo pipefail
python=(singularity exec "${IMAGE:?set it}" python)
run() { local n=$1; shift; srun -n "$n" "${python[@]}" \\
    notebooks/scripts/ResNet50.py "$@" &> all.txt; }
for n in 1 2; do run "$n" --batch_size=$((64 * n)) --n_gpus "$n" "" > /nowhere/x; done
A=1 B="x y" time mpiexec -n "$SLURM_NTASKS" python notebooks/scripts/ResNet50.py --flag --run "a b" | cat
(cd notebooks; python scripts/ResNet50.py)
exec python last.py
echo not reached; python never.py
"""
    found = [one for one in rehearse.rehearse("#!/bin/bash\n" + text, course) if one.words[0] != "cat"]
    assert [one.launcher for one in found] == ["srun", "srun", "mpiexec", None, None]
    assert [one.tasks for one in found] == [1, 2, 4, 1, 1]
    assert [str(one.script) for one in found] == ["notebooks/scripts/ResNet50.py"] * 4 + ["last.py"]
    assert found[1].options == {"batch_size": "128", "n_gpus": "2"} and found[1].words[-1] == ""
    assert found[2].options == {"flag": "", "run": "a b"}
    assert [one.line_number for one in found] == [5, 5, 8, 9, 10]


def test_rehearsal_starts_nothing_and_writes_nothing(course, tmp_path):
    safe = tmp_path / "safe"
    safe.mkdir()
    (safe / "kept").write_text("x")
    text = f"""
PATH=/usr/bin:/bin touch {safe}/a; export PATH=/usr/bin:/bin; touch {safe}/b; rm -rf {safe}; /bin/rm -rf {safe}
echo x > {safe}/c; {{ echo x; }} > {safe}/d; for i in 1; do echo; done >> {safe}/e; (echo) &> {safe}/f; > {safe}/g
if true; then echo; fi > {safe}/h 2>&1; f() {{ echo; }} > {safe}/i; f > {safe}/j; exec > {safe}/k; exec 3> {safe}/l
x=$(/usr/bin/touch {safe}/m; touch {safe}/n); echo "$(/usr/bin/touch {safe}/o)" `touch {safe}/p`
command -p touch {safe}/q; builtin trap - DEBUG; trap - DEBUG; trap '/bin/touch {safe}/r' EXIT; set +T
shopt -u extdebug; enable -n trap; hash -p /usr/bin/touch say; say {safe}/s; eval "/usr/bin/touch {safe}/t"
bash -c "touch {safe}/u"
. {safe}/kept; source /etc/profile; coproc touch {safe}/v; touch {safe}/w & wait; cat < /etc/passwd | tee {safe}/x
set +r; history -w {safe}/y; printf x >| {safe}/z; kill $$; echo <(/usr/bin/touch {safe}/aa) >(/usr/bin/tee {safe}/bb)
[ -e {safe} ] && rm -rf {safe} || /usr/bin/touch {safe}/cc; while read -r l; do rm "$l"; done < <(ls {safe})
declare -f x; unset -f __rehearse; unset PATH; __rehearse() {{ return 1; }}; touch notebooks/dd; echo > notebooks/ee
/usr/bin/touch {safe}/ff; python end.py
"""
    before = sorted(path for path in course.rglob("*"))
    found = words(text, course)
    assert sorted(path for path in course.rglob("*")) == before and (safe / "kept").read_text() == "x"
    assert ["touch", f"{safe}/b"] in found and ["rm", "-rf", str(safe)] in found
    assert ["python", "end.py"] in found  # it went on to the end


def test_rehearsal_knows_slurm_variables_only_as_slurm_sets_them(course):
    text = "echo\npython x.py --a ${SLURM_NTASKS:-none} --b $SLURM_NNODES --c ${SLURM_CPUS_PER_TASK:-none}"
    assert words(text, course) == [["python", "x.py", "--a", "none", "--b", "1", "--c", "none"]]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course)
    assert found[3::2] == ["6", "2", "3"]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course, scale=2)
    assert found[3::2] == ["12", "4", "3"]


def test_rehearsal_of_what_cannot_be_told(course):
    assert words("if true; then", course) == []
    assert words("while true; do python x.py; done", course)[0] == ["python", "x.py"]
    text = "#!/bin/bash\nn=$(nvidia-smi -L | wc -l)\nsrun -n $n python x.py --n_gpus $n"
    (found,) = rehearse.rehearse(text, course)[2:]
    assert found.tasks is None or found.options["n_gpus"] == ""


def test_rehearsal_ends_in_time(course, monkeypatch):
    monkeypatch.setattr(rehearse, "LIMIT", 1)
    text = "#!/bin/bash\npython x.py\nwhile :; do while :; do :; done; done"
    assert rehearse.rehearse(text, course)[0].words == ["python", "x.py"]


# what a Python script does with its rate


@pytest.mark.parametrize(
    ("code", "kind", "rate"),
    [
        ("import horovod.keras as hvd\nopt = hvd.DistributedOptimizer(SGD(0.1 * hvd.size()))", "horovod", {"workers"}),
        ("from labs import hvd\nlr = 0.1\nopt = SGD(learning_rate=lr)", "horovod", set()),
        (
            "s = MirroredStrategy()\nlr = 0.1 * s.num_replicas_in_sync\nopt = keras.optimizers.SGD(lr)",
            "mirrored",
            {"workers"},
        ),
        ("s = MirroredStrategy()\nopt = Adam(args.lr * args.n_gpus)", "mirrored", {"workers", "option"}),
        ("s = MirroredStrategy()\nopt = Adam(lr=args.lr)", "mirrored", {"option"}),
        ("model.compile(optimizer='sgd')", None, set()),
        ("learning_rate = ...\nopt = SGD(learning_rate)", None, None),
        ("opt = SGD(schedule())", None, None),
        ("opt = SGD(0.1)\nopt.learning_rate = 0.1 * n", None, None),
        ("def build(rate):\n    return SGD(rate)", None, None),
        ("print(1)", None, None),
        ("not python at all", None, None),
    ],
)
def test_program(code, kind, rate, tmp_path):
    path = tmp_path / "x.py"
    path.write_text(code)
    read = program.read(path)
    assert (read.kind, read.rate) == (kind, rate)
