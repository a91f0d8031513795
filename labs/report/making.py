"""report.pdf, report.json and submission.zip, made together; and the report's pages as pictures."""

from dataclasses import dataclass
from pathlib import Path

from labs import files
from labs.printed import as_json
from labs.report import archive, document
from labs.report.course import course_around
from labs.report.gather import gather_report
from labs.show import figure


@dataclass
class Made:
    """What `make` wrote: the three paths, the report as of labs.report.gather, and pages as PNG if asked for."""

    pdf: Path
    json: Path
    zip: Path
    report: dict
    pages: list[bytes]


def make(
    out: str | Path = "report", *, start: str | Path = ".", name: str | None = None, ppi: float | None = None
) -> Made:
    """Write report.pdf, report.json and submission.zip into the folder `out`; returns Made.

    start: a folder of the course; its notebooks lie there, or in the course's notebooks/
    name: yours, as it is to stand on the first page
    ppi: dots per inch of the pages as pictures (default: none are made)

    Raises CourseError (no course here), files.WriteError.
    """
    course = course_around(start)
    report, figures = gather_report(course, name)
    with document.source(report, figures) as folder:
        pdf = document.compile(folder)
        pages = document.compile(folder, "png", ppi=ppi) if ppi else []
    data = as_json(report).encode()
    packed = archive.pack(course, report, {"report.pdf": pdf, "report.json": data})
    paths = Path(out, "report.pdf"), Path(out, "report.json"), Path(out, "submission.zip")
    for path, content in zip(paths, (pdf, data, packed), strict=True):
        files.write(path, content)
    return Made(*paths, report, [pages] if isinstance(pages, bytes) else pages)


def show_pages(made: Made, first: int = 1, last: int = 4) -> None:
    """Display pages of a report that was made with `ppi`, as pictures, in a notebook.

    made: what `make` returned
    first, last: numbers of the pages, from 1; pages that the report does not have are left out
    """
    from IPython.display import display

    for number, page in enumerate(made.pages[first - 1 : last], first):
        alt = f"Page {number} of {len(made.pages)} of your report. All of its text is in {made.pdf.name}."
        display(figure.picture(page, alt), raw=True)
