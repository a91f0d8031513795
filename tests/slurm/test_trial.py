"""A batch script tried out by bash in the sandbox: what it started, with which words, at which line; how it failed."""

import pytest

from labs import sandbox
from labs.slurm import trial
from labs.slurm.trial import script

HEAD = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n#SBATCH --gres=gpu:2\n#SBATCH --cpus-per-task=3\n"
FIRST = HEAD.count("\n") + 1


pytestmark = pytest.mark.usefixtures("needs_sandbox")


def run(body, head=HEAD, **given):
    return trial.try_out(head + body + "\n", **given)


def words(tried):
    assert tried.error is None, tried
    return [call.words for call in tried.calls]


def test_calls_with_their_lines_folders_and_variables():
    body = "python a.py \"two words\" '' $'new\\nline' \\\n    --last\ncd notebooks\nFOO=1 python3 - <<< \"\"\n"
    first, second = run(body).calls
    assert (first.line_number, first.words, first.folder) == (
        FIRST, ["python", "a.py", "two words", "", "new\nline", "--last"], ".")  # fmt: skip
    assert (second.line_number, second.folder, second.env["FOO"]) == (FIRST + 3, "notebooks", "1")
    assert second.env["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_slurms_variables_are_those_of_the_directives():
    text = "NNODES NTASKS NTASKS_PER_NODE TASKS_PER_NODE CPUS_PER_TASK GPUS_ON_NODE JOB_NODELIST JOB_CPUS_PER_NODE"
    body = "python " + " ".join(f"${{SLURM_{name}:-none}}" for name in text.split())
    assert words(run(body)) == [["python", "2", "4", "2", "2(x2)", "3", "2", "node[1-2]", "6(x2)"]]
    one = words(run(body, head="#!/bin/bash\n"))
    assert one == [["python", "1", "none", "none", "1", "none", "none", "node1", "1"]]


@pytest.mark.parametrize(
    ("launch", "ranks"),
    [
        ("srun", "4"),
        ("srun -n 3 --label", "3"),
        ("srun -n3", "3"),
        ("srun --gres gpu:2 --ntasks=2 --cpu-bind cores", "2"),
        ("srun -N 2 --ntasks 4 --", "4"),
        ("mpirun -np 2", "2"),
        ("horovodrun --gloo -np 2 -H localhost:2", "2"),
        ('srun bash -c \'"$0" "$@"\'', "4"),
        ("srun -n 2 singularity exec --nv --bind /x:/y labs.sif", "2"),
        ("singularity exec labs.sif", "1"),
        ("uv run --with x", "1"),
        ("conda run -n labs", "1"),
        ("time nice -n 1 env A=1", "1"),
        ("numactl -N 0 timeout 60", "1"),
    ],
)
def test_a_launcher_runs_its_program_once(launch, ranks):
    done = run(f"{launch} python train.py --epochs 2")
    assert words(done)[-1] == ["python", "train.py", "--epochs", "2"]
    assert [call.words[0] for call in done.calls].count("python") == 1
    assert (done.calls[-1].ranks(), done.calls[-1].line_number) == (ranks, FIRST)


def test_python_computes_what_needs_no_package():
    body = "n=$(python -c \"import os; print(64 * int(os.environ['SLURM_NTASKS']))\")\npython train.py $n\n"
    body += "python - <<END\nfrom labs import devices\nEND\n"
    assert words(run(body))[1:] == [["python", "train.py", "256"], ["python", "-"]]


def test_what_a_site_has_is_made_up_and_the_rest_is_not():
    body = 'set -u\nexport TMPDIR="$SCRATCH"\ncd "$PROJECT_ROOT/x/.."\nsource /opt/site/setup.sh\n'
    body += '"$HOME/venv/bin/python" "${LABS_CONTAINER:?set it}"'
    done = run(body.replace("/x/..", ""))
    assert words(done) == [["python", "/tmp/LABS_CONTAINER"]]
    assert run("set -u\necho $BATCH").error == "BATCH: unbound variable"
    done = run("set -e\nsource setup.sh\npython x.py")
    assert words(done) == [["python", "x.py"]] and done.unknown == ((FIRST + 1, "there is no setup.sh here"),)


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("set -e\nbatch = 4", 1, "batch: command not found"),
        ("set -u\n\necho $batch", 2, "batch: unbound variable"),
        ("if true; then\necho", 2, "syntax error: unexpected end of file"),
        ("set -e\nf() {\n  false\n}\nf", 2, "`false` ends with status 1"),
        ("set -e\npython -c 'print(x)'", 1, "NameError: name 'x' is not defined"),
        ("echo\nexit 2\necho", 1, "`exit 2` ends the script"),
        ("set -e\n(exit 2)", 1, "ends with status 2"),
        ("set -eo pipefail\nfalse | cat", 1, "ends with status 1"),
        ("kill -9 $$", 0, "ends with status 137"),
    ],
)  # fmt: skip
def test_how_a_script_fails(body, line, says):
    done = run(f"python first.py\n{body}")
    assert says in done.error, done
    assert done.line_number == FIRST + 1 + line or (says.endswith("137") and done.line_number == FIRST)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("while true; do\n  python train.py\ndone", 1),
        ("f() {\n  until [ -f done ]; do\n    sleep 10\n  done\n}\nf", 2),
        ("trap '' TERM INT\n(\n  for ((;;)); do :; done\n)", 2),
    ],
)
def test_a_loop_without_end_is_named_by_a_line_of_it(body, line, monkeypatch):
    monkeypatch.setattr(script, "SECONDS", 5)
    done = run(body)
    assert "again and again" in done.error and done.line_number - FIRST in (line, line - 1, line + 1), done


@pytest.mark.parametrize(
    "body",
    [
        "bomb() { bomb | bomb; }; bomb",
        "a=({1..20000000})",
        "yes",
        "cat /dev/zero >zero",
        "kill -9 -1; kill -9 $PPID",
        "shopt() { :; }; trap - DEBUG ERR; while :; do :; done",
        "rm -rf / 2>/dev/null; exit 1",
    ],
)
def test_a_hostile_script_ends_and_is_an_error(body, monkeypatch):
    monkeypatch.setattr(script, "LIMITS", sandbox.Limits(seconds=3, memory=200 << 20, processes=64, disk=20 << 20))
    assert run(body).error


def test_variables_of_here_are_seen_only_if_the_script_names_them():
    known = {"OWN": "1", "OTHER": "2", "LABS_RUNS": "runs", "LD_PRELOAD": "x.so"}
    (call,) = run('python "$OWN" ${LABS_RUNS:-none} ${LD_PRELOAD:-none}', known=known).calls
    assert call.words == ["python", "1", "none", "none"] and "OTHER" not in call.env


def test_what_is_no_bash_is_not_tried_out():
    assert trial.trial_missing("#!/usr/bin/python3\n") == "its first line names no bash"
    with pytest.raises(sandbox.SandboxError, match="names no bash"):
        trial.try_out("#!/usr/bin/python3\n")
    for line in ("#!/bin/bash -l", "#!/usr/bin/env bash", "#!/bin/sh"):
        assert trial.trial_missing(f"{line}\n") is None


def test_a_script_of_sh_is_run_by_bash_as_sh():
    (call,) = run("python train.py", head="#!/bin/sh\n").calls
    assert (call.line_number, call.words) == (2, ["python", "train.py"])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("x=$(ls nowhere)", "there is no nowhere here"),
        ("srun nothing", "`nothing` is not known here"),
        ("ibrun --verbose python other.py", "`ibrun` is not known here"),
        ("tar -xf data.tar", "`tar -xf data.tar` ends with status 2"),
        ("./site_wrapper.sh python other.py", "there is no ./site_wrapper.sh here"),
    ],
)
def test_what_only_a_site_can_tell_is_unknown_and_ends_nothing(body, says):
    done = run(f"set -e\n{body}\npython train.py")
    assert done.error is None and ["python", "train.py"] in words(done)
    assert done.unknown[0][0] == FIRST + 1 and says in done.unknown[0][1], done.unknown
    assert ("other.py" in body) == (["python", "other.py"] in words(done))
