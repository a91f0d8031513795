"""submission.zip: all that a report rests on, with a manifest. Nothing else of the machine; the same input gives the
same bytes."""

import io
import json
import re
import zipfile

from labs.files import digest
from labs.printed import as_json, mapped
from labs.report.course import excerpt, stem_of

_PICTURE = re.compile(r"(;base64,[A-Za-z0-9+/=]{256,})")  # inside of HTML; the parts between have even numbers
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(course, report, documents):
    """The bytes of the zip. documents: {name: bytes} at its top, report.pdf and report.json among them."""
    contents = dict(documents)
    entries = {name: {"sha256": digest(content)} for name, content in contents.items()}
    for path, clean in _work(course, report):
        if path.is_file():
            name, content = course.label(path), path.read_bytes()
            contents[name] = clean(content)
            entries[name] = {"sha256": digest(contents[name])}
            if contents[name] != content:  # paths and names were taken out
                entries[name]["sha256_before_cleaning"] = digest(content)
    manifest = {"version": 1, "files": dict(sorted(entries.items()))}
    if course.released is not None:  # which tasks there were to do
        manifest["release"] = {"notebooks": course.released}
    contents["manifest.json"] = as_json(manifest).encode()
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
    """(path, function of its bytes that takes out what is private) of each file that goes along."""
    private = course.private

    def code(content):
        return private.code(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def log(content):
        text, cut = excerpt(content)
        return (private.log(text) + ("\n(the middle of this file is left out)\n" if cut else "")).encode()

    def record(content):
        return _json(content, lambda data: _texts(data, private.log))

    def notebook(content):
        return _json(content, lambda data: _notebook(data, private))

    yield from ((path, notebook) for path in course.notebooks.values())
    yield from ((course.root / script["file"], code) for task in report["tasks"] for script in task["scripts"])
    yield from ((course.runs / name, record) for name in ["progress.json", *course.searches_and_breakdowns])
    yield from ((course.runs / f"{name}.json", record) for name in course.runs_on_record)
    for name in [*course.runs_on_record, *map(stem_of, course.searches_and_breakdowns)]:
        yield from ((path, log) for ending in (".out", ".err") if (path := course.log(name, ending)))


def _json(content, clean):
    """JSON with clean texts; the same bytes where nothing is to be taken out. What is not JSON is left empty."""
    try:
        data = json.loads(content)
        cleaned = clean(data)
    except (ValueError, RecursionError):
        return b""
    return content if cleaned == data else as_json(cleaned).encode()


def _texts(value, clean):
    """All texts in lists and dicts, made clean."""
    return mapped(value, lambda each: clean(each) if isinstance(each, str) else each, clean)


def _notebook(data, private):
    """A notebook as parsed JSON without what is private: pictures stay as they are."""

    def clean(text):
        return "".join(part if place % 2 else private.log(part) for place, part in enumerate(_PICTURE.split(text)))

    data = json.loads(json.dumps(data))
    for cell in data.get("cells", ()):
        of_kind = private.code if cell.get("cell_type") == "code" else private.text
        cell["source"] = _texts(cell.get("source", ""), of_kind)
        for output in cell.get("outputs", ()):
            shown = output.get("data", {})
            shown |= {key: _texts(value, clean) for key, value in shown.items() if not key.startswith("image/")}
            output |= {key: _texts(output[key], clean) for key in ("text", "traceback", "evalue") if key in output}
    return data
