"""What students get: the files that are theirs, and notebooks and scripts made afresh, with blanks."""

import os
import re
import subprocess
from pathlib import Path

import labs
from labs.blanks import BuildError
from labs.course.release import stamped
from teaching.author import render
from teaching.author.build import student_scripts
from teaching.author.sources import as_text, pairs

# Everything that students get besides what is generated in notebooks/ and slurm/<site>/; nothing else goes to them.
GIVEN = ["README.md", "LICENSE", "CITATION.cff", "Makefile", "environment.yml", "pyproject.toml", "uv.lock"]
GIVEN += [".python-version", ".devcontainer/", ".jupyter/", "labs/", "lessons/", "setup/", "slurm/sites/"]
GIVEN += ["docs/students/", "docs/measured.md", "docs/not_run.md", "docs/jupyterlab.png"]
# Of README.md.
ABOUT_TEACHING = re.compile(r"## For instructors\n.*?(?=Locked versions:)|, or clone this repository", re.DOTALL)
_ROW = re.compile(r"^\| `(\d\d_\w+)`.*\n", re.MULTILINE)  # its table has one for each notebook
_PACKAGE = re.compile(r'^teach = .*\n|, "teaching"(?=\]\n)', re.MULTILINE)  # of pyproject.toml


def contents(root, keeps=lambda name: True) -> dict[str, bytes]:
    """{path: content} of what students get, in order, with its stamp. Of GIVEN these are the files that git tracks.

    keeps: whether a path belongs to this release (default: all do). The same commit gives the same contents. Raises
    BuildError, as where `root` is no git checkout.
    """
    root = Path(root).resolve()
    texts = {f"notebooks/{name}.ipynb": as_text(student) for name, (_, student) in pairs(root).items()}
    texts |= student_scripts(root)
    texts |= {name: text for name, text in render.scripts(root).items() if name.startswith("slurm/")}
    texts["notebooks/runs/.gitkeep"] = ""  # SLURM writes the logs there, and makes no folder
    made = {name: text.encode() for name, text in texts.items()}
    for name, about in (("README.md", ABOUT_TEACHING), ("pyproject.toml", _PACKAGE)):
        if (root / name).is_file():
            text = about.sub("", (root / name).read_text(encoding="utf-8"))
            made[name] = _ROW.sub(lambda row: row[0] * keeps(f"notebooks/{row[1]}.ipynb"), text).encode()
    for page in root.glob("docs/students/assistants.md"):  # under the name that assistants look for
        made["AGENTS.md"] = page.read_bytes()
    found = {name: (root / name).read_bytes() for name in _given(root) if name not in made} | made
    found = {name: content for name, content in found.items() if keeps(name)}
    return dict(sorted((found | stamped(labs.__version__, _last_commit(root), found)).items()))


def _last_commit(root):
    """When the last commit was made, in UTC."""
    format = ["--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
    return _git(root, "log", "-1", *format, env=os.environ | {"TZ": "UTC"}).strip()


def _given(root):
    """The files of GIVEN that git tracks, as paths below `root`. Raises BuildError for one that it does not know."""
    if new := _listed(root, "--others", "--exclude-standard"):
        raise BuildError(f"{new[0]} is not in git, so students would not get it; run `git add {new[0]}`, or remove it")
    return [name for name in _listed(root) if (root / name).is_file()]


def _listed(root, *options):
    """The files of GIVEN that `git ls-files` lists."""
    return [name for name in _git(root, "ls-files", "-z", *options, "--", *GIVEN).split("\0") if name]


def _git(root, *words, **settings):
    """What git prints. Raises BuildError."""
    try:
        command = ["git", "-C", str(root), *words]
        return subprocess.run(command, capture_output=True, check=True, text=True, **settings).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        reason = str(getattr(problem, "stderr", "") or problem).strip().splitlines()[-1]
        unknown = f"git cannot say which files belong to the course ({reason}); use a clone of its repository"
        raise BuildError(f"{root}: {unknown}") from None
