"""submission.zip: all that a report rests on, with a manifest. Nothing else of the machine; the same input gives the
same bytes."""

import io
import json
import re
import zipfile
from contextlib import suppress

from labs import files
from labs.checks import dispute
from labs.course.release import digest
from labs.report import form
from labs.report.course import excerpt

MOST_OUTPUT = 200_000  # characters of an output of a notebook that go along
_PICTURE = re.compile(r"(;base64,[A-Za-z0-9+/=]{256,})")  # inside of HTML; the parts between have even numbers
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(course, report, documents):
    """The bytes of the zip. documents: {name: bytes} at its top, report.pdf and report.json among them."""
    contents = documents | {"report.schema.json": form.as_json(form.schema()).encode()}
    entries = {name: {"sha256": digest(content)} for name, content in contents.items()}
    for path, clean in _work(course, report):
        with suppress(OSError):
            name, content = course.label(path), files.read(path)
            contents[name] = clean(path, content)
            entries[name] = {"sha256": digest(contents[name])}
            if contents[name] != content:  # paths and names were taken out
                entries[name]["sha256_before_cleaning"] = digest(content)
    manifest = {"version": 1, "files": dict(sorted(entries.items()))}
    if stamp := course.stamp:  # which tasks there were to do
        manifest["release"] = {"version": stamp.version, "date": stamp.date, "notebooks": stamp.notebooks}
    contents["manifest.json"] = form.as_json(manifest).encode()
    return zipped(contents)


def zipped(contents):
    """The bytes of a zip with these contents, {path: bytes}."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _work(course, report):
    """(path, function of path and bytes that takes out what is private) of each file that goes along, each once."""
    private = course.private

    def code(path, content):
        return private.code(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def log(path, content):
        text, cut = excerpt(path)
        return (private.log(text) + ("\n(the middle of this file is left out)\n" if cut else "")).encode()

    def record(path, content):
        return _json(content, lambda data: private.every(data, private.log))

    def notebook(path, content):
        return _json(content, lambda data: _notebook(data, private))

    yield from ((path, notebook) for path in course.notebooks.values())
    for evidence in (item.evidence for lesson in course.lessons for item in lesson.task):
        yield from ((course.root / label, code) for label, _ in course.scripts(evidence))
    records = ["progress.json", dispute.FILE, *course.measured]
    yield from ((course.runs / name, record) for name in records)
    for held in course.held.values():
        yield held.path, record
        yield from ((path, log) for path in (held.log(".out"), held.log(".err")) if path)
    for stem in (name.rsplit(".", 2)[0] for name in course.measured):
        yield from ((course.runs / (stem + ending), log) for ending in (".out", ".err"))


def _json(content, clean):
    """JSON with clean texts; the same bytes where nothing is to be taken out. What is not JSON is left empty."""
    try:
        data = json.loads(content)
        cleaned = clean(data)
    except (ValueError, RecursionError):
        return b""
    return content if cleaned == data else form.as_json(cleaned).encode(errors="replace")


def _notebook(data, private):
    """A notebook as parsed JSON without what is private: sources as code, texts of outputs as logs, pictures as they
    are; very long outputs are left out."""
    data = json.loads(json.dumps(data))
    for cell in data.get("cells", ()):
        clean = private.code if cell.get("cell_type") == "code" else private.text
        cell["source"] = private.every(cell.get("source", ""), clean)
        for output in cell.get("outputs", ()):
            for of in (output, output.get("data", {})):
                texts = ("text/", "application/json") if of is not output else ("text", "traceback", "evalue")
                of |= {key: _limited(value, private) for key, value in of.items() if key.startswith(texts)}
    return data


def _limited(value, private):
    def clean(text):
        return "".join(part if place % 2 else private.log(part) for place, part in enumerate(_PICTURE.split(text)))

    length = len(json.dumps(value))
    return private.every(value, clean) if length <= MOST_OUTPUT else f"({length} characters are left out)\n"
