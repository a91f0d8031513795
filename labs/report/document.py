"""The report as PDF: PDF/UA-1 by Typst, with the fonts that it and matplotlib bring along and no others.

The same report (labs.report.gather) and figures give the same bytes.
"""

import io
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from labs.printed import as_json, mapped
from labs.report import content

HERE = Path(__file__).parent
TITLE = "Training on many devices: report"
_HEAD = '#import "/parts.typ": *\n'


@contextmanager
def source(report, figures):
    """The folder in which report.typ can be compiled, while this holds: answers that cannot be set stand as text."""
    import typst

    pictures = {f"figures/{name}.svg": svg(figure) for name, figure in figures.items()}
    answers = {task["id"]: task["answer"] for task in report["tasks"] if task["answer"] is not None}
    marked = {f"answers/{id}.typ": _HEAD + content.markup(answer) for id, answer in answers.items()}
    with _folder(HERE / "report.typ", report | {"title": TITLE}, pictures | marked) as folder:
        try:
            compile(folder)
        except typst.TypstError:
            for id, answer in answers.items():
                if not _sets(folder, f"answers/{id}.typ"):
                    _write(folder / f"answers/{id}.typ", _HEAD + content.plain(answer))
        yield folder


def compile(folder, format: Literal["pdf", "png"] = "pdf", main="report.typ", **options) -> Any:
    """What Typst makes of a file in `folder`: bytes, or of png a list of them. Raises typst.TypstError."""
    import typst

    if format == "pdf":
        options["pdf_standards"] = ["ua-1"]
    options |= {"root": str(folder), "font_paths": [str(content.fonts())], "ignore_system_fonts": True}
    # Packages come from an empty folder: an import of one fails here and asks no server.
    options |= {"package_path": str(folder), "package_cache_path": str(folder), "timestamp": 0}
    return typst.compile(str(folder / main), format=format, **options)


def pdf_of_data(main, data):
    """The PDF, as bytes, that the Typst file `main` makes of `data`, which it reads as data.json. In its folder lies
    parts.typ, too."""
    with _folder(Path(main), data, {}) as folder:
        return compile(folder, main=Path(main).name)


@contextmanager
def _folder(main, data, beside):
    """A folder with a Typst file, parts.typ, data.json of what is printed, and the files `beside`, {name: text}."""
    with tempfile.TemporaryDirectory(prefix="labs-document-") as name:
        for path in (main, HERE / "parts.typ"):
            shutil.copy(path, name)
        printed = mapped(data, lambda value: content.shown(value) if isinstance(value, str) else value)
        for file, text in (beside | {"data.json": as_json(printed)}).items():
            _write(Path(name, file), text)
        yield Path(name)


def _sets(folder, answer):
    """Whether Typst sets the file of an answer, in a document of its own."""
    import typst

    around = "#set document(title: [alone])\n#show: style\n= A\n== B\n=== C\n"
    _write(folder / "alone.typ", f'{_HEAD}{around}#include "{answer}"\n')
    try:
        compile(folder, main="alone.typ")
    except typst.TypstError:
        return False
    return True


def _write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="replace")


def svg(figure):
    """A matplotlib figure as SVG; its text as outlines, so that it looks the same with every font."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "labs", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
