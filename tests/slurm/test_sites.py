"""Sites: their files are read whole, and every mistake in one is a sentence that names the key."""

import shutil
from pathlib import Path

import pytest

from labs import presets
from labs.slurm import directives, sites

ROOT = Path(__file__).resolve().parents[2]
SITES = ["cte-power", "juwels-booster", "local", "marenostrum5"]


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course with one site, `mine`: a copy of cte-power; returns a function that changes its text."""
    mine = shutil.ignore_patterns("*.local.toml")
    shutil.copytree(ROOT / "slurm" / "sites", tmp_path / "slurm" / "sites", ignore=mine)
    for name in sites.PERSONAL.values():
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "slurm" / "sites" / "mine.toml"
    text = (ROOT / "slurm/sites/cte-power.toml").read_text()

    def change(old="", new=""):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return tmp_path

    change()
    return change


def test_all_sites_are_there_and_the_template_is_none():
    assert [name for name in sites.names(ROOT) if name in SITES] == SITES
    assert "template" not in sites.names(ROOT)


@pytest.mark.parametrize("name", SITES)
def test_a_site_says_what_its_scripts_need(name):
    site = sites.load(name, ROOT)
    assert site.preset in presets.PRESETS and site.python
    assert directives.minutes(site.time) <= site.time_max
    assert max(site.workers) <= site.gpus and site.nodes <= site.nodes_max
    for gpus in range(1, site.gpus + 1):
        least, most = site.cpus_for(gpus)
        assert 1 <= least <= most <= site.cpus


def test_the_longest_job_is_the_one_that_the_site_takes():
    """In hours, as the centres state them; `local` is the course's own."""
    longest = {name: sites.load(name, ROOT).time_max / 60 for name in SITES}
    assert longest == {"cte-power": 48, "juwels-booster": 24, "local": 2, "marenostrum5": 48}


def test_the_rule_of_cte_power_is_the_courses():
    site = sites.load("cte-power", ROOT)
    assert [site.cpus_for(gpus) for gpus in (1, 2, 3, 4)] == [(40, 80), (80, 80), (120, 160), (160, 160)]
    assert site.threads_per_core == 4 and site.modules[0] == "gcc/8.3.0" and len(site.modules) == 13


def test_the_template_is_a_valid_site(course):
    root = course()
    folder = root / "slurm" / "sites"
    (folder / "copy.toml").write_text((folder / "template.toml").read_text())
    site = sites.load("copy", root)
    assert site.name == "My cluster" and site.account and not site.qos and site.interface == "ib0"


def test_every_key_stands_in_the_template():
    text = (ROOT / "slurm/sites/template.toml").read_text()
    for section in ("scheduler", "node", "cpus_per_gpus", "job", "software", "paths"):
        assert f"\n[{section}]" in text
    for model in (sites.Scheduler, sites.SiteNode, sites.SiteJob, sites.SiteSoftware, sites.Paths):
        for name, field in model.model_fields.items():
            assert f"\n{field.alias or name} = " in text


# what is replaced in the file, by what, words of the sentence
MISTAKES = [
    (
        'time_max = "48:00:00"',
        'time_max = "48:00:00"\npartitions = "x"',
        ["scheduler.partitions is not known", "partition?"],
    ),
    ("[node]", "[nodes]", ["nodes is not known", "did you mean node?"]),
    ("[node]", "[colour]\n[node]", ["colour is not known; known are about, cpus_per_gpus, job, name,"]),
    ("gpus = 4", 'gpus = "4"', ["node.gpus must be a whole number, not '4'."]),
    ("gpus = 4", "gpus = true", ["node.gpus must be a whole number, not True."]),
    ("gpus = 4", "gpus = -1", ["node.gpus must be greater than or equal to 0, not -1."]),
    ("gpus = 4\n", "", ["node.gpus is missing", "template.toml"]),
    ("1 = [40, 80]", "1 = [80, 40]", ["cpus_per_gpus.1 must be [least, most]"]),
    ("1 = [40, 80]", "1 = [40, 800]", ["cpus_per_gpus.1", "160"]),
    ("1 = [40, 80]", "5 = [40, 80]", ["cpus_per_gpus.5", "from 1 to the 4"]),
    ("1 = [40, 80]", '1 = ["40", 80]', ["cpus_per_gpus.1[1] must be a whole number, not '40'."]),
    ("workers = [1, 2, 4]", "workers = 4", ["job.workers must be a list"]),
    ("workers = [1, 2, 4]", "workers = []", ["job.workers must hold at least 1"]),
    ("workers = [1, 2, 4]", "workers = [1, 0]", ["job.workers[2] must be greater than 0"]),
    ('python = ["${LABS_PYTHON:-python}"]', "python = []", ["software.python must hold at least 1"]),
    ('"48:00:00"', '"two days"', ["scheduler.time_max = 'two days' is not a time as SLURM writes it"]),
    ('"48:00:00"', "48", ["scheduler.time_max must be a text in quotes"]),
    ('time = "00:30:00"', 'time = "3-00:00:00"', ["job.time is longer than scheduler.time_max"]),
    (
        'launcher = "srun"',
        'launcher = "mpirun"',
        ["software.launcher must be 'srun', 'horovodrun' or 'mpiexec'", "'mpirun'"],
    ),
    ('preset = "course"', 'preset = "big"', ["job.preset must be 'test', 'laptop' or 'course'"]),
    ('data = "$LABS_DATA"', 'data = "/' + 'gpfs/me/data"', ["paths.data", "environment variable"]),
    ('name = "CTE-POWER"', "name = CTE-POWER", ["cannot be read", "in quotes"]),
    ('name = "CTE-POWER"', 'name = "x\\nrm -rf y"', ["name = 'x\\nrm -rf y'", "one line"]),
    ('interface = "ib0"', 'interface = "ib0; rm x"', ["software.interface", "letters, digits"]),
    ('interface = "ib0"', 'interface = "$(rm x)"', ["software.interface", "letters, digits"]),
    ('"gcc/8.3.0"', '"gcc/8.3.0 (default)"', ["software.modules[1]", "module avail"]),
    ('"gcc/8.3.0"', '"gcc;rm"', ["software.modules[1]", "module's name"]),
    ('"gcc/8.3.0"', '"-f"', ["software.modules[1]", "module's name"]),
    ("${LABS_PYTHON:-python}", "$(rm x)", ["software.python[1]", "without commands"]),
    ("${LABS_PYTHON:-python}", "${LABS_PYTHON:-$(rm x)}", ["software.python[1]", "without commands"]),
    ("${LABS_PYTHON:-python}", "a`rm x`", ["software.python[1]", "without commands"]),
    ("${LABS_PYTHON:-python}", 'a\\" ; rm x', ["software.python[1]", "without commands"]),
    ("${LABS_PYTHON:-python}", "a\\nrm x", ["software.python[1]", "newlines"]),
    ("${LABS_PYTHON:-python}", "a\\\\", ["software.python[1]", "one word"]),
    ('launcher = "srun"', 'launcher = "srun"\nlauncher_options = ["--x=\\"$(rm x)\\""]', ["launcher_options[1]"]),
    ('data = "$LABS_DATA"', 'data = "$LABS_DATA\\nrm x"', ["paths.data", "newlines"]),
    ('time = "00:30:00"', 'time = "00:30:00\\n"', ["job.time", "not a time as SLURM writes it"]),
    ("[scheduler]", '[scheduler]\npartition = "gpu --wrap=x"', ["scheduler.partition", "letters, digits"]),
    ("nodes = 2", "nodes = 53", ["job.nodes is more than the 52"]),
    ("nodes = 2", "nodes = 10000000", ["job.nodes must be less than or equal to 1000000"]),
    ("workers = [1, 2, 4]", "workers = [1, 8]", ["job.workers has more than the 4 GPUs"]),
    ('name = "CTE-POWER"', "name = 3", ["name must be a text in quotes"]),
    ('[paths]\ndata = "$LABS_DATA"', "", None),
    ("[job]", "[[job]]", ["job must be a section"]),
]


def test_a_mistake_in_a_sites_file_is_one_line_that_names_the_key(course):
    for old, new, words in MISTAKES:
        root = course(old, new)
        if words is None:
            assert sites.load("mine", root).data is None
            continue
        with pytest.raises(sites.SiteError) as problem:
            sites.load("mine", root)
        said = str(problem.value)
        assert said.startswith("slurm/sites/mine.toml") and "\n" not in said
        assert all(word in said for word in words), said


def test_an_unknown_site_is_named_with_those_that_exist(course):
    with pytest.raises(sites.SiteError, match="No site is called 'none': there are cte-power, juwels-booster"):
        sites.load("none", course())


def test_what_is_personal_comes_from_the_local_file_or_the_environment(course, monkeypatch):
    root = course()
    local = root / "slurm/sites/mine.local.toml"
    assert sites.load("mine", root).personal == {}
    local.write_text('account = "from_file"\nqos = "training"\n')
    assert sites.names(root).count("mine") == 1 and "mine.local" not in sites.names(root)
    assert sites.load("mine", root).personal == {"account": "from_file", "qos": "training"}
    monkeypatch.setenv("SBATCH_ACCOUNT", "from_environment")
    assert sites.load("mine", root).personal["account"] == "from_environment"
    local.write_text("acount = 'x'\n")
    with pytest.raises(sites.SiteError, match="mine.local.toml: acount is not known; did you mean account\\?"):
        sites.load("mine", root)


def test_the_site_in_use(monkeypatch):
    monkeypatch.delenv("LABS_SITE", raising=False)
    assert sites.default() == "local"
    monkeypatch.setenv("LABS_SITE", "cte-power")
    assert sites.default() == "cte-power"


def test_the_top_folder_is_found_from_below(course, monkeypatch):
    root = course()
    below = root / "notebooks" / "deep"
    below.mkdir(parents=True)
    assert sites.find_root(below) == root
    monkeypatch.chdir(below)
    assert sites.find_root() == root
