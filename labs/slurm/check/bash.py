"""A bash script gone through on paper: which programs it would start, with which words. Nothing of it is run.

tree-sitter reads the text; loops, functions, variables and arithmetic are followed as far as they are known. Where a
condition is not known both ways are followed, and what differs between them is UNKNOWN afterwards. What takes too many
steps is left out.
"""

import contextlib
import re
from dataclasses import dataclass

import tree_sitter
import tree_sitter_bash

from labs.slurm.check import arithmetic, words
from labs.slurm.check.words import UNKNOWN

STEPS = 20_000  # commands, conditions, words of one script
LOOPS = 100  # rounds of one loop
DEEPEST = 80  # functions in functions, blocks in blocks

_LANGUAGE = tree_sitter.Language(tree_sitter_bash.language())
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=(.*)", re.DOTALL)
_ONLY_CONTINUED = re.compile(r"(?m)(?<!\\\n)^[ \t]*\\\n")  # tree-sitter-bash 0.25 joins the lines around it
_SHELLS = ("bash", "sh", "dash", "ksh", "zsh")
_SILENT = {"echo", "printf", ":", "true", "false", "pwd", "command", "type", "hash", "trap", "ulimit", "umask", "popd"}
_SILENT |= {
    "shopt",
    "alias",
    "test",
    "[",
    "kill",
    "jobs",
    "disown",
    "times",
    "enable",
    "bg",
    "fg",
    "history",
    "builtin",
}
_REDIRECTIONS = ("file_redirect", "heredoc_redirect", "herestring_redirect")


class _Leave(Exception):
    """The script, loop or function is left here: `exit`, `return`, `break`, `continue`."""

    def __init__(self, word, levels=1):
        super().__init__(word)
        self.word, self.levels = word, levels


class _TooLong(Exception):
    """STEPS are used up."""


@dataclass
class Start:
    """A program that would be started.

    line_number: in the script. words: all of it, with UNKNOWN where a text is not known. folder: where, below the one
    in which the script starts. variables: those of the script at this place. alone: in the background, and the script
    never waits for it.
    """

    line_number: int
    words: list
    folder: str
    variables: dict
    alone: bool = False


@dataclass
class Unset:
    """A variable that is read under `set -u` and not set by anything before."""

    line_number: int
    name: str


@dataclass
class _Source:
    """A text that is read: the script, or a part of it that is a script again. line: that of its first line; None: of
    all of its lines, `fixed`."""

    text: bytes
    fixed: int | None = None

    def line(self, node):
        return self.fixed or node.start_point[0] + 1


class Shell:
    """What a bash that ran the script would know. starts, unsets: what was found."""

    def __init__(self, variables):
        self.variables, self.arguments, self.functions, self.folder = dict(variables), None, {}, "."
        self.starts, self.unsets, self.steps, self.depth, self.maybe = [], [], 0, 0, 0
        self.nounset, self.foreign, self.background, self.before = False, False, [], []
        self.source, self.line, self.written, self.forked = _Source(b""), 1, None, False
        self.local, self.prefix, self.cut = None, [], False

    def read(self, text):
        """Follow a script's text from its beginning to its end."""
        try:
            self._text(text)
        except _Leave:
            pass
        except (_TooLong, RecursionError):
            self.cut = True
        return self

    # ---- what words.py asks ------------------------------------------------------------------------------

    def value(self, name):
        """The text of a variable, or None if it is not set."""
        if name.isdigit():
            if self.arguments is None or name == "0":
                return UNKNOWN if name == "0" else None
            return self.arguments[int(name) - 1] if 0 < int(name) <= len(self.arguments) else None
        if name == "#":
            return UNKNOWN if self.arguments is None else str(len(self.arguments))
        if name in "?$!_-":
            return UNKNOWN
        found = self.variables.get(name)
        if isinstance(found, list):
            return found[0] if found else None
        if isinstance(found, dict):
            return found.get("0")
        return found

    def values(self, name):
        """The words of an array, or of `$@`."""
        if name in "@*":
            return list(self.arguments or [])
        found = self.variables.get(name, [])
        return list(found.values()) if isinstance(found, dict) else [found] if isinstance(found, str) else found

    def set(self, name, value):
        self.variables[name] = value

    def unset(self, name):
        """The value of what is not set: it may be set where the script is submitted."""
        if self.nounset and not self.foreign and not name.isdigit() and name not in "@*":
            self.unsets.append(Unset(self.line, name))
        return UNKNOWN

    def number(self, text):
        """The number of an arithmetic expression, or None."""
        return arithmetic.evaluate(words.joined(text.replace("<(", "< ("), self), self._whole, self._count)

    def _whole(self, name):
        value = self.value(name)
        if value is None:
            value = self.unset(name)
        return int(value) if re.fullmatch(r"-?\d{1,18}", value) else 0 if value == "" else None

    def _count(self, name, value):
        self.variables[name] = UNKNOWN if value is None else str(value)

    def output(self, text):
        """What a command substitution would give: `$(echo ...)`, `$(seq ...)`; of programs UNKNOWN."""
        written, self.written = self.written, []
        with self._apart():
            self._text(text, self.line)
        told, self.written = self.written, written
        return UNKNOWN if None in told or not told else "\n".join(told).rstrip("\n")

    # ---- the tree ----------------------------------------------------------------------------------------

    def _text(self, text, line=None):
        text = _ONLY_CONTINUED.sub("\n", text)
        source, self.source = self.source, _Source(text.encode("utf-8", "replace"), line)
        try:
            return self._all(tree_sitter.Parser(_LANGUAGE).parse(self.source.text).root_node.children)
        finally:
            self.source = source

    def _all(self, nodes):
        """Follow statements one after the other; the status of the last one."""
        status = True
        for index, node in enumerate(nodes):
            if not node.is_named or node.type in ("comment", *_REDIRECTIONS):
                continue
            after = next((other.type for other in nodes[index + 1 :] if other.type != "comment"), "")
            if after == "&":
                before = len(self.starts)
                with self._apart():
                    self._one(node)
                self.background += self.starts[before:]
                for start in self.starts[before:]:
                    start.alone = True
                status = True
            else:
                status = self._one(node)
        return status

    def _one(self, node):
        """Follow one statement. Its status: True, False, "ran" for a program, None if not known."""
        self.steps += 1
        if self.steps > STEPS:
            raise _TooLong
        if self.depth > DEEPEST:
            self.cut = True
            return None
        self.line, self.depth = self.source.line(node), self.depth + 1
        try:
            return getattr(self, f"_{node.type}", self._other)(node)
        finally:
            self.depth -= 1

    def _other(self, node):
        return self._all(node.children)

    @contextlib.contextmanager
    def _apart(self):
        """A subshell: what it sets is forgotten."""
        kept = self._state()
        self.forked, forked = True, self.forked
        try:
            yield
        except _Leave:
            pass
        finally:
            self._restore(kept)
            self.forked = forked

    def _state(self):
        return dict(self.variables), self.arguments, dict(self.functions), self.folder, self.nounset, self.foreign

    def _restore(self, state):
        self.variables, self.arguments, self.functions, self.folder, self.nounset, self.foreign = state
        self.variables, self.functions = dict(self.variables), dict(self.functions)

    def _either(self, *ways):
        """Follow ways of which one is taken, it is not known which."""
        start, ends, left, status = self._state(), [], None, set()
        self.maybe += 1
        for way in ways:
            self._restore(start)
            try:
                status.add(way())
                ends.append(self._state())
            except _Leave as leave:
                left = leave
        self.maybe -= 1
        if not ends:
            raise left
        self._restore(ends[0])
        for other in ends[1:]:
            names = [*self.variables, *(name for name in other[0] if name not in self.variables)]
            for name in names:
                if self.variables.get(name) != other[0].get(name):
                    self.variables[name] = UNKNOWN
            self.functions = other[2] | self.functions
            self.folder = self.folder if self.folder == other[3] else UNKNOWN
            self.foreign |= other[5]
        return status.pop() if len(status) == 1 else None

    # ---- statements --------------------------------------------------------------------------------------

    def _comment(self, node):
        return True

    def _list(self, node):
        left, sign, right = node.children[0], node.children[1].type, node.children[-1]
        status = self._one(left)
        if status == "ran" and sign == "&&":
            status = True  # programs are taken to succeed
        if status in (True, False):
            return self._one(right) if status == (sign == "&&") else status
        self._either(lambda: True, lambda: self._one(right))
        return None

    def _pipeline(self, node):
        written, self.written = self.written, None if self.written is None else [None]
        for part in node.children:
            if part.is_named:
                with self._apart():
                    self._one(part)
        told, self.written = self.written, written
        if told:
            self.written.append(None)
        return "ran"

    def _negated_command(self, node):
        status = self._one(node.children[-1])
        return not status if status in (True, False) else None

    def _subshell(self, node):
        with self._apart():
            return self._all(node.children)
        return None

    def _compound_statement(self, node):
        if node.children[0].type == "((":
            value = self.number(self._slice(node)[2:-2])
            return None if value is None else bool(value)
        return self._all(node.children)

    def _redirected_statement(self, node):
        body = node.child_by_field_name("body")
        here = [part for part in node.children if part.type == "heredoc_redirect"]
        self.before.append(self._here(here[0]) if here else None)
        try:
            status = self._one(body) if body else True
        finally:
            self.before.pop()
        for part in node.children:
            if part.type == "file_redirect":
                words.fields(self._slice(part).lstrip("0123456789&<>|"), self)
        for one in here:  # `cat <<END | python x.py` stands inside
            status = (
                self._all([part for part in one.children if part.type in ("pipeline", "command", "list")]) or status
            )
        return status

    def _here(self, node):
        start, body = node.children[1], [part for part in node.children if part.type == "heredoc_body"]
        text = body[0].text.decode("utf-8", "replace") if body else ""
        if start.text[:1] in (b"'", b'"', b"\\"):
            return text
        return words.joined('"' + text.replace('"', '\\"') + '"', self)

    def _if_statement(self, node):
        ways, parts = [], []
        for child in node.children:
            if child.type in ("elif_clause", "else_clause"):
                ways.append(child)
            else:
                parts.append(child)
        cut = next((index for index, child in enumerate(parts) if child.type == "then"), len(parts))
        status = self._all(parts[1:cut])

        def then():
            return self._all(parts[cut + 1 :])

        def otherwise():
            return self._clauses(ways)

        if status in (True, False):
            return then() if status else otherwise()
        return self._either(then, otherwise)

    def _clauses(self, clauses):
        if not clauses:
            return True
        clause, *more = clauses
        if clause.type == "else_clause":
            return self._all(clause.children)
        cut = next((index for index, child in enumerate(clause.children) if child.type == "then"), 0)
        status = self._all(clause.children[1:cut])

        def then():
            return self._all(clause.children[cut + 1 :])

        if status in (True, False):
            return then() if status else self._clauses(more)
        return self._either(then, lambda: self._clauses(more))

    def _round(self, body):
        """One round of a loop. Is it to go on?"""
        try:
            self._all(body.children)
        except _Leave as leave:
            if leave.word not in ("break", "continue"):
                raise
            if leave.levels > 1:
                raise _Leave(leave.word, leave.levels - 1) from None
            return leave.word == "continue"
        return True

    def _for_statement(self, node):
        name, body = node.child_by_field_name("variable").text.decode(), node.child_by_field_name("body")
        if node.children[0].type == "select":
            self.variables[name] = UNKNOWN
            return self._either(lambda: True, lambda: self._round(body)) and None
        listed = any(child.type == "in" for child in node.children)
        values = self._words(node.children_by_field_name("value")) if listed else self.values("@")
        if self.arguments is None and not values:
            values = [UNKNOWN]  # the words behind the script's name
        for value in values[:LOOPS]:
            self.variables[name] = value
            if not self._round(body):
                break
        return True

    def _c_style_for_statement(self, node):
        text = self._slice(node)
        end = words.closing(text, text.index("((") + 2, "(")
        first, condition, step = (text[text.index("((") + 2 : end].split(";") + ["", ""])[:3]
        self.number(first)
        body = node.child_by_field_name("body")
        for _ in range(LOOPS):
            value = self.number(condition) if condition.strip() else 1
            if value is None:
                return self._either(lambda: True, lambda: self._round(body)) and None
            if not value or not self._round(body):
                break
            self.number(step)
        return True

    def _while_statement(self, node):
        body = node.child_by_field_name("body")
        conditions = node.children[1 : node.children.index(body)]
        wanted = node.children[0].type == "while"
        for _ in range(LOOPS):
            before = dict(self.variables)
            status = self._all(conditions)
            if status not in (True, False):
                return self._either(lambda: True, lambda: self._round(body)) and None
            if status != wanted or not self._round(body) or self.variables == before:
                break
        return True

    def _case_statement(self, node):
        value = words.joined(self._slice(node.child_by_field_name("value")), self)
        ways = []
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns = [words.joined(self._slice(one), self) for one in item.children_by_field_name("value")]
            cut = next((index for index, child in enumerate(item.children) if child.type == ")"), 0)
            ways.append(lambda parts=item.children[cut + 1 :]: self._all(parts))
            if UNKNOWN in value or any(UNKNOWN in one or len(one) > 100 for one in patterns):
                continue
            if any(words.fits(value, one) for one in patterns):
                return self._either(*ways) if len(ways) > 1 and UNKNOWN in value else ways[-1]()
        if not ways or UNKNOWN not in value:
            return True
        return self._either(lambda: True, *ways)

    def _function_definition(self, node):
        self.functions[node.child_by_field_name("name").text.decode()] = node.child_by_field_name("body"), self.source
        return True

    def _test_command(self, node):
        return self._truth(node.children[1]) if len(node.children) == 3 else None

    def _truth(self, node):
        """Of the expression in [ ] or [[ ]]: True, False or None."""
        parts = node.children
        if node.type == "parenthesized_expression" and len(parts) == 3:
            return self._truth(parts[1])
        if node.type == "unary_expression" and len(parts) == 2:
            sign = parts[0].text.decode()
            if sign == "!":
                told = self._truth(parts[1])
                return None if told is None else not told
            value = words.joined(self._slice(parts[1]), self) if "-v" != sign else UNKNOWN
            return (value == "") == (sign == "-z") if sign in ("-n", "-z") and UNKNOWN not in value else None
        if node.type == "binary_expression" and len(parts) == 3:
            sign = parts[1].text.decode()
            if sign in ("&&", "||"):
                told = self._truth(parts[0])
                if told is not None and told == (sign == "||"):
                    return told
                other = self._truth(parts[2])
                return other if told is not None or other == (sign == "||") else None
            if parts[2].type == "binary_expression":
                return None
            left, right = (words.joined(self._slice(part), self) for part in (parts[0], parts[2]))
            return _compared(left, sign, right)
        return None

    # ---- commands ----------------------------------------------------------------------------------------

    def _slice(self, node):
        return node.text.decode("utf-8", "replace")

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
        return [self.source.text[start:end].decode("utf-8", "replace").strip() for start, end in groups]

    def _words(self, nodes):
        found = []
        for text in self._groups(nodes):
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
        if value.startswith("(") and place is None:
            made = self._array(value[1:-1])
            if more and isinstance(made, list):
                made = (self.values(name) + made)[: words.MOST]
        elif place is not None:
            made = self._placed(name, words.joined(place, self), words.joined(value, self))
        else:
            made = words.joined(value, self)
            if more:
                made = (self.value(name) or "") + made if not isinstance(old, list) else [made, *old[1:]]
                made = UNKNOWN if isinstance(made, str) and len(made) > words.LONGEST else made
        self.variables[name] = made
        return True

    def _array(self, text):
        tree = tree_sitter.Parser(_LANGUAGE).parse(f": {text}\n".replace("\n", " ").encode("utf-8", "replace"))
        source, self.source = self.source, _Source(tree.root_node.text, self.line)
        commands = [node for node in tree.root_node.children if node.type == "command"]
        texts = self._groups(commands[0].children[1:]) if len(commands) == 1 else [UNKNOWN]
        self.source = source
        keyed = [re.fullmatch(r"\[([^\]]*)\]=(.*)", one, re.DOTALL) for one in texts]
        if texts and all(keyed):
            return {words.joined(one[1], self): words.joined(one[2], self) for one in keyed}
        made = []
        for one in texts:
            made += words.fields(one, self)
            if len(made) > words.MOST:
                return [UNKNOWN]
        return made

    def _placed(self, name, place, value):
        old = self.variables.get(name)
        if isinstance(old, dict) or (old is None and not place.isdigit()):
            return {**(old or {}), place: value}
        values, number = self.values(name), self.number(place)
        if number is None or not 0 <= number <= len(values) or len(values) >= words.MOST:
            return [UNKNOWN]
        return [*values[:number], value, *values[number + 1 :]]

    def _variable_assignment(self, node):
        self._assign(self._slice(node))
        return "ran" if "$(" in self._slice(node) or "`" in self._slice(node) else True

    def _declaration_command(self, node):
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

    def _unset_command(self, node):
        for name in self._words(node.children)[1:]:
            self.variables.pop(name, None)
        return True

    def _command(self, node):
        texts, own = self._groups(node.children), {}
        while texts and _ASSIGNED.match(texts[0]):
            name = _ASSIGNED.match(texts[0])[1]
            own.setdefault(name, self.variables.get(name))
            self._assign(texts.pop(0))
        found = []
        for text in texts:
            self.steps += 1
            found += words.fields(text, self)
            if len(found) > words.MOST:
                found = [*found[: words.MOST], UNKNOWN]
                break
        if not found:
            return True
        try:
            return self._do(found)
        finally:
            for name, value in own.items():
                self.variables.pop(name, None)
                if value is not None:
                    self.variables[name] = value

    def _do(self, found):
        """Follow a command by its words."""
        if found[0] in self.functions:
            return self._call(found[0], found[1:])
        while found[0] in ("command", "builtin", "time", "nohup") and len(found) > 1 and not found[1].startswith("-"):
            found = found[1:]
        name, rest = {".": "source"}.get(found[0], found[0]), found[1:]
        known = getattr(self, f"_do_{name}", None) if re.fullmatch("[a-z]+", name) else None
        if known:
            return known(rest)
        if name in _SILENT:
            self._write(None)
            return {"true": True, ":": True, "false": False, "pwd": True}.get(name)
        return self._start(found)

    def _start(self, found):
        self._write(None)
        place = next((i for i, word in enumerate(found) if word.rpartition("/")[2] in _SHELLS), None)
        if place is not None and self.depth < DEEPEST - 10:
            options = found[place + 1 :]
            flag = next((i for i, word in enumerate(options) if re.fullmatch(r"-[a-z]*c", word)), None)
            if flag is not None and len(options) > flag + 1 and all(word[0] == "-" for word in options[:flag] if word):
                return self._inside(found[:place], options[flag + 1], options[flag + 3 :])
            if all(word in ("-s", "-l", "--login") for word in options) and self.before and self.before[-1]:
                return self._inside(found[:place], self.before[-1], [])
        self.starts.append(Start(self.line, [*self.prefix, *found], self.folder, dict(self.variables)))
        return "ran"

    def _inside(self, before, text, arguments):
        """What `srun bash -c 'text'` would start: srun starts it."""
        outer, self.prefix = self.prefix, [*self.prefix, *before]
        with self._apart():
            self.arguments, self.nounset = arguments, False
            self._text(text, self.line)
        self.prefix = outer
        return "ran"

    def _call(self, name, arguments):
        body, source = self.functions[name]
        line, kept, self.arguments = self.line, self.arguments, arguments
        outer_local, self.local = self.local, {}
        outer, self.source = self.source, source
        try:
            return self._one(body)
        except _Leave as leave:
            if leave.word != "return":
                raise
            return None
        finally:
            for one, value in self.local.items():
                self.variables.pop(one, None)
                if value is not None:
                    self.variables[one] = value
            self.local, self.arguments, self.source, self.line = outer_local, kept, outer, line

    # ---- builtins ----------------------------------------------------------------------------------------

    def _write(self, text):
        if self.written is not None:
            self.written.append(text)

    def _do_echo(self, rest):
        while rest and re.fullmatch("-[neE]+", rest[0]):
            rest = rest[1:]
        self._write(" ".join(rest))
        return True

    def _do_printf(self, rest):
        if rest[:1] == ["-v"] and len(rest) > 1:
            self.variables[rest[1]] = UNKNOWN
        plain = {"%s": " ".join(rest[1:]), r"%s\n": "\n".join(rest[1:]), "%d": " ".join(rest[1:])}
        self._write(plain.get(rest[0] if rest else ""))
        return True

    def _do_seq(self, rest):
        numbers = [int(word) for word in rest if re.fullmatch(r"-?\d{1,9}", word)]
        if not 1 <= len(numbers) == len(rest) <= 3:
            self._write(None)
            return "ran"
        first, last = (1, *numbers)[-2:] if len(numbers) < 3 else (numbers[0], numbers[2])
        step = numbers[1] if len(numbers) == 3 else 1
        count = (last - first) // step + 1 if step else words.MOST
        made = [first + step * index for index in range(min(max(count, 0), words.MOST))]
        self._write("\n".join(map(str, made)) if count < words.MOST else None)
        return "ran"

    def _do_cd(self, rest):
        goal = next((word for word in rest if not re.fullmatch("-[LPe@]+", word)), self.value("HOME") or UNKNOWN)
        if goal == "-" or UNKNOWN in goal:
            self.folder = UNKNOWN
        else:
            self.folder = goal if goal.startswith("/") else f"{self.folder}/{goal or '.'}"[-words.MOST :]
        return True

    _do_pushd = _do_cd

    def _do_popd(self, rest):
        self.folder = UNKNOWN
        return True

    def _do_exit(self, rest):
        failed = rest and rest[0] != "0"
        if failed and not self.maybe and not self.forked:
            return True  # an error's way out: what stands behind it is read too
        raise _Leave("exit")

    _do_logout = _do_exit

    def _do_return(self, rest):
        raise _Leave("return")

    def _do_break(self, rest):
        raise _Leave("break", int(rest[0]) if rest and rest[0].isdigit() else 1)

    def _do_continue(self, rest):
        raise _Leave("continue", int(rest[0]) if rest and rest[0].isdigit() else 1)

    def _do_exec(self, rest):
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] == "-a" else rest[1:]
        if not rest:
            return True
        self._start(rest)
        raise _Leave("exit")

    def _do_set(self, rest):
        for index, word in enumerate(rest):
            if word == "--":
                self.arguments = rest[index + 1 :]
                break
            if re.fullmatch(r"[-+][a-zA-Z]*u[a-zA-Z]*", word) or (
                word[1:] == "o" and "nounset" in rest[index + 1 :][:1]
            ):
                self.nounset = word[0] == "-"
        return True

    def _do_shift(self, rest):
        count = int(rest[0]) if rest and rest[0].isdigit() else 1
        self.arguments = self.arguments[count:] if self.arguments else self.arguments
        return True

    def _do_wait(self, rest):
        for start in self.background:
            start.alone = False
        return True

    def _do_trap(self, rest):
        return self._do_wait([]) if "wait" in " ".join(rest[:1]) else True

    def _do_eval(self, rest):
        self.starts.append(Start(self.line, ["eval", *rest], self.folder, {}))
        text = " ".join(rest)
        if UNKNOWN in text:
            self.foreign = True
            return None
        return self._text(text, self.line)

    def _do_source(self, rest):
        self.starts.append(Start(self.line, ["source", *rest], self.folder, {}))
        self.foreign = True  # it may set anything
        return "ran"

    def _do_let(self, rest):
        value = None
        for word in rest:
            value = self.number(word)
        return None if value is None else bool(value)

    def _do_read(self, rest):
        for word in rest:
            if re.fullmatch(r"[A-Za-z_]\w*", word):
                self.variables[word] = UNKNOWN
        return None

    def _do_mapfile(self, rest):
        for word in rest:
            if re.fullmatch(r"[A-Za-z_]\w*", word):
                self.variables[word] = [UNKNOWN]
        return None

    _do_readarray = _do_mapfile
    _do_getopts = _do_read


def _compared(left, sign, right):
    """left -lt right, left = right: True, False or None."""
    if UNKNOWN in left or UNKNOWN in right:
        return None
    if sign in ("=", "==", "!=") and len(right) <= 100:
        return words.fits(left, right) == (sign != "!=")
    numbers = [int(text) if re.fullmatch(r"\s*-?\d{1,18}\s*", text) else None for text in (left, right)]
    if None in numbers:
        return None
    signs = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}
    if sign not in signs:
        return None
    return bool(arithmetic.evaluate(f"({numbers[0]}) {signs[sign]} ({numbers[1]})", None, None))
