"""Names of people and machines and paths, taken out of what leaves this machine."""

import re
from functools import cache

from labs.course.question import Cleaner, without, word
from labs.printed import mapped

_NODES = re.compile(r"^Job \S+ on (?!this machine)((?:[\w.-]|\[[\d,-]+\]|,(?=\w))+)", re.MULTILINE)
_BRACKET = re.compile(r"([\w.-]*)\[([\d,-]+)\]")
MOST_NODES = 1000


class Private:
    """Three strengths for three kinds of text, by what labs.course.question knows of this machine: log, code, text.

    root: the course's folder; logs: texts whose first lines may name a job's nodes, as those of the kit's batch scripts
    """

    def __init__(self, root, logs=()):
        self._cleaner = Cleaner(root)
        nodes = {name for text in logs for listed in _NODES.findall(text) for name in hosts(listed)}
        self.log = cache(self._log)
        self._nodes = [word(name, "<host>") for name in sorted(nodes, key=len, reverse=True)[:MOST_NODES]]

    def _log(self, text):
        """Of programs: all paths, users, hosts, accounts and addresses, and the nodes of the jobs."""
        return without(self._cleaner(text), self._nodes)

    def code(self, text):
        """Of scripts and code cells: folders alone, since a user's name may be that of a variable, too."""
        text = without(text, self._cleaner.folders)
        return re.sub(r"((?:--(?:account|qos)|-A)[= ])(?!\.\.\.)\S+", r"\1<account>", text)

    def text(self, text):
        """Of what a student wrote: folders, and this machine's users, hosts and accounts; links stay whole."""
        return without(self.code(text), self._cleaner.words)

    def every(self, value, how):
        """All texts in lists and dicts through one of these."""
        return mapped(value, lambda each: how(each) if isinstance(each, str) else each, how)


def hosts(listed):
    """The names in SLURM's list of nodes: "n[1-3,7],gpu1" is n1, n2, n3, n7 and gpu1."""
    names = set()
    for prefix, inside in _BRACKET.findall(listed):
        for part in inside.split(","):
            first, _, last = part.partition("-")
            for number in range(int(first or 0), min(int(last or first or 0), int(first or 0) + MOST_NODES) + 1):
                names.add(f"{prefix}{number:0{len(first)}d}")
    return names | {name for name in _BRACKET.sub("", listed).split(",") if len(name) > 1}
