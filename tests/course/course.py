"""Small courses for the tests of labs.course: a tree with its stamp, without git and without a build."""

import json
import zipfile

from labs import files
from labs.course import release


def notebook(*cells, **metadata):
    """Bytes of a notebook: cells are (id, text), of which a text that begins with # is markdown, `labs-...` a task."""
    made = []
    for id, text in cells:
        cell = {"id": id, "metadata": {}, "source": text.splitlines(keepends=True), "cell_type": "markdown"}
        if not text.startswith("#"):
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        if id.startswith("labs-"):
            cell["metadata"] = {"labs": {"id": id.removeprefix("labs-").replace("-", ".")}}
        made.append(cell)
    whole = {"cells": made, "metadata": {"labs": {"version": 1}} | metadata, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(whole, indent=1) + "\n").encode()


FIRST = [
    ("a1", "# Speedup"),
    ("labs-01-1", 'speedup = ...  # your code here\n\ncheck("01.1", speedup)'),
    ("b1", "print(1)"),
    ("labs-T1", "### T1: your answer\n*Write your answer here.*"),
    ("c1", "# The end"),
]
CONTENTS = {
    "README.md": b"Read me\n",
    "labs/__init__.py": b"",
    "labs/gone.py": b"gone = 1\n",
    "notebooks/01_first.ipynb": notebook(*FIRST),
    "notebooks/runs/.gitkeep": b"",
    "notebooks/scripts/train.py": b"rate = ...  # your code here\n",
    "slurm/local/train.sh": b"#SBATCH --nodes=...\n",
    "slurm/other/train.sh": b"#SBATCH --nodes=...\n",
    "slurm/sites/local.toml": b'name = "here"\n',
}


def write(root, contents=CONTENTS, version="1.0", date="2026-01-01T00:00:00Z"):
    """A release as a folder; returns it."""
    for name, content in (contents | release.stamped(version, date, contents)).items():
        files.write(root / name, content)
    return root


def packed(folder, path, top="course/"):
    """The zip `path` of a folder; returns it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in sorted(tree(folder).items()):
            file.writestr(top + name, content)
    return path


def tree(root):
    """{path: bytes} of all files below a folder, but for locks."""
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def cells(path):
    """{id: text} of a notebook file, in order."""
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]}


def filled(path, **texts):
    """Write texts into cells of a notebook, by their ids with _ for -, as a student does, and give each an output."""
    content = json.loads(path.read_text())
    for cell in content["cells"]:
        if text := texts.get(cell["id"].replace("-", "_")):
            cell["source"] = text
            if "outputs" in cell:
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "out of " + cell["id"]}]
    files.write(path, json.dumps(content))
