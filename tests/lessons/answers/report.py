"""Answers to the self-checks of 11_report: right ones, and wrong ones that students give."""

import hashlib
import json
import zipfile
from types import SimpleNamespace

LINES = {2, 3, 5, 6, 7, 8, 10, 11, 12, 13}
FAULTS = dict(zip(sorted(LINES), "gcabedfhij", strict=True))
NAMES = {"pdf": "report.pdf", "json": "report.json", "zip": "submission.zip"}


def made(spoil=lambda folder: None, other=None):
    """Answer: a report with one run on record, after spoil(folder); other: what in the zip is not what was hashed."""

    def write(folder):
        folder = folder / "report"
        folder.mkdir(exist_ok=True)
        said = json.dumps({"runs": [{"name": "w1", "sha256": "0" * 64}]}).encode()
        contents = {"report.pdf": b"%PDF", "report.json": said, "notebooks/a.ipynb": b"{}"}
        hashes = {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in contents.items()}
        with zipfile.ZipFile(folder / "submission.zip", "w") as archive:
            for name, content in (contents | {"manifest.json": json.dumps({"files": hashes})}).items():
                archive.writestr(name, b"other" if other == name else content)
        for name in ("report.pdf", "report.json"):
            (folder / name).write_bytes(contents[name])
        spoil(folder)
        return (SimpleNamespace(**{key: folder / name for key, name in NAMES.items()}),)

    return write


SAMPLES = {"report.4": [((1, 2, 4, 8), (1.0, 1.5, 2.1, 2.6)), ((1, 3), (1.0, 2.2))]}
RIGHT = [("report.2", (LINES,)), ("report.3", (FAULTS,)), ("report.6", made())]
WRONG = [
    ("report.2", (LINES | {1},)),
    ("report.2", (LINES - {2},)),
    ("report.3", (FAULTS | {2: "c", 3: "g"},)),
    ("report.3", ({2: "g", 3: "c"},)),
    ("report.3", (FAULTS | {1: "b"},)),
    ("report.6", ("report/submission.zip",)),
    ("report.6", made(lambda folder: (folder / "report.pdf").unlink())),
    ("report.6", made(lambda folder: (folder / "report.pdf").write_bytes(b"%PDF-other"))),
    ("report.6", made(lambda folder: (folder / "submission.zip").write_bytes(b"PK"))),
    ("report.6", made(other="notebooks/a.ipynb")),
]
