"""The report as PDF: PDF/UA-1 by Typst, with the fonts that it and matplotlib bring along and no others.

The same Report and figures give the same bytes.
"""

import io
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from labs.report import content, form

HERE = Path(__file__).parent
TITLE = "Training on many devices: report"


@contextmanager
def _folder(main, data, beside):
    """A folder with a Typst file, parts.typ, data.json of what is printed, and the files `beside`, {name: text}."""
    with tempfile.TemporaryDirectory(prefix="labs-document-") as name:
        for path in (main, HERE / "parts.typ"):
            shutil.copyfile(path, Path(name, path.name))
        for file, text in ({"data.json": form.as_json(content.every(data))} | beside).items():
            _write(Path(name, file), text)
        yield Path(name)


@contextmanager
def source(report, figures):
    """The folder in which report.typ can be compiled, while this holds: answers that cannot be set stand as text."""
    import typst

    pictures = {f"figures/{name}.svg": svg(figure) for name, figure in figures.items()}
    with _folder(HERE / "report.typ", report.model_dump(mode="json") | {"title": TITLE}, pictures) as folder:
        answers = {task.id: task.answer for task in report.tasks if task.answer is not None}
        answers |= {"appendix": report.appendix} if report.appendix else {}
        made = {id: content.markup(answer) for id, answer in answers.items()}
        if report.appendix:  # its headings stand two levels higher than those of an answer
            made["appendix"] = re.sub(r"^(#heading\(level: )(\d)", _higher, made["appendix"], flags=re.MULTILINE)
        for id, text in made.items():
            _answer(folder, id, text)
        try:
            compile(folder)
        except typst.TypstError:
            for id, text in made.items():
                _answer(folder, id, settable(folder, text, answers[id]))
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


def of_data(main, data, beside=None):
    """The PDF, as bytes, that the Typst file `main` makes of `data`, which it reads as data.json. In its folder lie
    parts.typ and the files `beside`, {name: text}."""
    with _folder(Path(main), data, beside or {}) as folder:
        return compile(folder, main=Path(main).name)


def settable(folder, made, answer):
    """The markup of an answer as far as Typst sets it: with its formulas, without those that fail, or as plain text."""
    if _sets(folder, made):
        return made
    made = content.as_code(made, [call for call in content.formulas(made) if not _sets(folder, call)])
    return made if _sets(folder, made) else content.plain(answer)


def _sets(folder, markup):
    import typst

    _write(folder / "alone.typ", f"{_HEAD}#set document(title: [alone])\n#show: style\n= A\n== B\n=== C\n{markup}\n")
    with suppress(typst.TypstError):
        compile(folder, main="alone.typ")
        return True
    return False


_HEAD = '#import "/parts.typ": *\n'


def _answer(folder, id, markup):
    _write(folder / f"answers/{id}.typ", _HEAD + markup + "\n")


def _higher(match):
    return f"{match[1]}{int(match[2]) - 2}"


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
