"""Batch scripts: made from the sources and the sites, in step with them, blank for students, and nobody's in person."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from nbformat.v4 import reads_json

from labs import blanks, presets, sandbox
from labs.blanks import BuildError
from labs.slurm import directives, sites, trial
from teaching.author import render
from teaching.author.regions import blank_batch

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {"ResNet50.sh", "ResNet152V2.sh", "maxbatch.sh", "ResNet50_horovod.sh", "ResNet50_horovod_nodes.sh"}
SCRIPTS |= {"study.sh"}
OWN_BATCH = {"maxbatch.sh", "study.sh"}  # whose program chooses the batch
COMPLETE = sorted(ROOT.glob("solutions/slurm/*/*.sh"))
STUDENTS = sorted(ROOT.glob("slurm/*/*.sh"))


@pytest.fixture
def course(tmp_path):
    for folder in ("slurm", "solutions/slurm"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.local.toml"))
    return tmp_path


def test_rendered_scripts_agree_with_sources_and_sites():
    assert render.check(ROOT) == []


def test_every_site_has_every_script():
    assert set(render.sources(ROOT)) == SCRIPTS
    for folder in ("slurm", "solutions/slurm"):
        for site in sites.names(ROOT):
            assert {path.name for path in (ROOT / folder / site).glob("*.sh")} == SCRIPTS


def test_drift_is_named_and_mended(course):
    assert render.check(course) == []
    changed, gone, extra = (course / "slurm/local" / name for name in ("ResNet50.sh", "maxbatch.sh", "old.sh"))
    changed.write_text(changed.read_text() + "# mine\n")
    gone.unlink()
    extra.write_text("#!/bin/bash\n")
    problems = render.check(course)
    assert len(problems) == 3 and all("run `uv run teach render`" in line for line in problems[:2])
    assert [line.split(":")[0] for line in problems] == [
        f"slurm/local/{name}" for name in ("ResNet50.sh", "maxbatch.sh", "old.sh")
    ]
    extra.unlink()
    written = render.write(course, render.scripts(course), report=lambda text: None)
    assert sorted(written) == ["wrote slurm/local/ResNet50.sh", "wrote slurm/local/maxbatch.sh"]
    assert render.check(course) == []


def test_a_change_of_a_site_changes_its_scripts_only(course):
    path = course / "slurm/sites/cte-power.toml"
    path.write_text(path.read_text().replace('time = "00:30:00"', 'time = "01:00:00"'))
    written = render.write(course, render.scripts(course), report=lambda text: None)
    assert len(written) == 2 * len(SCRIPTS) and all("/cte-power/" in name for name in written)
    assert "#SBATCH --time=01:00:00" in (course / "slurm/cte-power/maxbatch.sh").read_text()


def test_a_site_without_gpus_and_one_with_another_launcher(course):
    path = course / "slurm/sites/cpus.toml"
    text = (course / "slurm/sites/template.toml").read_text()
    text = text.replace("\ngpus = 4", "\ngpus = 0").replace("workers = [1, 2, 4]", "workers = [1, 2, 8]")
    text = re.sub(r"\n\[cpus_per_gpus\](\n\d.*)*", "", text)
    text = text.replace('launcher = "srun"', 'launcher = "horovodrun"').replace('["--mpi=pmi2"]', '["--gloo"]')
    path.write_text(text)
    made = render.scripts(course)
    one, many = (made[f"solutions/slurm/cpus/ResNet50{kind}.sh"] for kind in ("", "_horovod"))
    assert "--gres" not in one + many
    assert "#SBATCH --cpus-per-task=64" in one and "#SBATCH --cpus-per-task=8" in many
    assert 'horovodrun --gloo -np "$ranks" -H "$hosts"' in many and "scontrol show hostnames" in many


def test_values_of_a_site_stay_words_in_its_scripts(course):
    text = (course / "slurm/sites/template.toml").read_text()
    text = text.replace('name = "My cluster"', """name = "My $(touch x) `y` 'cluster'; z #" """)
    text = text.replace(
        'python = ["${LABS_PYTHON:-python}"]', """python = ["a;b", "(c)", "d e", "it's", "${X:-f g}"]"""
    )
    text = text.replace('["--mpi=pmi2"]', '["--x=1;2", "--y=3 4&"]')
    (course / "slurm/sites/odd.toml").write_text(text)
    script = render.scripts(course)["solutions/slurm/odd/ResNet50_horovod.sh"]
    if not sandbox.sandbox_missing():
        no_versions = re.sub(r"(?m)^.* -c 'from labs.*\n", "", script)  # there is no program a;b
        *_, start = trial.try_out(no_versions, root=course).calls
        assert start.words[:6] == ["labs-unknown", "a;b", "(c)", "d e", "it's", "f g"]
        assert start.launcher.words[:3] == ["srun", "--x=1;2", "--y=3 4&"]
    (course / "slurm/sites/odd.toml").write_text(re.sub(r"(?m)^python = .*", 'python = ["python"]', text))
    line = next(
        line for line in render.scripts(course)["solutions/slurm/odd/study.sh"].split("\n") if "--launcher" in line
    )
    shown = subprocess.run(
        ["bash", "-c", f'study=(); {line}; printf %s "${{study[@]}}"'],
        env={"SLURM_JOB_ID": "7"},
        capture_output=True,
        text=True,
    )
    assert shlex.split(shown.stdout.removeprefix("--launcher=")) == ["srun", "--x=1;2", "--y=3 4&"]
    (course / "slurm/sites/odd.toml").rename(course / "slurm/sites/odd $(x).toml")
    with pytest.raises(sites.SiteError, match="letters, digits"):
        render.scripts(course)


def test_a_complete_script_keeps_the_sites_rule():
    assert len(COMPLETE) == len(SCRIPTS) * len(sites.names(ROOT))
    for path in COMPLETE:
        site, text = sites.load(path.parent.name, ROOT), path.read_text()
        script = directives.read(text)
        assert script.ignored == [] and script.refused == [] and blanks.blanks_of_batch(text) == []
        found = script.resources()
        least, most = site.cpus_for(found["gpus_per_node"])
        per_node = found["ntasks_per_node"] or 1
        assert least <= found["cpus_per_task"] * per_node <= most
        assert found["time_minutes"] == sites.minutes(site.time)
        horovod = "horovod" in path.name or path.name == "study.sh"
        assert (per_node == found["gpus_per_node"]) if horovod else (found["tasks"] == 1 and found["nodes"] == 1)
        spread = "nodes" in path.name or (path.name == "study.sh" and len(site.python) == 1)
        assert found["nodes"] == (site.nodes if spread else 1)
        assert "#SBATCH --output=notebooks/runs/%x_%j.out" in text and "set -euo pipefail" in text
        assert subprocess.run(["bash", "-n", path], capture_output=True).returncode == 0
        sizes = presets.PRESETS[site.preset]
        assert (path.name in OWN_BATCH) or f"batch=$(({sizes.local_batch} * " in text


def test_a_students_script_has_blanks_and_no_solution():
    assert len(STUDENTS) == len(SCRIPTS) * len(sites.names(ROOT))
    for path in STUDENTS:
        text, complete = path.read_text(), (ROOT / "solutions" / path.relative_to(ROOT)).read_text()
        left = blanks.blanks_of_batch(text)
        batch = 0 if path.name in OWN_BATCH else 1
        assert len(left) == 4 + batch and "SOLUTION" not in text
        options = {line.split("--")[1].split("=")[0] for _, line in left if "--" in line}
        assert {"nodes", "gres", "cpus-per-task"} < options
        hidden = set(complete.split("\n")) - set(text.split("\n"))
        assert len(hidden) == len(left) and not any(line in text for line in hidden)


def test_blanks_of_a_batch_script():
    source = (
        "#!/bin/bash\n### BEGIN SOLUTION\n#SBATCH --gres=gpu:4\n### END SOLUTION\nfor n in 1 2; do\n"
        "    ### BEGIN SOLUTION\n    batch=$((2 * n))\n    ### END SOLUTION\ndone"
    )
    student = blank_batch(source)
    assert student.split("\n") == [
        "#!/bin/bash",
        "#SBATCH --gres=...",
        "for n in 1 2; do",
        "    batch=...  # your code here",
        "done",
    ]
    assert blanks.blanks_of_batch(student) == [(2, "#SBATCH --gres=..."), (4, "batch=...  # your code here")]
    assert blanks.blanks_of_batch("#SBATCH --gres=gpu:4\nbatch=64\necho ...\n") == []
    with pytest.raises(BuildError, match="x.sh:2: a region of a batch script"):
        blank_batch("### BEGIN SOLUTION\nsrun python x.py\n### END SOLUTION", "x.sh")


def test_an_unknown_field_is_named():
    with pytest.raises(BuildError, match="x.sh:2: @NOTHING@ is not known; known are A"):
        render.fill("@A@\n@NOTHING@", {"A": 1}, "x.sh")


# What belongs to a person or to a machine: absolute paths, accounts, host names.
PRIVATE = re.compile(
    r"(?<![\w.~$}/:])/(?:home|gpfs|p|apps|opt|scratch|users?|work|lustre|project|data|mnt|root|tmp|usr|var)/[\w.-]"
    r"|--account[= ]\w|SBATCH_ACCOUNT=\w|#SBATCH -A|--qos[= ]\w|@\w+\.(?:bsc|fz-juelich)|\.bsc\.es|\.fz-juelich\.de"
    r"|\bp9login|\bjuwels\d|\bjwlogin|\bjwb\d|\b[ag]login\d"
)


def texts():
    """(name, text) of every script and notebook, outputs of notebooks included."""
    for path in sorted(
        [
            *ROOT.glob("slurm/*/*.sh"),
            *ROOT.glob("solutions/**/*.sh"),
            *ROOT.glob("solutions/**/*.py"),
            *ROOT.glob("notebooks/**/*.py"),
            *ROOT.glob("*/[0-9][0-9]*_*.ipynb"),
        ]
    ):
        text = path.read_text()
        if path.suffix == ".ipynb":
            cells = reads_json(text).cells
            outputs = [output for cell in cells for output in cell.get("outputs", [])]
            shown = [f"{output.get('text', '')}{output.get('data', {}).get('text/plain', '')}" for output in outputs]
            text = "\n".join([cell.source for cell in cells] + shown)
        yield path.relative_to(ROOT).as_posix(), text


def test_nothing_of_a_person_or_machine_stands_outside_the_sites():
    found = [f"{name}: {match[0]}" for name, text in texts() for match in PRIVATE.finditer(text)]
    assert found == []
    for path in [*COMPLETE, *STUDENTS]:  # scripts hold no absolute path at all, but for the shell
        lines = path.read_text().split("\n")[1:]
        assert [line for line in lines if re.search(r"(?:^|[\s=\"'(:])/\w", line)] == []


def test_the_search_for_private_things_finds_them_and_lets_others_pass():
    for text in (
        "cd " + "/home" + "/student/course",  # in pieces: the repository holds no such path
        "#SBATCH --account=bsc31",
        "data=" + "/gpfs" + "/projects/x",
        "ssh me@glogin1",
        "host jwlogin08.fz-juelich.de",
        "export SBATCH_ACCOUNT=abc",
    ):
        assert PRIVATE.search(text), text
    for text in (
        "#!/bin/bash",
        "notebooks/runs/%x_%j.out",
        "https://a.b/home/page",
        "export SBATCH_ACCOUNT=...",
        "$HOME/runs",
        "images/s and s/epoch",
    ):
        assert not PRIVATE.search(text), text
