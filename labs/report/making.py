"""report.pdf, report.json and submission.zip, made together; and the report's pages as pictures."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from labs import files
from labs.errors import LabsError
from labs.report import archive, document, form
from labs.report.course import look
from labs.report.form import Report
from labs.report.gather import gather_report
from labs.show import figure


class ReportError(LabsError):
    """The report cannot be made; the text says why and what to do."""


@dataclass
class Made:
    """What `make` wrote: the three paths, the Report, and its pages as PNG where they were asked for."""

    pdf: Path
    json: Path
    zip: Path
    report: Report
    pages: list[bytes]


def make(
    out: str | Path = "report",
    *,
    start: str | Path = ".",
    runs: str | Path | None = None,
    name: str | None = None,
    machine: str | None = None,
    ppi: float | None = None,
    appendix: str | Path | None = None,
) -> Made:
    """Write report.pdf, report.json and submission.zip into the folder `out`; returns Made.

    start: a folder of the course; its notebooks lie there, or in the course's notebooks/
    runs: folder of the runs (default: $LABS_RUNS, or `runs` beside the notebooks)
    name, machine: yours and the machine's, as they are to stand on the first page
    ppi: dots per inch of the pages as pictures (default: none are made)
    appendix: a Markdown file that is to stand at the end (default: no appendix)

    Raises CourseError (no course here), ReportError (pandoc, Typst or the appendix is missing), files.WriteError.
    """
    try:
        import pypandoc
        import typst  # noqa: F401

        pypandoc.get_pandoc_path()
    except (ImportError, OSError) as problem:
        lacks = f"The report needs pandoc and Typst, and one of them is missing ({problem})"
        raise ReportError(f"{lacks}. `make setup` installs both.") from None
    added = _text(appendix) if appendix else None
    course = look(start, runs)
    report, figures = gather_report(course, name, machine)
    report.appendix = added
    with document.source(report, figures) as folder:
        pdf = document.compile(folder)
        pages = document.compile(folder, "png", ppi=ppi) if ppi else []
    data = form.as_json(report).encode(errors="replace")
    packed = archive.pack(course, report, {"report.pdf": pdf, "report.json": data})
    paths = Path(out, "report.pdf"), Path(out, "report.json"), Path(out, "submission.zip")
    for path, written in zip(paths, (pdf, data, packed), strict=True):
        files.write(path, written)
    return Made(*paths, report, [pages] if isinstance(pages, bytes) else pages)


def _text(path):
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        said = getattr(problem, "strerror", "it is no text in UTF-8")
        raise ReportError(f"The appendix {path} cannot be read: {said}. The report was not made.") from None


def show_pages(made: Made, first: int = 1, last: int = 4) -> None:
    """Display pages of a report that was made with `ppi`, as pictures, in a notebook.

    made: what `make` returned
    first, last: numbers of the pages, from 1; pages that the report does not have are left out
    """
    for number, page in enumerate(made.pages[first - 1 : last], first):
        alt = f"Page {number} of {len(made.pages)} of your report. All of its text is in {made.pdf.name}."
        figure.show(SimpleNamespace(png=lambda page=page: page, alt=alt))
