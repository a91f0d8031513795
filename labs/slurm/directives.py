"""The directives of a batch script, read as `sbatch` reads them.

Its rules (SLURM 22.05): lines that begin with `#SBATCH`, without a blank, before the first line that is neither empty
nor a comment; words as in a shell, `#` begins a comment; options may be shortened and the last one counts. Everything
else that looks like a directive is a comment, and sbatch says nothing about it.
"""

import difflib
import itertools
import re
import shlex
from typing import Literal, NamedTuple

from labs import files

OPTIONS = files.beside(__file__, "options.toml")
_LETTERS = OPTIONS["sbatch"]["letters"]
# Long name -> does a value follow?
_NAMES = {
    name: kind
    for kind in ("plugins", "with_value", "value_may_follow", "without_value")
    for name in OPTIONS["sbatch"][kind]
}
OWN = [name for name, kind in _NAMES.items() if kind != "plugins"]  # sbatch's own
_ALIAS = OPTIONS["sbatch"]["alias"]
LAUNCHERS = ("srun", "horovodrun", "mpiexec", "mpirun")  # of programs with several processes
# Options of launchers whose value is the next word; srun has most of sbatch's.
_PROCESSES = set(OPTIONS["launchers"]["processes"])
WITH_VALUE = _PROCESSES | {*OPTIONS["launchers"]["with_value"], "--cpu-bind", "--het-group"}
WITH_VALUE |= {f"--{name}" for name in OPTIONS["sbatch"]["with_value"]}
SEPARATORS = ("hetjob", "packjob")  # between the parts of a heterogeneous job
PAIRS = OPTIONS["pairs"]  # of options that exclude each other
# What word processors make of - and of quotation marks.
DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
TYPOGRAPHIC = re.compile(f"^[{DASHES}]|^-[{DASHES}]|[\u2018\u2019\u201c\u201d\u00a0]")
_MEANT = re.compile(r"(\s*)#(\s*)([A-Za-z]{4,9})\b:?\s*(-.*)$")
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


class Directive(NamedTuple):
    """One option of a directive: its line (from 1), long name without dashes, value ("" for one without)."""

    line_number: int
    option: str
    value: str


class Refusal(NamedTuple):
    """What sbatch refuses in a directive: its line (from 1), the word, the kind, and the reason in words."""

    line_number: int
    word: str
    kind: Literal["colon", "open_quote", "typographic", "no_dashes", "unknown", "no_value", "unwanted_value"]
    reason: str


class BatchScript(NamedTuple):
    """What sbatch reads in a script.

    first: its first line. directives: in order. ignored: (line number, text, reason) of lines that are meant as
    directives but are comments to sbatch. first_command: line number, or None. refused: Refusals, in order.
    """

    first: str
    directives: list
    ignored: list
    first_command: int | None
    refused: list

    def meant(self):
        """The BatchScript that was meant: with the ignored lines as directives, and misspelt options spelt right."""
        found, refused = list(self.directives), []
        for refusal in self.refused:
            index, word, kind, _ = refusal
            name, equals, value = word.partition("=")
            option = similar(name) if kind == "unknown" and equals else None
            if kind == "typographic" and re.match(r"--?\w", plain(word)) and not TYPOGRAPHIC.search(plain(word)):
                found += _options([(index, plain(word))], [])
            elif option:
                found.append(Directive(index, option, value))
            else:
                refused.append(refusal)
        for index, text, _ in self.ignored:
            words = _words(_MEANT.sub(r"\4", text))[0]
            found += _options([(index, word) for word in words], refused)
        return self._replace(directives=found, ignored=[], refused=refused)

    @property
    def parts(self):
        """The parts of a heterogeneous job, each a BatchScript; every other job has one."""
        parts = [[]]
        for found in self.directives:
            if found.option in SEPARATORS:
                parts.append([])
            else:
                parts[-1].append(found)
        return [self._replace(directives=part) for part in parts]

    def with_options(self, options):
        """The BatchScript with options of sbatch's command line, [(long name, value)], which go before its own."""
        return self._replace(directives=self.directives + [Directive(0, *pair) for pair in options])

    def find(self, *options):
        """The directive that counts, the last one, of any of these options, in the job's first part; or None."""
        first = itertools.takewhile(lambda found: found.option not in SEPARATORS, self.directives)
        return next((found for found in reversed(list(first)) if found.option in options), None)

    def line(self, *options):
        """Line number of the directive that counts for the first of these options that is given, else of the last
        directive, where a missing one would go, else 1."""
        given = (self.find(option) for option in options)
        lines = next(([one.line_number] for one in given if one), [one.line_number for one in self.directives])
        return max(lines, default=1)

    def value(self, option):
        """The value that counts for an option, or None if the script does not give it."""
        found = self.find(option)
        return found.value if found else None

    def resources(self):
        """What the script asks for, as a dict of numbers; None for what is not given or cannot be read.

        ntasks, ntasks_per_node, cpus_per_task: as given. nodes (the most of a range), tasks (all of the job),
        tasks_per_node, gpus_per_node, cpus_per_node: what follows, with SLURM's defaults (one node, one task a node,
        one CPU a task, no GPU). time_minutes.
        """
        names = ("nodes", "ntasks", "ntasks-per-node", "cpus-per-task")
        found = {name.replace("-", "_"): number(self.value(name)) for name in names}
        unread = any(self.value(name) and not number(self.value(name)) for name in names[:3])
        per_node = found["ntasks_per_node"]
        nodes = found["nodes"] or -(-(found["ntasks"] or 1) // (per_node or found["ntasks"] or 1))
        tasks = found["ntasks"] or (number(self.value("ntasks-per-gpu")) or 0) * (self._gpus(nodes, 1) or 0) * nodes
        if each_gpus := number(self.value("gpus-per-task")):
            tasks = tasks or (number(self.value("gpus")) or 0) // each_gpus
            unread |= not tasks and not per_node  # sbatch does not take it alone
        tasks = None if unread else tasks or nodes * (per_node or 1)
        here = tasks and -(-tasks // nodes)
        gpus = self._gpus(nodes, here)
        each = 1 if self.value("cpus-per-task") is None else found["cpus_per_task"]
        cpus = here and each and here * each
        if self.value("cpus-per-gpu") and self.value("cpus-per-task") is None:
            cpus = gpus and (number(self.value("cpus-per-gpu")) or 0) * gpus or None
        found |= {"nodes": nodes, "tasks": tasks, "tasks_per_node": here, "gpus_per_node": gpus, "cpus_per_node": cpus}
        return found | {"time_minutes": minutes(self.value("time") or "")}

    def _gpus(self, nodes, tasks):
        """GPUs per node, 0 if none are asked for, None if it cannot be told."""
        generic = [item for item in (self.value("gres") or "").split(",") if re.match(r"gpu\b", item)]
        asked = [re.match(r"gpu(?::[A-Za-z]\w*)?(?:[:=](\w+))?$", item.split("(")[0]) for item in generic]
        if generic:
            counts = [number(match[1] or "1") if match else None for match in asked]
            return None if None in counts else sum(filter(None, counts))
        for option, share in (("gpus-per-node", 1), ("gpus", 1 / nodes), ("gpus-per-task", tasks)):
            if (given := self.value(option)) is not None:
                counts = [number(item.rpartition(":")[2]) for item in given.split(",")]
                return None if None in (*counts, share) else -int(-sum(filter(None, counts)) * share // 1)
        if tasks and (per_gpu := number(self.value("ntasks-per-gpu"))):
            return -(-tasks // per_gpu)
        return None if self.value("gres") == "..." else 0


def plain(word):
    """An option with the dashes of the keyboard in place of a word processor's."""
    return TYPOGRAPHIC.sub("--" if len(word.partition("=")[0]) > 2 else "-", word)


def number(text):
    """A whole number of at least 1 as sbatch reads it ("2", "1-2": the most, "4k"), or None."""
    match = re.fullmatch(r"(?:\d+-)?(\d+)([km]?)(?:=.*)?", text or "", re.IGNORECASE)
    return int(match[1]) * {"": 1, "k": 1024, "m": 2**20}[match[2].lower()] or None if match else None


def minutes(text):
    """Minutes in a time of SLURM's ("30", "30:00", "1:00:00", "1-12", "1-12:30:00"), as a float, or None."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(text).strip())
    if not match:
        return None
    days, *rest = match.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is None and len(parts) < 3:  # minutes[:seconds], else hours[:minutes[:seconds]]
        parts = [0, *parts]
    hours, mins, seconds = [*parts, 0, 0][:3]
    return int(days or 0) * 1440 + hours * 60 + mins + seconds / 60


def read(text):
    """The directives of a batch script's text, as a BatchScript."""
    lines, words, refused, ignored, first_command, here = text.split("\n"), [], [], [], None, None
    for index, line in enumerate(lines, 1):
        if here:
            here = None if line.strip() == here else here
            continue
        if line.startswith("#SBATCH") and not first_command:
            found, wrong = _words(line[7:].rstrip("\r"))
            words += [(index, word) for word in found]
            refused += [Refusal(index, line[7:].strip(), *wrong)] if wrong else []
            continue
        reason = _meant(line, first_command)
        if reason:
            ignored.append((index, line.strip(), reason))
        elif line.strip() and not line.lstrip().startswith("#"):
            first_command = first_command or index
            here = (_HERE.search(re.sub(r"<<<|\$\(\(.*?\)\)", "", line)) or [None] * 3)[2]
    directives = _options(words, refused)
    return BatchScript(lines[0], directives, ignored, first_command, sorted(refused))


def _words(text):
    """(words of a directive, kind and reason of what sbatch refuses in it or None)."""
    if text.lstrip().startswith(":"):
        return [], ("colon", "sbatch does not expect a colon there")
    words, lexer = [], shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape = True, ""
    try:
        words += lexer
    except ValueError:
        return words, ("open_quote", f"the quotation mark {lexer.state} is not closed")
    return words, None


def _options(words, refused):
    """Directives of a list of (line number, word); what sbatch refuses is added to `refused`."""
    found, words = [], list(words)

    def refuse(kind, reason):
        refused.append(Refusal(index, word, kind, reason))

    while words:
        index, word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in SEPARATORS:
            found.append(Directive(index, word, ""))
            continue
        if TYPOGRAPHIC.search(word):
            refuse("typographic", f"{word} contains a character from a word processor")
            continue
        if not re.match(r"--?\w", word):
            refuse("no_dashes", f"{word} is not an option: options begin with -- or -")
            continue
        if word.startswith("--"):
            option = _long(name[2:])
        else:
            option, equals, value = _LETTERS.get(word[1]), word[2:], word[2:]
        kind = _NAMES.get(option)
        if option is None or kind is None:
            if word.startswith("--") and not equals and words and not words[0][1].startswith("-"):
                word += "=" + words.pop(0)[1]
            refuse("unknown", f"{word.partition('=')[0]} is not an option of sbatch")
        elif kind == "with_value" and not equals and not words:
            refuse("no_value", f"{word} needs a value")
        elif kind == "without_value" and equals and not word.startswith("--"):
            found.append(Directive(index, option, ""))
            words.insert(0, (index, "-" + word[2:]))
        elif kind == "without_value" and equals:
            refuse("unwanted_value", f"{name} takes no value")
        else:
            of_plugin = kind == "plugins" and words and not words[0][1].startswith("-")
            follows = not equals and (kind == "with_value" or of_plugin)
            found.append(Directive(index, option, words.pop(0)[1] if follows else value))
    return found


def of_step(words):
    """What srun's options (the words before its command) ask for, as a BatchScript."""
    return BatchScript("", _options([(0, word) for word in words if "#" not in word], []), [], None, [])


def launched(words):
    """What follows a launcher's name: (number of processes as text or None, options, the command)."""
    count, own, words = None, [], list(words)
    while words and words[0].startswith("-"):
        own.append(words.pop(0))
        name, equals, value = own[-1].partition("=")
        if re.fullmatch(r"-n\d+", name):
            name, value = "-n", name[2:]
        elif not equals and words and name in WITH_VALUE:
            own.append(value := words.pop(0))
        if name in _PROCESSES:
            count = value
    return count, own, words


def _long(name):
    """The option that a long name or its unique beginning means, or None."""
    name = _ALIAS.get(name, name)
    meant = [name] if name in _NAMES else [option for option in OWN if option.startswith(name)]
    return meant[0] if len(meant) == 1 else None


def similar(name):
    """The long option most like a misspelt one, or None."""
    return next(iter(difflib.get_close_matches(name.lstrip("-" + DASHES), OWN, 1, 0.75)), None)


def _meant(line, first_command):
    """Why sbatch takes a line that is meant as a directive for a comment; None for any other line."""
    match = _MEANT.match(line)
    if not match or difflib.SequenceMatcher(None, match[3].upper(), "SBATCH").ratio() < 0.8:
        return None
    wrong = []
    found = _options([(0, word) for word in _words(match[4])[0]], wrong)
    if not found or any(one.kind == "no_dashes" for one in wrong):
        return None  # a comment that shows a command
    if first_command:
        return f"it stands after the first command (line {first_command})"
    if match[3] != "SBATCH":
        return f"it is spelt #{match[3]}"
    return "there is a blank between # and SBATCH" if match[2] else "it does not begin at the start of the line"
