"""Batch scripts: made from the sources and the sites, in step with them, blank for students, and nobody's in person."""

import re
import shutil

import nbformat
import pytest
from tree import ROOT

from labs import blanks, presets
from labs.blanks import BuildError
from labs.slurm import directives, sites
from teaching.author import render
from teaching.author.regions import BEGIN, END, blank_batch

OWN_BATCH = {"maxbatch.sh", "study.sh"}  # whose program chooses the batch
SCRIPTS = OWN_BATCH | {"ResNet50.sh", "ResNet152V2.sh", "ResNet50_horovod.sh", "ResNet50_horovod_nodes.sh"}


@pytest.fixture
def course(tmp_path):
    for folder in ("slurm", "solutions/slurm"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.local.toml"))
    return tmp_path


def test_a_change_of_a_site_changes_its_scripts_only(course):
    before = render.scripts(course)
    assert all((ROOT / name).read_text() == text for name, text in before.items())
    path = course / "slurm/sites/cte-power.toml"
    path.write_text(path.read_text().replace('time = "00:30:00"', 'time = "01:00:00"'))
    changed = {name: text for name, text in render.scripts(course).items() if before[name] != text}
    assert len(changed) == 2 * len(SCRIPTS) and all("/cte-power/" in name for name in changed)
    assert "#SBATCH --time=01:00:00" in changed["slurm/cte-power/maxbatch.sh"]


def test_a_site_without_gpus_and_one_with_another_launcher(course):
    text = (course / "slurm/sites/template.toml").read_text()
    text = text.replace("\ngpus = 4", "\ngpus = 0").replace("workers = [1, 2, 4]", "workers = [1, 2, 8]")
    text = re.sub(r"\n\[cpus_per_gpus\](\n\d.*)*", "", text)
    text = text.replace('launcher = "srun"', 'launcher = "horovodrun"').replace('["--mpi=pmi2"]', '["--gloo"]')
    text = re.sub(r"(?m)^python = .*", lambda _: 'python = ["a;b", "d e", "${X:-f g}"]', text)
    (course / "slurm/sites/cpus.toml").write_text(text)
    made = render.scripts(course)
    one, many = (made[f"solutions/slurm/cpus/ResNet50{kind}.sh"] for kind in ("", "_horovod"))
    assert "--gres" not in one + many
    assert "#SBATCH --cpus-per-task=64" in one and "#SBATCH --cpus-per-task=8" in many
    assert '\npython=("a;b" "d e" "${X:-f g}")\n' in one
    assert 'horovodrun --gloo -np "$ranks" -H "$hosts"' in many and "scontrol show hostnames" in many


def test_a_complete_script_keeps_the_sites_rule_and_a_students_has_blanks_and_no_solution():
    complete = sorted(ROOT.glob("solutions/slurm/*/*.sh"))
    assert set(render.sources(ROOT)) == SCRIPTS
    assert len(complete) == len(SCRIPTS) * len(sites.names(ROOT)) == len([*ROOT.glob("slurm/*/*.sh")])
    for path in complete:
        site, text = sites.load(path.parent.name, ROOT), path.read_text()
        script = directives.read(text)
        assert script.ignored == [] and script.refused == [] and blanks.blanks_of_batch(text) == []
        found = script.resources()
        least, most = site.cpus_for(found["gpus_per_node"])
        per_node = found["tasks_per_node"]
        assert least <= found["cpus_per_node"] <= most
        assert found["time_minutes"] == sites.minutes(site.time)
        horovod = "horovod" in path.name or path.name == "study.sh"
        assert per_node == found["gpus_per_node"] if horovod else found["tasks"] == 1
        spread = "nodes" in path.name or (path.name == "study.sh" and len(site.python) == 1)
        assert found["nodes"] == (site.nodes if spread else 1)
        assert "#SBATCH --output=notebooks/runs/%x_%j.out" in text and "set -euo pipefail" in text
        assert (path.name in OWN_BATCH) or f"batch=$(({presets.PRESETS[site.preset].local_batch} * " in text
        student = (ROOT / path.relative_to(ROOT / "solutions")).read_text()
        left = blanks.blanks_of_batch(student)
        assert len(left) == 4 + (path.name not in OWN_BATCH) and "SOLUTION" not in student
        options = {line.split("--")[1].split("=")[0] for _, line in left if "--" in line}
        hidden = set(text.split("\n")) - set(student.split("\n"))
        assert {"nodes", "gres", "cpus-per-task"} < options and len(hidden) == len(left)
        assert not any(line in student for line in hidden)


def test_blanks_and_fields_of_a_batch_script():
    gpus, batch = (f"{BEGIN}\n{line}\n{END}\n" for line in ("#SBATCH --gres=gpu:4", "    batch=$((2 * n))"))
    student = "#SBATCH --gres=...\nfor n in 1 2; do\n    batch=...  # your code here\ndone"
    assert blank_batch(f"{gpus}for n in 1 2; do\n{batch}done") == student
    assert blanks.blanks_of_batch(student) == [(1, "#SBATCH --gres=..."), (3, "batch=...  # your code here")]
    assert blanks.blanks_of_batch("#SBATCH --gres=gpu:4\nbatch=64\necho ...\n") == []
    with pytest.raises(BuildError, match="x.sh:2: a region of a batch script"):
        blank_batch(f"{BEGIN}\nsrun python x.py\n{END}", "x.sh")
    assert render.fill("a @A@ b\n @B@\n@A@", {"A": 1, "B": ""}) == "a 1 b\n1"
    with pytest.raises(BuildError, match="x.sh:2: @NOTHING@ is not known; known are A"):
        render.fill("@A@\n@NOTHING@", {"A": 1}, "x.sh")


# What belongs to a person or to a machine: absolute paths, accounts, host names.
PRIVATE = re.compile(
    r"(?<![\w.~$}/:])/(?:home|gpfs|p|apps|opt|scratch|users?|work|lustre|project|data|mnt|root|tmp|usr|var)/[\w.-]"
    r"|--account[= ]\w|SBATCH_ACCOUNT=\w|#SBATCH -A|--qos[= ]\w|@\w+\.(?:bsc|fz-juelich)|\.bsc\.es|\.fz-juelich\.de"
    r"|\bp9login|\bjuwels\d|\bjwlogin|\bjwb\d|\b[ag]login\d"
)


def test_nothing_of_a_person_or_machine_stands_outside_the_sites():
    scripts = [*ROOT.glob("slurm/*/*.sh"), *ROOT.glob("solutions/**/*.sh")]
    texts = {path: path.read_text() for path in [*scripts, *ROOT.glob("solutions/**/*.py")]}
    for path in ROOT.glob("solutions/[0-9]*.ipynb"):
        outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
        shown = [output.get("text", "") + output.get("data", {}).get("text/plain", "") for output in outputs]
        texts[path] = "\n".join(shown)
    assert [f"{path}: {match[0]}" for path, text in texts.items() for match in PRIVATE.finditer(text)] == []
    absolute = re.compile(r"(?m)^(?!#!).*?(?:^|[\s=\"'(:])/\w")  # the shell's own path is the only one
    assert [path for path in scripts if absolute.search(texts[path])] == []
