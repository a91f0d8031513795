"""A batch script tried out by bash in the sandbox: what it started, with which words, at which line; how it failed."""

import pytest

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


def test_a_launcher_runs_its_program_once():
    for launch, ranks in (
        ("srun", "4"),
        ("srun --gres gpu:2 -n3 --cpu-bind cores", "3"),
        ("mpirun -np 2", "2"),
        ("horovodrun --gloo -np 2 -H localhost:2", "2"),
        ("srun -n 2 singularity exec --nv --bind /x:/y labs.sif", "2"),
        ("uv run --with x", "1"),
    ):
        done = run(f"{launch} python train.py --epochs 2")
        assert words(done)[-1] == ["python", "train.py", "--epochs", "2"] and done.unknown == ()
        assert [call.words[0] for call in done.calls].count("python") == 1
        assert (done.calls[-1].ranks, done.calls[-1].line_number) == (ranks, FIRST)


def test_python_computes_what_needs_no_package():
    body = "n=$(python -c \"import os; print(64 * int(os.environ['SLURM_NTASKS']))\")\npython train.py $n\n"
    body += "python - <<END\nfrom labs import devices\nEND\n"
    assert words(run(body))[1:] == [["python", "train.py", "256"], ["python", "-"]]


def test_what_a_site_has_is_made_up_and_the_rest_is_not():
    body = 'set -u\nexport TMPDIR="$SCRATCH"\ncd "$PROJECT_ROOT"\nsource /opt/site/setup.sh\n'
    done = run(f'{body}# of $OTHERS\npython "${{LABS_CONTAINER:?set it}}" "${{OWN:-none}}"')
    assert words(done)[-1] == ["python", "/tmp/LABS_CONTAINER", "none"]
    assert [says.split()[0] for _, says in done.unknown] == ["$LABS_CONTAINER", "$PROJECT_ROOT", "$SCRATCH", "`source"]
    assert run("set -u\necho $batch").error == "batch: unbound variable"
    assert run("set -u\nBATCHSIZE=4\necho $BATCH_SIZE").error == "BATCH_SIZE: unbound variable"


def test_how_a_script_fails():
    for body, line, says in (
        ("set -e\nbatch = 4", 1, "batch: command not found"),
        ("set -u\n\necho $batch", 2, "batch: unbound variable"),
        ("set -e\nf() {\n  false\n}\nf", 2, "`false` ends with status 1"),
        ("set -e\npython -c 'print(x)'", 1, "NameError: name 'x' is not defined"),
        ("set -eo pipefail\nfalse | cat", 1, "ends with status 1"),
    ):
        done = run(f"python first.py\n{body}")
        assert says in done.error and done.line_number == FIRST + 1 + line, done
        assert done.certain == ("false" not in body)
    assert "ends with status 137" in run("kill -9 $$").error


def test_a_loop_without_end_is_named_by_a_line_of_it(monkeypatch):
    monkeypatch.setattr(script, "SECONDS", 5)
    done = run("trap '' TERM INT\nf() {\n  until [ -f done ]; do\n    sleep 10\n  done\n}\nf")
    assert "again and again" in done.error and done.line_number - FIRST in (2, 3, 4), done


def test_what_only_a_site_can_tell_is_unknown():
    for body, says in (
        ("source setup.sh", "`source setup.sh` is not known here"),
        ("ibrun --verbose python other.py", "`ibrun` is not known here"),
    ):
        done = run(f"set -e\n{body}\npython train.py")
        assert done.error is None and ["python", "train.py"] in words(done)
        assert done.unknown[0][0] == FIRST + 1 and says in done.unknown[0][1], done.unknown
        assert ("other.py" in body) == (["python", "other.py"] in words(done))
    done = run("set -e\ntar -xf data.tar\npython train.py")
    assert done.calls == [] and not done.certain and "what follows it was not seen" in done.unknown[0][1]


def test_what_is_not_waited_for_is_not_seen():
    assert run("python train.py &").calls == []
    assert words(run("python train.py &\nwait")) == [["python", "train.py"]]
