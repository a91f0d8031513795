"""Answers to the self-checks of 11_report: right ones, and wrong ones that students give."""

import hashlib
import json
import zipfile
from types import SimpleNamespace

LINES = {2, 3, 5, 6, 7, 8, 10, 11, 12, 13}
FAULTS = dict(zip(sorted(LINES), "gcabedfhij", strict=True))
FIGURE = (1, 2, 4, 8), (1.0, 1.5, 2.1, 2.6)


def made(spoil=None):
    """Answer: a report with one run on record, after `spoil(folder)` if it is given."""

    def write(folder):
        folder = folder / "report"
        folder.mkdir(exist_ok=True)
        said = {"runs": [{"name": "w1", "sha256": "0" * 64}]}
        contents = {"report.pdf": b"%PDF", "report.json": json.dumps(said).encode(), "notebooks/a.ipynb": b"{}"}
        hashes = {name: {"sha256": hashlib.sha256(content).hexdigest()} for name, content in contents.items()}
        with zipfile.ZipFile(folder / "submission.zip", "w") as archive:
            for name, content in (contents | {"manifest.json": json.dumps({"files": hashes}).encode()}).items():
                archive.writestr(name, b"other" if spoil == name else content)
        for name in ("report.pdf", "report.json"):
            (folder / name).write_bytes(contents[name])
        if spoil in ("gone", "changed"):
            path = folder / "report.pdf"
            path.unlink() if spoil == "gone" else path.write_bytes(b"%PDF-other")
        if spoil == "unreadable":
            (folder / "submission.zip").write_bytes(b"PK")
        names = {"pdf": "report.pdf", "json": "report.json", "zip": "submission.zip"}
        return (SimpleNamespace(**{key: folder / name for key, name in names.items()}),)

    return write


ANSWERS = {
    "report.2": dict(
        right=[(LINES,), (sorted(LINES),), (tuple(LINES),)],
        wrong=[
            (LINES | {1},),
            (LINES | {9},),
            (LINES - {2},),
            (LINES - {8, 12},),
            (LINES - {13},),
            (set(range(1, 15)),),
            ({0, 2},),
        ],
        secret=r"\b(rounded times look|once)\b",
    ),
    "report.3": dict(
        right=[(FAULTS,), ({line: letter.upper() for line, letter in FAULTS.items()},)],
        wrong=[
            (FAULTS | {2: "c", 3: "g"},),
            (FAULTS | {5: "b", 6: "a"},),
            ({line: FAULTS[line] for line in (2, 3)},),
            (FAULTS | {1: "b"},),
            (dict.fromkeys(FAULTS, "a"),),
            (FAULTS | {13: "g"},),  # a single wrong letter
        ],
        secret=None,
    ),
    "report.4": dict(
        right=[(2.6 / 8, *FIGURE), (0.325, *FIGURE)],
        wrong=[(32.5, *FIGURE), (2.6, *FIGURE), (8 / 2.6, *FIGURE), (1 - 2.6 / 8, *FIGURE), (0.9, *FIGURE)],
        secret=r"0\.32",
    ),
    "report.6": dict(
        right=[made()],
        wrong=[
            ("report/submission.zip",),
            made("gone"),
            made("unreadable"),
            made("notebooks/a.ipynb"),
            made("changed"),
        ],
        secret=None,
    ),
}
