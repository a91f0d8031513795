"""Judges of 11_report."""

import hashlib
import json
import zipfile
from functools import partial
from pathlib import Path

from labs import jobs
from labs.checks import reading
from labs.checks.judging import judges
from labs.printed import several

near = partial(reading.near, relative=0.01)

# line of the flawed report: (letter of its fault, where to look)
FAULTS = {
    2: ("g", "One line divides two times that the log has rounded. What could the exact times have been?"),
    3: ("c", "One line says how often each number of workers was measured. Is that enough for a measurement?"),
    5: ("a", "One line divides the time on one kind of device by the time on another. What does this ratio measure?"),
    6: ("b", "One line mentions a baseline. Does the report say enough for you to measure it again?"),
    7: ("e", "One line combines two kinds of scaling in a single curve. What stays the same in each kind?"),
    8: ("d", "One line uses the times of all epochs. What does the time of the first epoch include?"),
    10: ("f", "One line uses more workers than there are cores. What do these workers share?"),
    11: ("h", "One line relies on a figure. What would the figure look like if the speedup were half as large?"),
    12: ("i", "One line gives a speedup on 64 workers. Who measured it?"),
    13: ("j", "One line compares how long complete training runs take. What had the networks learned by then?"),
}
LINES = range(1, 15)


@judges("report.2")
def misleading(lines):
    chosen = {int(line) for line in lines}
    yield not chosen <= set(LINES), "The lines are numbered 1 to 14. Give a set of these numbers."
    yield len(chosen) == len(LINES), "You chose all 14 lines. Some of them only say what was done: readers need that."
    for sound in sorted(chosen - set(FAULTS)):
        yield True, f"Line {sound} is in your list. Does it claim more than was done? Read it again."
    left = [line for line in FAULTS if line not in chosen]
    if left:
        yield True, f"Still missing: {several(len(left), 'misleading line')}. {FAULTS[left[0]][1]}"


@judges("report.3")
def named(faults):
    given = {int(line): str(letter).strip().lower()[:1] for line, letter in faults.items()}
    missing = set(FAULTS) - set(given)
    without = f"{several(len(missing), 'misleading line')} without a letter"
    yield missing, f"{without}: answer in the form {{2: ..., 3: ...}}."
    for line in sorted(set(given) - set(FAULTS)):
        yield True, f"Line {line} does not mislead, so it needs no letter."
    wrong = [line for line in FAULTS if given[line] != FAULTS[line][0]]
    yield not wrong, None
    yield len(set(given.values())) == 1, "Each line has a different fault: you need ten different letters."
    yield True, f"{several(len(wrong), 'letter')} to change. Start with line {wrong[0]}. {FAULTS[wrong[0]][1]}"


@judges("report.4")
def efficiency(value, workers, speedups):
    number, speedup = workers[-1], speedups[-1]
    yield near(value, speedup / number), None
    yield near(value, 100 * speedup / number), reading.PER_CENT
    yield near(value, speedup), "This is the speedup. What share of the ideal speedup is it?"
    yield near(value, number / speedup), "This is upside down: the efficiency is at most 1, apart from cache effects."
    yield near(value, 1 - speedup / number), "This is the share that is lost. What share remains?"
    yield True, "The efficiency is the speedup divided by the number of workers. Use the last point in the figure."


@judges("report.6")
def handed_in(made):
    """made: what labs.report.make returned; only its paths are used."""
    yield (
        not all(hasattr(made, name) for name in ("pdf", "json", "zip")),
        "Set `final` to the return value of `report.make(...)`.",
    )
    paths = [Path(made.pdf), Path(made.json), Path(made.zip)]
    for path in paths:
        yield not path.is_file(), f"{path.name} is no longer in the report's folder. Generate the report again."
    try:
        with zipfile.ZipFile(paths[2]) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        named = json.loads(contents.pop("manifest.json"))["files"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        yield True, "submission.zip is no longer a zip file with a manifest. Generate the report again."
    for name in sorted({*named, *contents}):
        yield (
            _sha256(contents.get(name)) != _said(named, name),
            f"{name} in submission.zip does not match the manifest. Hand in the file as `report.make` wrote it.",
        )
    for path in paths[:2]:
        yield (
            path.read_bytes() != contents.get(path.name),
            f"{path.name} differs from its copy in submission.zip. Generate the report again, and do not edit it.",
        )
    for run in json.loads(contents["report.json"])["runs"]:
        record = jobs.folder() / f"{run['name']}.json"
        yield (
            record.is_file() and _sha256(record.read_bytes()) != run["sha256"],
            f"{run['name']} ran again after the report. Generate the report again, and read its findings.",
        )


def _sha256(content):
    return None if content is None else hashlib.sha256(content).hexdigest()


def _said(named, name):
    return named.get(name, {}).get("sha256")
