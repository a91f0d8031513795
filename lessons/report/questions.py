"""Questions of 11_report."""

import json
import zipfile
from pathlib import Path

from labs import jobs
from labs.checks.judging import judges, letter
from labs.files import digest
from labs.printed import several
from lessons.forms import value

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


@judges("report.2")
def misleading(lines):
    chosen = {int(line) for line in lines}
    for line in sorted(chosen - FAULTS.keys()):
        yield True, f"Line {line} is in your list. Does it claim more than was done? Read it again."
    left = [line for line in FAULTS if line not in chosen]
    for line in left:
        yield True, f"Still missing: {several(len(left), 'misleading line')}. {FAULTS[line][1]}"


@judges("report.3")
def named(faults):
    given = {int(line): letter(fault) for line, fault in faults.items()}
    missing = FAULTS.keys() - given.keys()
    without = f"{several(len(missing), 'misleading line')} without a letter"
    yield missing, f"{without}: answer in the form {{2: ..., 3: ...}}."
    for line in sorted(given.keys() - FAULTS.keys()):
        yield True, f"Line {line} does not mislead, so it needs no letter."
    wrong = [line for line in FAULTS if given[line] != FAULTS[line][0]]
    for line in wrong:
        yield True, f"{several(len(wrong), 'letter')} to change. Start with line {line}. {FAULTS[line][1]}"


value(
    "report.4",
    right=lambda workers, speedups: speedups[-1] / workers[-1],
    wrong=[
        (lambda _, speedups: speedups[-1], "This is the speedup. What share of the ideal speedup is it?"),
        (lambda workers, speedups: 1 - speedups[-1] / workers[-1], "This is the share that is lost. What remains?"),
    ],
    otherwise="The efficiency is the speedup divided by the number of workers. Use the last point in the figure.",
    tolerance=0.01,
)


@judges("report.6")
def handed_in(made):
    """made: what labs.report.make returned; only its paths are used."""
    paths = [getattr(made, name, None) for name in ("pdf", "json", "zip")]
    yield None in paths, "Set `final` to the return value of `report.make(...)`."
    try:
        beside = {path.name: path.read_bytes() for path in map(Path, paths[:2])}
        with zipfile.ZipFile(paths[-1]) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        named = json.loads(contents.pop("manifest.json"))["files"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as problem:
        yield True, f"The report's folder is no longer complete ({problem}). Generate the report again."
    said = {(name, entry["sha256"]) for name, entry in named.items()}
    for name, _ in sorted(said ^ {(name, digest(content)) for name, content in contents.items()}):
        yield True, f"{name} in submission.zip does not match the manifest. Hand in the file as `report.make` wrote it."
    for name, content in beside.items():
        edited = f"{name} differs from its copy in submission.zip"
        yield content != contents.get(name), f"{edited}. Generate the report again, and do not edit it."
    for run in json.loads(contents["report.json"])["runs"]:
        record = jobs.folder() / f"{run['name']}.json"
        yield (
            record.is_file() and digest(record.read_bytes()) != run["sha256"],
            f"{run['name']} ran again after the report. Generate the report again, and read its findings.",
        )
