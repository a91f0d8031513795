"""A question to the instructor: versions, what doctor says and the ends of the last logs in one text.

You can read it before you send it; names of people and machines and paths are replaced.
"""

import getpass
import json
import os
import platform
import re
import socket
import stat
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from labs import files
from labs.course.release import CourseError, find_course, stamp_of
from labs.printed import grouped

RUNS, END = 5, 16 * 1024  # the last runs, and bytes of the end of each of their files
_NAMES = files.beside(__file__)
_FOLDERS, _COMMON = _NAMES["folders"], _NAMES["common"]
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")
_PART = r"[^\s/:\"',;()<>|]"  # a character of a path's part, where paths end in logs
_HOSTS = re.compile(rf"({'|'.join(_NAMES['before_hosts'])})(?:[\w.,:-]|\[[\d,-]+\])+(?<=[\w\]])", re.MULTILINE)


def write_question(path: str | Path | None = None, start: str | Path = ".") -> Path:
    """Write a question to the instructor: versions, what `labs doctor` says, the ends of logs; returns its path.

    path: of the new file (default: labs-question.txt, or the next free name)
    start: a folder of the course

    Raises CourseError for a path that is taken.
    """
    names = ("labs-question.txt", *(f"labs-question-{number}.txt" for number in range(2, 1000)))
    if path is None:
        path = next(name for name in names if not Path(name).exists())
    elif Path(path).exists():
        raise CourseError(f"{path} is there already: name another file, or remove it.")
    files.write(path, text(start))
    return Path(path)


def text(start: str | Path = ".") -> str:
    """The text. It has at most RUNS * 3 * END bytes and what doctor and the versions take."""
    folder, stamp = Path(start).resolve(), "no release"
    with suppress(CourseError):
        folder = find_course(start)
        stamp = str(stamp_of(folder))
    parts = ["Versions\n" + "\n".join(_versions(stamp)), "labs doctor\n" + _doctor()]
    logs = [f"{log.name}\n{_end(log)}" for log in _last_runs(folder)]
    clean = Cleaner(folder)
    return "\n\n".join("== " + clean(part).strip() for part in parts + logs) + "\n"


def _versions(stamp):
    yield f"release {stamp}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    for name in _NAMES["packages"]:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"


def _doctor():
    """What `labs doctor` prints, in a process of its own: it may be what does not work."""
    try:
        command = [sys.executable, "-m", "labs", "doctor"]
        done = subprocess.run(command, capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"did not end: {problem}"
    return (done.stdout + done.stderr)[-END:].decode(errors="replace") + f"(exit code {done.returncode})"


def _last_runs(root):
    """The files of the last runs, the newest run first."""
    own = [Path(os.environ["LABS_RUNS"])] if os.environ.get("LABS_RUNS") else []
    folders = {folder.resolve() for folder in (*own, root / "notebooks/runs", root / "runs", Path("runs"))}
    dated = []
    for log in (log for folder in folders if folder.is_dir() for log in folder.iterdir()):
        with suppress(OSError):
            kind = log.stat()
            if log.suffix in (".out", ".err", ".json") and stat.S_ISREG(kind.st_mode) and log.stem != "progress":
                dated.append((log.with_suffix(""), (kind.st_mtime, log)))
    newest = sorted(grouped(dated).values(), key=max, reverse=True)[:RUNS]
    return [log for run in newest for _, log in sorted(run, key=lambda entry: entry[1].suffix, reverse=True)]


def _end(path):
    """The end of a file, of a record without most of its steps."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if path.suffix == ".json" and size < 4 * 2**20:
                file.seek(0)
                with suppress(ValueError, RecursionError):
                    record = json.dumps(_short(json.loads(file.read())), indent=1, ensure_ascii=False)
                    return record if len(record) <= END else record[:END].rpartition("\n")[0]
            file.seek(max(0, size - END))
            end = file.read(END).decode(errors="replace")
    except OSError as problem:
        return f"(cannot be read: {problem.strerror})"
    # The first line is not whole: half a name in it would not be known as one.
    return f"(the last part of {size} bytes)\n" + end.partition("\n")[2] if size > END else end


def _short(value):
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        more = [f"({len(value) - 4} more)"] if len(value) > 4 else []
        return [_short(item) for item in value[:4]] + more
    return value


class Cleaner:
    """Replaces in a text what tells who and where you are: folders, users, hosts, accounts, addresses.

    folders, words: (pattern, what stands in its place), the longest first.
    """

    def __init__(self, root):
        host, users, hosts = socket.gethostname(), set(), set()
        with suppress(Exception):  # a user id without a name
            users.add(getpass.getuser())
        with suppress(Exception):
            import pwd

            entry = pwd.getpwuid(os.getuid())
            users |= {entry.pw_name, *entry.pw_gecos.partition(",")[0].split(), Path(entry.pw_dir).name}
        users |= {os.environ.get(name, "") for name in _NAMES["users"]} | {Path.home().name}
        hosts |= {host, host.partition(".")[0], platform.node(), os.environ.get("HOSTNAME", "")}
        folders = [(str(root), "<course>"), (sys.prefix, "<environment>"), (str(Path.home()), "<home>")]
        folders += [(os.environ.get(name, ""), f"<{name}>") for name in _FOLDERS]
        folders += [(os.path.realpath(folder), instead) for folder, instead in folders if folder]
        folders = sorted({folder for folder in folders if len(folder[0]) > 1}, key=lambda pair: -len(pair[0]))
        self.folders = [(re.compile(re.escape(folder) + r"(?![\w-])"), instead) for folder, instead in folders]
        words = [(word, "<host>") for word in hosts] + [(word, "<user>") for word in users]
        words += [(os.environ.get(name, ""), "<account>") for name in _NAMES["accounts"]]
        words = sorted({pair for pair in words if pair[0].lower() not in _COMMON}, key=lambda pair: -len(pair[0]))
        self.words = [word(*pair) for pair in words]

    def __call__(self, text):
        text = _ESCAPE.sub("", text.replace("\r\n", "\n"))
        text = "\n".join(_printable(line.rpartition("\r")[2]) for line in text.rstrip("\r").split("\n"))
        text = without(text, self.folders)
        text = re.sub(rf"(<(?:home|{'|'.join(_FOLDERS)})>/)(?:{_PART}+/)+", r"\1", text)
        text = re.sub(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", "<address>", text)
        text = re.sub(rf"(?<![\w.>])(?:~\w*)?/(?:{_PART}+/)+({_PART}*)", _last_part, text)
        text = re.sub(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", "<address>", text)
        text = re.sub(r"(--?(?:account|qos)[= ]|-A )\S+", r"\1<account>", text)
        return without(_HOSTS.sub(r"\1<host>", text), self.words)


def word(text, instead):
    """(pattern of a whole word, of a host with its domain; what stands in its place)."""
    domain = r"(?:\.[\w-]+)*" if instead == "<host>" else ""
    return re.compile(rf"(?<![^\W_]){re.escape(text)}{domain}(?![^\W_])", re.IGNORECASE), instead


def without(text, pairs):
    """The text with each (pattern, what stands in its place) replaced."""
    for pattern, instead in pairs:
        text = pattern.sub(instead, text)
    return text


def _printable(line):
    return "".join(sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in line)


def _last_part(found):
    """What may stay of a path: its part in an installed package, where an error arose; else its last name."""
    inside = re.search(r"(?:lib/python3\.\d+/)(?:site-packages/)?(.+)", found[0])
    return "<path>/" + (inside[1] if inside else found[1])
