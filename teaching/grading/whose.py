"""Whose the files of an export are: by a platform's names for them, else by the folders in which they differ."""

import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from labs.printed import grouped
from teaching.grading import archives, cells

MOST_READ = 32 << 20  # of a report, a notebook, all records together: JSON takes thirty times as much memory
LOST = "not read: "  # how a line on a file begins that nobody has looked at
OWN = re.compile(  # of a submission that somebody has unpacked; home: its folder
    r"(?P<home>(?:[^/]+/)*?)"
    r"(?:(?:notebooks|runs|scripts|slurm)/.+|report\.(?:pdf|json|schema\.json)|manifest\.json|[^/]+\.ipynb)"
)
# Platforms that put the name of the student, or of the group, in front of each file's. Moodle writes underscores of a
# name as spaces, so the first ones are its own; what follows is the student's to choose. Canvas takes _123_ out of a
# name, so the first two numbers are its own: of the student, and of the file, in order. Blackboard adds the date of the
# attempt, in any language; A+ the numbers of file and submission.
_IN_FRONT = {
    "moodle": re.compile(r"(?P<who>[^/_]+)_(?P<id>\d+)_assignsubmission_[a-z]+(?:_?/|_|$)(?P<rest>.*)", re.S),
    "canvas": re.compile(
        r"(?P<who>[^/]+?)(?:_LATE)?_(?P<id>\d+)_(?:(?P<order>\d+)_|(?=(?:text|link)\.html$))(?P<rest>[^/]+)"
    ),
    "blackboard": re.compile(r"(?P<who>[^/]*_(?P<id>[^/_]+))_[^\W\d_]+_(?P<order>\d{4}(?:-\d\d){5})_(?P<rest>[^/]+)"),
    "a+": re.compile(r"(?P<who>(?P<id>[^/]+))_file_?\d+_submission_?(?P<order>\d+)(?P<rest>)(?:\.\w+)?"),
}


@dataclass
class Handed:
    """One thing that a student handed in: who, by which identifier, and the files {path: bytes}.

    rest: the name that the student's own file had; order, stamp: what came later has more, the platform's number before
    the date of a file; told: what there is to say of it, a line each. who "": files of an export that are nobody's.
    """

    who: str
    id: str
    platform: str
    source: str
    rest: str = ""
    order: int = 0
    stamp: float | tuple = 0.0
    contents: dict = field(default_factory=dict, repr=False)
    told: list = field(default_factory=list)

    @property
    def file(self):
        """The name of the student's own file, which a report may hold: the one in an export names the student."""
        return base_name(self.rest)[:80] or "its file"

    @property
    def place(self):
        """Sorts what one student handed in; the last one counts. That is the latest of those that can be read."""
        readable = any(not path.startswith(cells.OTHERS) for path in self.contents)
        return readable, self.order, self.stamp, len(self.source), self.source

    def saying(self, line):
        """The same, with one more line that is told."""
        self.told.append(line)
        return self

    def lost(self, why):
        """The same, with a line that says why the file is not read."""
        return self.saying(f"{LOST}{self.file}: {why}")


@dataclass(eq=False)
class ExportFile:
    """A file of an export: its path there, its date, a function that opens it (of a link none), and whose it is."""

    path: str
    stamp: float | tuple
    opened: Any
    handed: Handed | None = None

    @cached_property
    def archive(self):
        """Whether it is an archive, by its content."""
        with suppress(Exception), self.opened() as file:  # zipfile passes on what its unpackers raise, and more
            return archives.kind(file.read(archives.HEAD), self.path)
        return archives.kind(b"", self.path)

    def read(self, most):
        """So many of its bytes; none where they cannot be read."""
        with suppress(Exception), self.opened() as file:
            return file.read(most)
        return b""


def platform_says(path):
    """What a platform's name for a file says; None if it is no platform's that is known."""
    for platform, form in _IN_FRONT.items():
        if says := form.fullmatch(path):
            order = re.sub(r"\D", "", says.groupdict().get("order") or "0")
            return says.groupdict() | {"platform": platform, "order": int(order)}
    return None


def folders_around(paths):
    """The folders that somebody, or the platform, put around an export whose names it is known by; else ""."""
    parts = _common(paths).split("/")[:-1]
    tops = ["".join(f"{part}/" for part in parts[:count]) for count in range(len(parts) + 1)]
    return next((top for top in tops if any(platform_says(path.removeprefix(top)) for path in paths)), "")


def tell_apart(files, title):
    """Say of the files of an export of no known platform whose they are, by the folders in which they differ; returns
    those that are nobody's. What nothing shows to be one person's is kept apart."""
    homes, firm = {}, set()  # {folder: files}; those that hold an archive, or something of a submission
    for each in files:
        own, folder = OWN.fullmatch(each.path), each.path[: len(each.path) - len(base_name(each.path))]
        home = folder if each.archive or not own else own["home"]
        homes.setdefault(home, []).append(each)
        firm |= {home} if each.archive or own or each.opened is None else set()
    top, nobodys = _common(firm), []
    for home in sorted(homes.keys() - firm) if firm else ():
        above = [each for each in firm if home.startswith(each) and each != top]
        below = [each for each in firm if each.startswith(home)]
        if not above and not below:  # of somebody who handed in something else
            firm.add(home)
        elif above or (home and len(below) == 1):
            homes[max(above or below, key=len)] += homes.pop(home)
        else:
            nobodys += homes.pop(home)
    labels, top = _labels(homes, title), _common(homes)
    for home, found in homes.items():
        for each, name in zip(found, _names(found, home, home == top, bool(firm)), strict=True):
            if name is None:
                nobodys.append(each)
                continue
            who = "/".join(filter(None, [labels[home] if home != top or not name else "", name]))
            rest = "" if name else each.path.removeprefix(home) if each.path.startswith(home) else base_name(each.path)
            each.handed = Handed(who, "", "folder", each.path, rest, stamp=each.stamp)
    people = {each.handed.who for each in files if each.handed}
    beside = Counter(who.rpartition("/")[0] for who in people)
    for who, theirs in grouped((each.handed.who, each.handed) for each in files if each.handed).items():
        if (who.count("/") and beside[who.rpartition("/")[0]] > 1) or _COPY.sub("", who) in people - {who}:
            theirs[-1].saying("kept apart from another hand-in beside it: nothing says that they are one person's")
    return nobodys


_COPY = re.compile(r"[ _-]?\(?\d+\)?$")  # what a browser or a person puts behind the name of a copy


def _names(found, home, flat, firm):
    """For each file of a folder: by which name it is somebody's own; "" where it belongs to the one to whom the folder
    belongs, None where it is nobody's. flat: the folder is the export's; firm: somewhere in it is a submission."""
    stems = [re.sub(r"(\.tar)?\.\w{1,8}$", "", base_name(each.path)) for each in found]
    alone = [each.archive or (each.opened is None and not OWN.fullmatch(each.path)) for each in found]
    packed = [stem for stem, is_alone in zip(stems, alone, strict=True) if is_alone]
    bases = {base if (base := _AGAIN.sub("", stem)) in packed else stem for stem in packed}
    if flat:
        one = len(packed) == 1 and home and packed[0].startswith("submission")
    else:
        one = len(bases) == 1
    books = [each.path for each in found if each.path.endswith(".ipynb") and each.path == home + base_name(each.path)]
    lessons = {each.path: cells.lesson(each.read(MOST_READ)) for each in found if each.path in books}
    proper = any(base_name(path) == f"{lesson}.ipynb" for path, lesson in lessons.items())
    again = len({*lessons.values()}) < len(books)
    apart = len(books) > 1 and ((again or not proper) if flat else (again and not proper))
    for each, stem, is_alone in zip(found, stems, alone, strict=True):
        if is_alone or (apart and each.path in lessons):
            yield "" if is_alone and one else stem
        elif flat and not OWN.fullmatch(each.path):
            yield None if firm else stem
        else:
            yield ""


_AGAIN = re.compile(r"^.* - | ?\(\d+\)$")  # words in front of a late one, a number behind a copy


def _common(homes):
    """The folder that all these lie in."""
    return "".join(f"{part}/" for part in os.path.commonprefix([home.split("/")[:-1] for home in homes]))


def _labels(homes, title):
    """{folder: the parts of its path in which it differs from the others}; its last one, or the export's title, if it
    differs in none."""
    top = _common(homes)
    parts = {home: home.removeprefix(top).split("/")[:-1] for home in homes}
    while len(parts) > 1 and all(each[1:] for each in parts.values()) and len({e[-1] for e in parts.values()}) == 1:
        parts = {home: each[:-1] for home, each in parts.items()}
    return {home: "/".join(each) or base_name(home.rstrip("/")) or title for home, each in parts.items()}


def base_name(path):
    return PurePosixPath(path).name
