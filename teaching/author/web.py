"""The course as a site, made by `make site`: pages from README.md, docs/ and the notebooks, in two editions.

    students       the notebooks with blanks, as students open them; docs/students
    instructors    the executed solutions, all of docs/, scripts, and the files of the sites

Sphinx builds them as docs/site/conf.py says, which adds pages of the code. No cell is executed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from labs import files
from labs.blanks import BuildError
from teaching.author import students
from teaching.author.build import differences
from teaching.author.sources import as_text, label_of, pairs

EDITIONS = ("students", "instructors")
_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")


def build(root, out):
    """Write the editions as folders of `out`, each with its index.html; what was there goes.

    Raises BuildError, also for a dead link and whatever else Sphinx warns of.
    """
    every, root = pairs(root), Path(root).resolve()
    with tempfile.TemporaryDirectory(prefix="labs-site-") as folder:
        for edition in EDITIONS:
            source, made = Path(folder, edition), Path(out, edition).resolve()
            for name, content in pages(root, edition, every).items():
                files.write(source / name, content, lasting=False)
            shutil.rmtree(made, ignore_errors=True)
            command = [sys.executable, "-m", "sphinx", "-qW", "--keep-going", "-t", edition, "-c", root / "docs/site"]
            command += ["-d", Path(folder, "doctrees", edition), source, made]
            ran = subprocess.run(command, capture_output=True, text=True, cwd=root)
            if ran.returncode:
                raise BuildError(f"Sphinx could not build the {edition}' edition:\n{ran.stderr}")


def pages(root, edition, every=None):
    """{path below Sphinx's sources: text or bytes} of an edition.

    every: what `sources.pairs` gives, if it is known. Raises BuildError, as for a solution that was not executed as it
    stands.
    """
    root, teaching, made = Path(root).resolve(), edition == "instructors", {}
    for name, (solution, student) in (every or pairs(root)).items():
        path = root / f"solutions/{name}.ipynb"
        if teaching and (wrong := differences(root, path, solution)):
            raise BuildError(wrong[0])
        made[f"notebooks/{name}.ipynb"] = path.read_text(encoding="utf-8") if teaching else as_text(student)
    folders = ("docs/students", "docs/instructors", "docs") if teaching else ("docs/students", "docs")
    given = ["README.md", *(["CONTRIBUTING.md"] if teaching else ())]
    given += [label_of(root, path) for folder in folders for path in sorted((root / folder).glob("*.md"))]
    for name in given:
        text = (root / name).read_text(encoding="utf-8")
        made[name] = text if teaching else students.ABOUT_TEACHING.sub("", text)
        for link in _LINK.findall(made[name]):  # pictures, and files to look at
            target = (root / name).parent.joinpath(link).resolve()
            if target.is_file() and target.suffix != ".md":
                made[label_of(root, target)] = target.read_bytes()
    made["index.md"] = made.pop("README.md")
    return made
