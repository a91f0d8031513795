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
    2: ("g", "A line divides two times that a log has rounded. What else could they have been?"),
    3: ("c", "A line says how often each number of workers was measured. Is that a measurement?"),
    5: ("a", "A line divides one device's time by another device's. What does that ratio count?"),
    6: ("b", "A line speaks of a baseline. Could you measure it again from what the report says?"),
    7: ("e", "A line draws two kinds of scaling as one curve. What stays the same in each of them?"),
    8: ("d", "A line takes every epoch that was trained. What does the first one hold?"),
    10: ("f", "A line has more workers than there are cores. What do they share?"),
    11: ("h", "A line judges by a figure. What would the figure look like if the speedup were half of it?"),
    12: ("i", "A line says what was measured on 64 workers. Who measured it?"),
    13: ("j", "A line is about the time until a training is done. What had the networks learnt then?"),
}
LINES = range(1, 15)


@judges("11.2")
def misleading(lines):
    chosen = {int(line) for line in lines}
    yield not chosen <= set(LINES), "The lines are numbered from 1 to 14: give a set of such numbers."
    yield len(chosen) == len(LINES), "All 14 lines? Some say only what was done, and a reader needs that."
    sound, left = sorted(chosen - set(FAULTS)), [line for line in FAULTS if line not in chosen]
    if sound:
        return f"Line {sound[0]} is in your list. Does it claim more than what was done? Read it again."
    if left:
        return f"{len(left)} more of them mislead. {FAULTS[left[0]][1]}"
    return None


@judges("11.3")
def named(faults):
    given = {int(line): str(letter).strip().lower()[:1] for line, letter in faults.items()}
    if missing := sorted(set(FAULTS) - set(given)):
        return f"{len(missing)} of the lines that mislead have no letter yet: give one for each, as {{2: ..., 3: ...}}."
    if extra := sorted(set(given) - set(FAULTS)):
        return f"Line {extra[0]} does not mislead, so it needs no letter."
    wrong = [line for line in FAULTS if given[line] != FAULTS[line][0]]
    yield not wrong, None
    yield len(set(given.values())) == 1, "Each fault stands in one line, and each line has one fault: ten letters."
    return f"{several(len(wrong), 'letter')} to change; begin with line {wrong[0]}. {FAULTS[wrong[0]][1]}"


@judges("11.4")
def efficiency(value, workers, speedups):
    number, speedup = workers[-1], speedups[-1]
    yield near(value, speedup / number), None
    yield near(value, speedup), "This is the speedup. Which share of the ideal one is it?"
    yield near(value, number / speedup), "Upside down: efficiency is at most 1, but for effects of caches."
    yield near(value, 1 - speedup / number), "This is the share that is lost. What is left?"
    return "Efficiency is the speedup divided by the number of workers: take the last point of the figure."


@judges("11.6")
def handed_in(made):
    """made: what labs.report.make gave, of which only its paths and its runs are used."""
    paths = [Path(made.pdf), Path(made.json), Path(made.zip)]
    if gone := [path.name for path in paths if not path.is_file()]:
        return f"{gone[0]} is not in the folder of the report any more: make the report again."
    try:
        with zipfile.ZipFile(paths[2]) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        named = json.loads(contents.pop("manifest.json"))["files"]
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        return "submission.zip is no zip with a manifest any more: make the report again."
    if other := [name for name in sorted({*named, *contents}) if _sha256(contents.get(name)) != _said(named, name)]:
        return f"{other[0]} in submission.zip is not what the manifest says: hand in the file as the report made it."
    if different := [path.name for path in paths[:2] if path.read_bytes() != contents.get(path.name)]:
        return f"{different[0]} is not the one in submission.zip: make the report again, and change none of its files."
    for run in json.loads(contents["report.json"])["runs"]:
        record = jobs.folder() / f"{run['name']}.json"
        if record.is_file() and _sha256(record.read_bytes()) != run["sha256"]:
            return f"{run['name']} ran again after the report was made: make it again, and read its findings."
    return None


def _sha256(content):
    return None if content is None else hashlib.sha256(content).hexdigest()


def _said(named, name):
    return named.get(name, {}).get("sha256")
