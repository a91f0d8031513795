"""The directives of a batch script, read as `sbatch` reads them; and what follows a launcher's name (`launched`).

Its rules (SLURM 22.05): lines that begin with `#SBATCH`, without a blank, before the first line that is neither empty
nor a comment; words as in a shell, `#` begins a comment; options may be shortened and the last one counts. Everything
else that looks like a directive is a comment, and sbatch says nothing about it.
"""

import difflib
import getopt
import math
import re
import shlex
from typing import NamedTuple

# Options of sbatch by their long names: a value must follow; or it may follow a =, or there is none.
_SBATCH_WITH_VALUE = """
account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container core-spec
cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude export
export-file extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint
input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincores
mincpus network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket
oom-kill-step open-mode output partition power prefer priority profile qos reservation resv-ports segment signal
sockets-per-node switches thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid wait-all-nodes
wckey wrap""".split()
_ALONE = """
container-id contiguous exclusive external-launcher get-user-env help hold ignore-pbs nice no-kill no-requeue overcommit
oversubscribe parsable propagate quiet reboot requeue spread-job stepmgr test-only usage use-min-nodes verbose version
wait x11""".split()
_LETTERS = {
    "A": "account", "a": "array", "b": "begin", "D": "chdir", "M": "clusters", "C": "constraint", "S": "core-spec",
    "c": "cpus-per-task", "d": "dependency", "m": "distribution", "e": "error", "x": "exclude",
    "B": "extra-node-info", "G": "gpus", "h": "help", "H": "hold", "i": "input", "J": "job-name", "L": "licenses",
    "k": "no-kill", "F": "nodefile", "w": "nodelist", "N": "nodes", "n": "ntasks", "o": "output", "O": "overcommit",
    "s": "oversubscribe", "p": "partition", "q": "qos", "Q": "quiet", "t": "time", "v": "verbose", "V": "version",
    "W": "wait",
}  # fmt: skip
_LONG = [*(f"{name}=" for name in _SBATCH_WITH_VALUE), "tasks-per-node="]
_SHORT = "".join(letter + ":" * (name in _SBATCH_WITH_VALUE) for letter, name in _LETTERS.items())
SUPPORTED = ("horovodrun", "mpiexec", "srun")  # the launchers that the kit starts, the first by default
LAUNCHERS = (*SUPPORTED, "mpirun")  # of programs with several processes
# Options of launchers that name the number of processes, and all whose value is the next word; srun has sbatch's, too.
PROCESSES = ("-n", "-np", "--n", "--np", "--ntasks", "--num-proc")
WITH_VALUE = {*PROCESSES, *(f"--{name}" for name in _SBATCH_WITH_VALUE)}
WITH_VALUE |= set("-A -D -G -H -J -N -c -e -env -f -genv -host -hostfile -hosts -m -machinefile -o -p -ppn -t".split())
WITH_VALUE |= set("-w -wdir -x --host --hostfile --hosts --mpi --bind-to --map-by --rank-by --mca --cpu-bind".split())
_MEANT = re.compile(r"(\s*)#(\s*)([A-Za-z]{4,9})\b:?\s*(-.*)$")
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")


class Directive(NamedTuple):
    """One option of a directive: its line (from 1), long name without dashes, value ("" for one without)."""

    line_number: int
    option: str
    value: str


class BatchScript(NamedTuple):
    """What sbatch reads in a script.

    directives: in order. ignored: (line number, text, reason) of lines that are meant as directives but are comments to
    sbatch. first_command: line number, or None. refused: (line number, reason, what to do) of what sbatch refuses.
    """

    directives: list
    ignored: list
    first_command: int | None
    refused: list

    def with_options(self, options):
        """The BatchScript with options of sbatch's command line, [(long name, value)], which go before its own."""
        return self._replace(directives=self.directives + [Directive(0, *pair) for pair in options])

    def find(self, *options):
        """The directive that counts, the last one, of any of these options; or None."""
        return next((one for one in reversed(self.directives) if one.option in options), None)

    def line(self, *options):
        """Line number of the directive that counts for the first of these options that there is, else of the last
        directive, where a missing one would go, else 1."""
        there = filter(None, map(self.find, options))
        return next((one.line_number for one in there), max([one.line_number for one in self.directives], default=1))

    def value(self, option):
        """The value that counts for an option, or None if the script does not give it."""
        directive = self.find(option)
        return directive.value if directive else None

    def resources(self):
        """What the script asks for, as a dict of numbers; None for what it does not name.

        nodes (the most of a range), tasks (all of the job), tasks_per_node, gpus_per_node, cpus_per_node: what follows,
        with SLURM's defaults (one node, one task a node, one CPU a task, no GPU). time_minutes.
        """
        names = ("ntasks", "ntasks-per-node", "cpus-per-task", "cpus-per-gpu", "gpus-per-task")
        ntasks, per_node, cpus, per_gpu, gpus_per_task = (number(self.value(name)) for name in names)
        nodes = number((self.value("nodes") or "").rpartition("-")[2]) or -(-(ntasks or 1) // (per_node or ntasks or 1))
        tasks = ntasks or (number(self.value("ntasks-per-gpu")) or 0) * self._gpus(nodes, 1) * nodes
        tasks = tasks or (self._count("gpus") // gpus_per_task if gpus_per_task else 0) or nodes * (per_node or 1)
        tasks_per_node = -(-tasks // nodes)
        gpus = self._gpus(nodes, tasks_per_node)
        by_gpu = per_gpu is not None and cpus is None
        return {
            "nodes": nodes,
            "tasks": tasks,
            "tasks_per_node": tasks_per_node,
            "gpus_per_node": gpus,
            "cpus_per_node": (per_gpu or 1) * gpus if by_gpu else tasks_per_node * (cpus or 1),
            "time_minutes": minutes(self.value("time")),
        }

    def _gpus(self, nodes, tasks):
        """GPUs per node; tasks: on each node."""
        generic = [
            re.match(r"gpu(?![a-z])(?::[A-Za-z]\w*)?[:=]?", item) for item in (self.value("gres") or "").split(",")
        ]
        if any(generic):
            return sum(number(one.string[one.end() :].partition("(")[0] or "1") or 0 for one in generic if one)
        if self.find("gpus-per-node"):
            return self._count("gpus-per-node")
        if self.find("gpus"):
            return -(-self._count("gpus") // nodes)
        per_gpu = number(self.value("ntasks-per-gpu"))
        return self._count("gpus-per-task") * tasks or (-(-tasks // per_gpu) if per_gpu else 0)

    def _count(self, option):
        """The sum of numbers in a value such as "a100:2,v100:1"."""
        return sum(number(item.rpartition(":")[2]) or 0 for item in (self.value(option) or "").split(","))


def number(text):
    """A whole number of at least 1, or None."""
    return int(text) or None if re.fullmatch(r"\s*[0-9]+\s*", text or "") else None


def minutes(text):
    """Minutes in a time of SLURM's ("30", "30:00", "1:00:00", "1-12", "1-12:30:00"), as a float, or None."""
    if str(text).strip().upper() in ("UNLIMITED", "INFINITE", "-1"):
        return math.inf
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
    directives, refused, ignored, first_command, end_word = [], [], [], None, None
    for index, line in enumerate(text.split("\n"), 1):
        if end_word:  # of the here-document that this line is in
            end_word = None if line.strip() == end_word else end_word
        elif line.startswith("#SBATCH") and not first_command:
            directives += _options(index, line[7:].rstrip("\r"), refused)
        elif reason := _meant(line, first_command):
            ignored.append((index, line.strip(), reason))
        elif line.strip() and not line.lstrip().startswith("#"):
            first_command = first_command or index
            end_word = (_HERE_DOCUMENT.search(re.sub(r"<<<|\$\(\(.*?\)\)", "", line)) or [None] * 3)[2]
    return BatchScript(directives, ignored, first_command, refused)


def _options(index, text, refused):
    """The Directives in a line's text behind #SBATCH; what sbatch refuses in it is added to `refused`."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape = True, ""
    try:
        words = list(lexer)
        # One that needs no value is taken with a = where these words have one.
        alone = [f"{name}=" if any(word.startswith(f"--{name}=") for word in words) else name for name in _ALONE]
        options, rest = getopt.getopt(words, _SHORT, [*_LONG, *alone])
    except ValueError:
        refused.append((index, f"the quotation mark {lexer.state} is not closed", "Close it."))
        return []
    except getopt.GetoptError as problem:
        near = difflib.get_close_matches(problem.opt, [*_SBATCH_WITH_VALUE, *_ALONE], 1, 0.75)
        fix = f"Did you mean --{near[0]}? " if near else ""
        fix += "If it belongs to a plugin of your site, sbatch --help there lists it."
        refused.append((index, problem.msg, fix))
        return []
    if rest:
        fix = "Write #SBATCH --option=value, without blanks around the =."
        refused.append((index, f"{rest[0]} is not an option: options begin with -- or -", fix))
    names = {f"-{letter}": name for letter, name in _LETTERS.items()} | {"--tasks-per-node": "ntasks-per-node"}
    return [Directive(index, names.get(name, name.removeprefix("--")), value) for name, value in options]


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
        if name in PROCESSES:
            count = value
    return count, own, words


def _meant(line, first_command):
    """Why sbatch takes a line that is meant as a directive for a comment; None for any other line."""
    match, refused = _MEANT.match(line), []
    if not match or difflib.SequenceMatcher(None, match[3].upper(), "SBATCH").ratio() < 0.8:
        return None
    if not _options(0, match[4], refused) or refused:
        return None  # a comment that shows a command
    if first_command:
        return f"it stands after the first command (line {first_command})"
    if match[3] != "SBATCH":
        return f"it is spelt #{match[3]}"
    return "there is a blank between # and SBATCH" if match[2] else "it does not begin at the start of the line"
