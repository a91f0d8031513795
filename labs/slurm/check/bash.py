"""A bash script gone through on paper: which programs it would start, with which words. Nothing of it is run.

tree-sitter reads the text; loops, functions, variables and arithmetic are followed as far as they are known. Where a
condition is not known both ways are followed, and what differs between them is UNKNOWN afterwards. What takes too many
steps is left out.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from functools import partial

import tree_sitter
import tree_sitter_bash

from labs.slurm.check import arithmetic, words
from labs.slurm.check.builtins import DO, Leave
from labs.slurm.check.words import UNKNOWN

STEPS = 20_000  # commands, conditions, words of one script
LOOPS = 100  # rounds of one loop
DEEPEST = 80  # functions in functions, blocks in blocks

_LANGUAGE = tree_sitter.Language(tree_sitter_bash.language())
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=(.*)", re.DOTALL)
_ONLY_CONTINUED = re.compile(r"(?m)(?<!\\\n)^[ \t]*\\\n")  # tree-sitter-bash 0.25 joins the lines around it
_SHELLS = ("bash", "sh", "dash", "ksh", "zsh")
_START_FILES = (*_SHELLS, "srun", "mpiexec", "mpirun", "env", "apptainer", "singularity")
_REDIRECTIONS = ("file_redirect", "heredoc_redirect", "herestring_redirect")


class _TooLong(Exception):
    """STEPS are used up."""


@dataclass
class Start:
    """A program that would be started.

    line_number: in the script. words: all of it, with UNKNOWN where a text is not known. folder: where, below the one
    in which the script starts. variables: those of the script at this place. beside: in the background; alone: and the
    script never waits for it.
    """

    line_number: int
    words: list
    folder: str
    variables: dict
    beside: bool = False
    alone: bool = False


class Shell:
    """What a bash that ran the script would know.

    starts: what was found. unsets: (line number, name) of variables that are read under `set -u` and were not set
    before. cut: is the script not read to its end? A variable is a text, or of an array {index as text: text}. maybe,
    forked: are we in a way that may not be taken, in a subshell? written: what a command substitution has printed so
    far, None in it where it is not known. files: {path: text} of files that the script writes.
    """

    def __init__(self, variables):
        self.variables, self.arguments, self.functions, self.folder = dict(variables), None, {}, "."
        self.nounset = self.foreign = self.forked = self.cut = False
        self.starts, self.unsets, self.prefix, self.files = [], [], [], {}
        self.steps = self.depth = self.maybe = 0
        self.source, self.line, self.written, self.local, self.input = (b"", None), 1, None, None, None

    def read(self, text):
        """Follow a script's text from its beginning to its end."""
        try:
            self.text(text)
        except Leave:
            pass
        except (_TooLong, RecursionError):
            self.cut = True
        return self

    # ---- what words.py and builtins.py ask and say ---------------------------------------------------------

    def value(self, name):
        """The text of a variable, or None if it is not set."""
        if name == "0" or name in "?$!_-":
            return UNKNOWN
        if name == "#":
            return UNKNOWN if self.arguments is None else str(len(self.arguments))
        if name.isdigit():
            return dict(enumerate(self.arguments or [], 1)).get(int(name[:9]))
        found = self.variables.get(name)
        return found.get("0") if isinstance(found, dict) else found

    def values(self, name):
        """The words of an array, or of `$@`."""
        if name in "@*":
            return list(self.arguments or [])
        found = self.variables.get(name)
        return list(found.values()) if isinstance(found, dict) else [] if found is None else [found]

    def set(self, name, value):
        self.variables[name] = value

    def unset(self, name):
        """The value of what is not set: it may be set where the script is submitted."""
        if self.nounset and not self.foreign and not name.isdigit() and name not in "@*":
            self.unsets.append((self.line, name))
        return UNKNOWN

    def number(self, text):
        """The number of an arithmetic expression, or None."""

        def get(name):
            value = self.value(name)
            value = self.unset(name) if value is None else value
            return int(value) if re.fullmatch(r"-?\d{1,18}", value) else 0 if value == "" else None

        def put(name, value):
            self.variables[name] = UNKNOWN if value is None else str(value)

        return arithmetic.evaluate(words.joined(text.replace("<(", "< ("), self), get, put)

    def output(self, text):
        """What a command substitution would give: `$(echo ...)`, `$(seq ...)`; of programs UNKNOWN."""
        written, self.written = self.written, []
        with self._apart():
            self.text(text, self.line)
        told, self.written = self.written, written
        return UNKNOWN if None in told or not told else "\n".join(told).rstrip("\n")

    def write(self, text):
        """Print a text, None for one that is not known."""
        if self.written is not None:
            self.written.append(text)

    def note(self, found):
        """Keep the words of what would be started."""
        self.starts.append(Start(self.line, [*self.prefix, *found], self.folder, dict(self.variables)))

    def start(self, found):
        """Start a program by its words, or a script that is known: behind `bash -c`, or one that the script writes."""
        self.write(None)
        names = [word.rpartition("/")[2] for word in found]
        place = next((index for index, name in enumerate(names) if name in _SHELLS), None)
        if self.depth < DEEPEST - 10:
            if place is not None:
                options = found[place + 1 :]
                flag = next((i for i, word in enumerate(options) if re.fullmatch(r"-[a-z]*c", word)), None)
                if (
                    flag is not None
                    and len(options) > flag + 1
                    and all(word[:1] in ("-", "") for word in options[:flag])
                ):
                    return self._inside(found[:place], options[flag + 1], options[flag + 3 :])
                if self.input and all(word in ("-s", "-l", "--login") for word in options):
                    return self._inside(found[:place], self.input, [])
            for index, word in enumerate(found):
                if (index == 0 or names[0] in _START_FILES) and self._path(word) in self.files:
                    before = found[: index if place is None else min(place, index)]
                    return self._inside(before, self.files[self._path(word)], found[index + 1 :])
        self.note(found)
        return "ran"

    def _path(self, word):
        return os.path.normpath(f"{self.folder}/{word}")

    def _inside(self, before, text, arguments):
        """Start what a script starts. before: the words that start it, such as `srun`."""
        outer, self.prefix = self.prefix, [*self.prefix, *before]
        with self._apart():
            self.arguments, self.nounset = arguments, False
            self.text(text, self.line)
        self.prefix = outer
        return "ran"

    # ---- the tree ----------------------------------------------------------------------------------------

    def text(self, text, line=None):
        """Follow a text; line: the number of all of its lines, where it is a part of the script."""
        text = _ONLY_CONTINUED.sub("\n", text)
        source, self.source = self.source, (text.encode("utf-8", "replace"), line)
        try:
            return self._all(_parsed(self.source[0]).children)
        finally:
            self.source = source

    def _all(self, nodes):
        """Follow statements one after the other; the status of the last one."""
        status = True
        for index, node in enumerate(nodes):
            if not node.is_named or node.type in ("comment", *_REDIRECTIONS):
                continue
            if next((other.type for other in nodes[index + 1 :] if other.type != "comment"), "") != "&":
                status = self._one(node)
                continue
            before, status = len(self.starts), True
            with self._apart():
                self._one(node)
            for start in self.starts[before:]:
                start.beside = start.alone = True
        return status

    def _one(self, node):
        """Follow one statement. Its status: True, False, "ran" for a program, None if not known."""
        self.steps += 1
        if self.steps > STEPS:
            raise _TooLong
        if self.depth > DEEPEST:
            self.cut = True
            return None
        self.line, self.depth = self.source[1] or node.start_point[0] + 1, self.depth + 1
        try:
            return getattr(self, f"_at_{node.type}", self._at_other)(node)
        finally:
            self.depth -= 1

    def _at_other(self, node):
        return self._all(node.children)

    @contextlib.contextmanager
    def _apart(self):
        """A subshell: what it sets is forgotten."""
        kept = self._state()
        self.forked, forked = True, self.forked
        try:
            yield
        except Leave:
            pass
        finally:
            self._restore(kept)
            self.forked = forked

    def _state(self):
        return dict(self.variables), self.arguments, dict(self.functions), self.folder, self.nounset, self.foreign

    def _restore(self, state):
        variables, self.arguments, functions, self.folder, self.nounset, self.foreign = state
        self.variables, self.functions = dict(variables), dict(functions)

    def _either(self, *ways):
        """Follow ways of which one is taken, it is not known which."""
        start, ends, left, status = self._state(), [], None, set()
        self.maybe += 1
        for way in ways:
            self._restore(start)
            try:
                status.add(way())
                ends.append(self._state())
            except Leave as leave:
                left = leave
        self.maybe -= 1
        if not ends:
            raise left
        self._restore(ends[0])
        for variables, _, functions, folder, _, foreign in ends[1:]:
            differ = {name for name in self.variables | variables if self.variables.get(name) != variables.get(name)}
            self.variables |= dict.fromkeys(differ, UNKNOWN)
            self.functions = functions | self.functions
            self.folder = self.folder if self.folder == folder else UNKNOWN
            self.foreign |= foreign
        return status.pop() if len(status) == 1 else None

    # ---- statements --------------------------------------------------------------------------------------

    def _at_list(self, node):
        left, sign, right = node.children[0], node.children[1].type, node.children[-1]
        status = self._one(left)
        if status == "ran" and sign == "&&":
            status = True  # programs are taken to succeed
        if status in (True, False):
            return self._one(right) if status == (sign == "&&") else status
        self._either(lambda: True, lambda: self._one(right))
        return None

    def _at_pipeline(self, node):
        written, self.written = self.written, None
        for part in node.children:
            if part.is_named:
                with self._apart():
                    self._one(part)
        self.written = written
        self.write(None)
        return "ran"

    def _at_negated_command(self, node):
        status = self._one(node.children[-1])
        return not status if status in (True, False) else None

    def _at_subshell(self, node):
        with self._apart():
            return self._all(node.children)
        return None

    def _at_compound_statement(self, node):
        if node.children[0].type == "((":
            value = self.number(_slice(node)[2:-2])
            return None if value is None else bool(value)
        return self._all(node.children)

    def _at_redirected_statement(self, node):
        body = node.child_by_field_name("body")
        here = next((part for part in node.children if part.type == "heredoc_redirect"), None)
        behind = here.children if here else []  # `cat <<END > file`, `cat <<END | python x.py` stand inside
        targets = []
        for part in (*node.children, *behind):
            if part.type == "file_redirect":
                targets += words.fields(re.sub(r"^\d*[&<>|]+\s*", "", _slice(part)), self)
        outer, self.input = self.input, self._here(here) if here else None
        if self.input and body and _slice(body) == "cat" and len(targets) == 1:
            self.files[self._path(targets[0])] = self.input
        try:
            status = self._one(body) if body else True
        finally:
            self.input = outer
        return self._all([part for part in behind if part.type in ("pipeline", "command", "list")]) or status

    def _here(self, node):
        start, body = node.children[1], [part for part in node.children if part.type == "heredoc_body"]
        text = _slice(body[0]) if body else ""
        if start.text[:1] in (b"'", b'"', b"\\"):
            return text
        return words.joined('"' + text.replace('"', '\\"') + '"', self)

    def _at_if_statement(self, node):
        return self._branches(node.children)

    def _branches(self, parts):
        """`if`, or `elif`, and what follows it."""
        kinds = [part.type for part in parts]
        cut = kinds.index("then") if "then" in kinds else len(kinds)
        end = next((index for index, kind in enumerate(kinds) if kind in ("elif_clause", "else_clause")), len(kinds))

        def otherwise():
            if end == len(kinds):
                return True
            children = parts[end].children
            return (
                self._all(children) if kinds[end] == "else_clause" else self._branches([*children, *parts[end + 1 :]])
            )

        then, status = partial(self._all, parts[cut + 1 : end]), self._all(parts[1:cut])
        if status in (True, False):
            return then() if status else otherwise()
        return self._either(then, otherwise)

    def _round(self, body):
        """One round of a loop. Is it to go on?"""
        try:
            self._all(body.children)
        except Leave as leave:
            if leave.word not in ("break", "continue"):
                raise
            if leave.levels > 1:
                raise Leave(leave.word, leave.levels - 1) from None
            return leave.word == "continue"
        return True

    def _loop(self, condition, body, step=lambda: None):
        """Rounds while a condition holds; a round that may be where that is not known."""
        for _ in range(LOOPS):
            status = condition()
            if status not in (True, False):
                return self._either(lambda: True, lambda: self._round(body)) and None
            if not status or not self._round(body):
                break
            step()
        return True

    def _at_for_statement(self, node):
        name, body = node.child_by_field_name("variable").text.decode(), node.child_by_field_name("body")
        listed = any(child.type == "in" for child in node.children)
        values = self._expanded(self._groups(node.children_by_field_name("value"))) if listed else self.values("@")
        if self.arguments is None and not values:
            values = [UNKNOWN]  # the words behind the script's name
        for value in values[:LOOPS]:
            self.variables[name] = value
            if not self._round(body):
                break
        return True

    def _at_c_style_for_statement(self, node):
        text = _slice(node)
        begin = text.index("((") + 2
        first, condition, step = (text[begin : words.closing(text, begin, "(")].split(";") + ["", ""])[:3]
        self.number(first)

        def holds():
            value = self.number(condition) if condition.strip() else 1
            return None if value is None else bool(value)

        return self._loop(holds, node.child_by_field_name("body"), partial(self.number, step))

    def _at_while_statement(self, node):
        body, before = node.child_by_field_name("body"), None
        conditions, until = node.children[1 : node.children.index(body)], node.children[0].type == "until"

        def holds():
            nonlocal before
            if self.variables == before:
                return False  # it goes on for ever
            before, status = dict(self.variables), self._all(conditions)
            return status != until if status in (True, False) else None

        return self._loop(holds, body)

    def _at_case_statement(self, node):
        value, ways = words.joined(_slice(node.child_by_field_name("value")), self), []
        for item in node.children:
            if item.type != "case_item":
                continue
            fit = {words.fits(value, words.joined(_slice(one), self)) for one in item.children_by_field_name("value")}
            cut = next((index for index, child in enumerate(item.children) if child.type == ")"), 0)
            way = partial(self._all, item.children[cut + 1 :])
            if True in fit:
                return self._either(*ways, way) if ways else way()
            ways += [way] if None in fit else []
        return self._either(lambda: True, *ways) if ways else True

    def _at_function_definition(self, node):
        self.functions[node.child_by_field_name("name").text.decode()] = node.child_by_field_name("body"), self.source
        return True

    def _at_test_command(self, node):
        return self._truth(node.children[1]) if len(node.children) == 3 else None

    def _truth(self, node):
        """Of the expression in [ ] or [[ ]]: True, False or None."""
        parts = node.children
        if node.type == "parenthesized_expression" and len(parts) == 3:
            return self._truth(parts[1])
        if node.type == "unary_expression" and len(parts) == 2:
            sign = _slice(parts[0])
            if sign == "!":
                told = self._truth(parts[1])
                return None if told is None else not told
            value = UNKNOWN if sign == "-v" else words.joined(_slice(parts[1]), self)
            return (value == "") == (sign == "-z") if sign in ("-n", "-z") and UNKNOWN not in value else None
        if node.type != "binary_expression" or len(parts) != 3:
            return None
        sign = _slice(parts[1])
        if sign in ("&&", "||"):
            told = self._truth(parts[0])
            if told is not None and told == (sign == "||"):
                return told
            other = self._truth(parts[2])
            return other if told is not None or other == (sign == "||") else None
        if parts[2].type == "binary_expression":
            return None
        return _compared(words.joined(_slice(parts[0]), self), sign, words.joined(_slice(parts[2]), self))

    # ---- commands ----------------------------------------------------------------------------------------

    def _groups(self, nodes):
        """The texts of words: neighbours without a blank between them are one."""
        groups = []
        for node in nodes:
            if node.type in _REDIRECTIONS or (not node.is_named and node.type in (";", "in", "do")):
                continue
            if groups and groups[-1][1] == node.start_byte:
                groups[-1][1] = node.end_byte
            else:
                groups.append([node.start_byte, node.end_byte])
        return [self.source[0][start:end].decode("utf-8", "replace").strip() for start, end in groups]

    def _expanded(self, texts):
        found = []
        for text in texts:
            self.steps += 1 + len(found) // 100
            found += words.fields(text, self)
            if len(found) > words.MOST:
                return [*found[: words.MOST], UNKNOWN]
        return found

    def _assign(self, text):
        """Do an assignment; False if the text is none."""
        match = _ASSIGNED.match(text)
        if not match:
            return False
        name, place, more, value = match.groups()
        old = self.variables.get(name)
        array = old if isinstance(old, dict) else {} if old is None else {"0": old}
        if value.startswith("(") and place is None:
            made = self._array(value[1:-1], array if more else {})
        elif place is not None:
            made = self._placed(array, old is None, words.joined(place, self), words.joined(value, self))
        else:
            made = words.joined(value, self)
            made = (array.get("0") or "") + made if more else made
            made = made if len(made) <= words.LONGEST else UNKNOWN
            made = {**old, "0": made} if more and isinstance(old, dict) else made
        self.variables[name] = made if len(made) <= words.MOST or isinstance(made, str) else {"0": UNKNOWN}
        return True

    def _array(self, text, old):
        tree = _parsed(f": {text}\n".replace("\n", " ").encode("utf-8", "replace"))
        source, self.source = self.source, (tree.text, self.line)
        commands = [node for node in tree.children if node.type == "command"]
        texts = self._groups(commands[0].children[1:]) if len(commands) == 1 else [UNKNOWN]
        self.source = source
        keyed = [re.fullmatch(r"\[([^\]]*)\]=(.*)", one, re.DOTALL) for one in texts]
        if texts and all(keyed):
            return old | {words.joined(one[1], self): words.joined(one[2], self) for one in keyed}
        return old | {str(index): one for index, one in enumerate(self._expanded(texts), len(old))}

    def _placed(self, array, new, place, value):
        """An array with a value at a place, which is a number or, of an associative one, a text."""
        if place not in array and not (new or any(not key.isdigit() for key in array)):
            number = self.number(place)
            place = UNKNOWN if number is None else str(number)
        return array | {place: value}

    def _at_variable_assignment(self, node):
        self._assign(_slice(node))
        return "ran" if "$(" in _slice(node) or "`" in _slice(node) else True

    def _at_declaration_command(self, node):
        word, *texts = self._groups(node.children)
        for text in texts:
            if word in ("local", "declare", "typeset") and self.local is not None:
                name = re.split(r"[+=\[]", text)[0]
                self.local.setdefault(name, self.variables.get(name))
            if not self._assign(text) and text[:1] in ("$", "'", '"'):
                for one in words.fields(text, self):
                    self._assign(one.replace("$", r"\$"))
            elif re.fullmatch(r"[A-Za-z_]\w*", text) and word == "local":
                self.variables[text] = ""
        return True

    def _at_unset_command(self, node):
        for name in self._expanded(self._groups(node.children))[1:]:
            self.variables.pop(name, None)
        return True

    def _at_command(self, node):
        texts, own = self._groups(node.children), {}
        while texts and (match := _ASSIGNED.match(texts[0])):
            own.setdefault(match[1], self.variables.get(match[1]))
            self._assign(texts.pop(0))
        found = self._expanded(texts)
        try:
            return self._do(found) if found else True
        finally:
            self._put_back(own)

    def _put_back(self, variables):
        for name, value in variables.items():
            self.variables.pop(name, None)
            if value is not None:
                self.variables[name] = value

    def _do(self, found):
        """Follow a command by its words."""
        if found[0] in self.functions:
            return self._call(found[0], found[1:])
        while found[0] in ("command", "builtin", "time", "nohup") and len(found) > 1 and not found[1].startswith("-"):
            found = found[1:]
        return DO[found[0]](self, found[1:]) if found[0] in DO else self.start(found)

    def _call(self, name, arguments):
        body, source = self.functions[name]
        kept = self.line, self.arguments, self.local, self.source
        self.arguments, self.local, self.source = arguments, {}, source
        try:
            return self._one(body)
        except Leave as leave:
            if leave.word != "return":
                raise
            return None
        finally:
            self._put_back(self.local)
            self.line, self.arguments, self.local, self.source = kept


def _parsed(text):
    return tree_sitter.Parser(_LANGUAGE).parse(text).root_node


def _slice(node):
    return node.text.decode("utf-8", "replace")


def _compared(left, sign, right):
    """left -lt right, left = right: True, False or None."""
    if UNKNOWN in left or UNKNOWN in right:
        return None
    if sign in ("=", "==", "!="):
        told = words.fits(left, right)
        return None if told is None else told == (sign != "!=")
    signs = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
    if sign not in signs or not all(re.fullmatch(r"\s*-?\d{1,18}\s*", text) for text in (left, right)):
        return None
    return bool(arithmetic.evaluate(f"({int(left)}) {signs[sign]} ({int(right)})", None, None))
