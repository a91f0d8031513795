"""Sites: their files are read whole, and every mistake in one is a sentence that names the key."""

import shutil
from pathlib import Path

import pytest

from labs import presets
from labs.errors import UseError
from labs.slurm import directives, sites

ROOT = Path(__file__).resolve().parents[2]
# The longest job that a site takes, in hours, as the centres state them; `local` is the course's own.
LONGEST = {"cte-power": 48, "juwels-booster": 24, "local": 2, "marenostrum5": 48}


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


def test_a_site_says_what_its_scripts_need():
    names = sites.names(ROOT)
    assert [name for name in names if name in LONGEST] == sorted(LONGEST) and "template" not in names
    for name, hours in LONGEST.items():
        site = sites.load(name, ROOT)
        assert site.preset in presets.PRESETS and site.python and site.time_max == 60 * hours
        assert directives.minutes(site.time) <= site.time_max
        assert max(site.workers) <= site.gpus and site.nodes <= site.nodes_max
        for gpus in range(1, site.gpus + 1):
            least, most = site.cpus_for(gpus)
            assert 1 <= least <= most <= site.cpus


def test_the_rule_of_cte_power_is_the_courses():
    site = sites.load("cte-power", ROOT)
    assert [site.cpus_for(gpus) for gpus in (1, 2, 3, 4)] == [(40, 80), (80, 80), (120, 160), (160, 160)]
    assert site.threads_per_core == 4 and site.modules[0] == "gcc/8.3.0" and len(site.modules) == 13


def test_the_template_is_a_valid_site_with_every_key(course):
    folder = course() / "slurm" / "sites"
    text = (folder / "template.toml").read_text()
    (folder / "copy.toml").write_text(text)
    site = sites.load("copy", folder.parents[1])
    assert site.name == "My cluster" and site.account and not site.qos and site.interface == "ib0"
    for model in (sites.Scheduler, sites.SiteNode, sites.SiteJob, sites.SiteSoftware, sites.Paths):
        assert all(f"\n{field.alias or name} = " in text for name, field in model.model_fields.items())


PYTHON = "${LABS_PYTHON:-python}"
MISTAKES = [  # what is replaced in the file, by what, words of the sentence
    ("[scheduler]", '[scheduler]\npartitions = "x"', "scheduler.partitions is not known here."),
    ("[node]", "[colour]\n[node]", "colour is not known here."),
    ("gpus = 4", "gpus = -1", "node.gpus must be greater than or equal to 0, not -1."),
    ("gpus = 4\n", "", "template.toml"),
    ("1 = [40, 80]", "1 = [80, 40]", "cpus_per_gpus.1 must be [least, most]"),
    ("1 = [40, 80]", "5 = [40, 80]", "cpus_per_gpus.5 is not known: the key is a number of GPUs, from 1 to the 4"),
    ("workers = [1, 2, 4]", "workers = [1, 5]", "job.workers has more than the 4 GPUs"),
    (f'["{PYTHON}"]', "[]", "software.python "),
    ('"48:00:00"', '"two days"', "scheduler.time_max = 'two days' is not a time as SLURM writes it"),
    ('"00:30:00"', '"48:00:01"', "job.time is longer than scheduler.time_max"),
    ('"$LABS_DATA"', '"/' + 'gpfs/me/data"', "paths.data = '/gpfs/me/data' is a path of one machine"),
    ('name = "CTE-POWER"', 'name = "x\\nrm -rf y"', "must be one line"),
    ('"ib0"', '"ib0; rm x"', "software.interface = 'ib0; rm x' must be a name of letters, digits"),
    ('"gcc/8.3.0"', '"gcc/8.3.0 (default)"', "software.modules[1] = 'gcc/8.3.0 (default)' must be a module's name"),
    (PYTHON, "$(rm x)", "software.python[1] = '$(rm x)' must be one word of text and variables"),
    ('"srun"', '"srun"\nlauncher_options = ["--x=\\"$(rm x)\\""]', "software.launcher_options[1]"),
    ("[scheduler]", '[scheduler]\npartition = "gpu --wrap=x"', "scheduler.partition = 'gpu --wrap=x' must be a name"),
    ("nodes = 2", "nodes = 53", "job.nodes is more than the 52"),
    ('[paths]\ndata = "$LABS_DATA"', "", None),
]


def test_a_mistake_in_a_sites_file_is_one_line_that_names_the_key(course):
    for old, new, words in MISTAKES:
        root = course(old, new)
        if words is None:
            assert sites.load("mine", root).data is None
            continue
        with pytest.raises(UseError) as problem:
            sites.load("mine", root)
        said = str(problem.value)
        assert said.startswith("slurm/sites/mine.toml") and "\n" not in said and words in said, said


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
    with pytest.raises(UseError, match="mine.local.toml: acount is not known here"):
        sites.load("mine", root)


def test_the_site_in_use_and_the_top_folder(course, monkeypatch):
    monkeypatch.delenv("LABS_SITE", raising=False)
    assert sites.default() == "local"
    monkeypatch.setenv("LABS_SITE", "cte-power")
    assert sites.default() == "cte-power"
    root = course()
    with pytest.raises(UseError, match="No site is called 'none': there are cte-power, juwels-booster"):
        sites.load("none", root)
    below = root / "notebooks" / "deep"
    below.mkdir(parents=True)
    assert sites.find_root(below) == root
    monkeypatch.chdir(below)
    assert sites.find_root() == root
