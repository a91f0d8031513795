"""Names of people and machines and paths, taken out of what leaves this machine."""

import os
import pwd
import re
import socket
import sys
from contextlib import suppress
from pathlib import Path

USERS = ("USER", "LOGNAME", "JUPYTERHUB_USER")  # environment variables
ACCOUNTS = ("SBATCH_ACCOUNT", "SLURM_JOB_ACCOUNT")
# Names that tell nothing, and stay.
COMMON = {"", "gpu", "home", "laptop", "localhost", "login", "node", "root", "student", "user"}
_PART = r"[^\s/:\"',;()<>|]"  # a character of a path's part, where paths end in logs
_PATH = re.compile(rf"(?<![\w.>])(?:~\w*)?/(?:{_PART}+/)+({_PART}*)")
_PACKAGE = re.compile(r"lib/python3\.\d+/(?:site-packages/)?(.+)")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+|\b(?:\d{1,3}\.){3}\d{1,3}\b")
_ACCOUNT = re.compile(r"((?:--(?:account|qos)|-A)[= ])(?!\.\.\.)\S+")
_NODES = re.compile(r"^Job \S+ on (?!this machine)((?:[\w.-]|\[[\d,-]+\]|,(?=\w))+)", re.MULTILINE)
_BRACKET = re.compile(r"([\w.-]*)\[([\d,-]+)\]")


class Private:
    """Three strengths for three kinds of text, by what this machine says of itself: log, code, text.

    root: the course's folder; logs: texts in which the kit's batch scripts may have named a job's nodes
    """

    def __init__(self, root, logs=()):
        folders = {str(root): "<course>", sys.prefix: "<environment>", str(Path.home()): "<home>"}
        folders |= {os.path.realpath(folder): mark for folder, mark in folders.items()}
        users = {os.environ.get(name, "") for name in USERS} | {Path.home().name}
        with suppress(KeyError):  # a user id without a name, as in a container
            entry = pwd.getpwuid(os.getuid())
            # The whole name: a part of it, as Will or A, can be a word of what a student writes.
            users |= {entry.pw_name, entry.pw_gecos.partition(",")[0].strip()}
        nodes = {name for text in logs for listed in _NODES.findall(text) for name in hosts(listed)}
        words = dict.fromkeys(users, "<user>")
        words |= {os.environ.get(name, ""): "<account>" for name in ACCOUNTS}
        words |= dict.fromkeys(nodes | {socket.gethostname(), socket.gethostname().partition(".")[0]}, "<host>")
        longest = {"key": len, "reverse": True}
        self._folders = [
            (re.compile(re.escape(folder) + r"(?![\w-])"), folders[folder]) for folder in sorted(folders, **longest)
        ]
        self._words = [_word(word, words[word]) for word in sorted(words, **longest) if word.lower() not in COMMON]

    def log(self, text):
        """Of programs: all paths, users, hosts, accounts and addresses, and the nodes of the jobs."""
        text = _replaced(text, [*self._folders, (_ADDRESS, "<address>"), (_PATH, _last_part)])
        return _replaced(_ACCOUNT.sub(r"\1<account>", text), self._words)

    def code(self, text):
        """Of scripts and code cells: folders alone, since a user's name may be that of a variable, too."""
        return _ACCOUNT.sub(r"\1<account>", _replaced(text, self._folders))

    def text(self, text):
        """Of what a student wrote: folders, and this machine's users, hosts and accounts; other paths stay."""
        return _replaced(self.code(text), self._words)


def hosts(listed):
    """The names in SLURM's list of nodes: "n[1-3,7],gpu1" is n1, n2, n3, n7 and gpu1."""
    names = {name for name in _BRACKET.sub("", listed).split(",") if len(name) > 1}
    for prefix, inside in _BRACKET.findall(listed):
        for part in inside.split(","):
            first, _, last = part.partition("-")
            names |= {f"{prefix}{number:0{len(first)}d}" for number in range(int(first), int(last or first) + 1)}
    return names


def _word(text, mark):
    """(pattern of a whole word, of a host with its domain; what stands in its place)."""
    domain = r"(?:\.[\w-]+)*" if mark == "<host>" else ""
    return re.compile(rf"(?<![^\W_]){re.escape(text)}{domain}(?![^\W_])", re.IGNORECASE), mark


def _replaced(text, pairs):
    """The text with each (pattern, what stands in its place) replaced."""
    for pattern, mark in pairs:
        text = pattern.sub(mark, text)
    return text


def _last_part(path):
    """What may stay of a path: its part in an installed package, where an error arose; else its last name."""
    inside = _PACKAGE.search(path[0])
    return "<path>/" + (inside[1] if inside else path[1])
