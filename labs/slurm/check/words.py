"""A word of bash, expanded as bash would, as far as that is known without running anything.

What only a program could tell, such as `$(nvidia-smi -L)`, is UNKNOWN: a character that stands for any text.
"""

import fnmatch
import re

UNKNOWN = "\ue000"
LONGEST = 10_000  # characters of a value
MOST = 1_000  # words that one word may become
_NAME = re.compile(r"[A-Za-z_]\w*")
_PARAMETER = re.compile(r"([#!]?)([A-Za-z_]\w*|\d+|[@*#?$!_-])(?:\[([^\]]*)\])?(.*)", re.DOTALL)
_CLOSERS = {"(": ")", "{": "}"}
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


def fields(text, shell):
    """The words that the text of one word becomes; "" stays a word where it is quoted.

    shell: has what a running bash would have (bash.Shell): value(name), values(name), set(name, value), number(text),
    output(text) of a command.
    """
    found = []
    for one in _braces(text):
        found += _Word(shell).read(one)
    return found if len(found) <= MOST else [UNKNOWN]


def joined(text, shell):
    """The text of one word that is not split, as behind `=`."""
    return _short(" ".join(_Word(shell, split=False).read(text)))


def closing(text, start, opened):
    """Index of what closes the bracket `opened`, whose inside begins at `start`; else the text's end."""
    open_now, index = [_CLOSERS[opened]], start
    while index < len(text):
        char = text[index]
        if char == "\\":
            index += 1
        elif char == "'" and '"' not in open_now[-1:]:
            index = _find(text, "'", index + 1)
        elif char == '"':
            if open_now[-1] == '"':
                open_now.pop()
            else:
                open_now.append('"')
        elif char == open_now[-1]:
            open_now.pop()
            if not open_now:
                return index
        elif char in _CLOSERS and (text[index - 1 : index] == "$" or (open_now[-1] != '"' and char == "(")):
            open_now.append(_CLOSERS[char])
        index += 1
    return len(text)


def _find(text, char, start):
    index = text.find(char, start)
    return index if index >= 0 else len(text)


def _short(text):
    return text if len(text) <= LONGEST else UNKNOWN


class _Word:
    """Reads the text of one word. split: are values without quotes divided at blanks?"""

    def __init__(self, shell, split=True):
        self.shell, self.split = shell, split
        self.done, self.now = [], None  # words; the one being read, None before its first character

    def read(self, text):
        index, quoted = 0, False
        if text == "~" or text.startswith("~/"):
            self.add(self.shell.value("HOME") or UNKNOWN)
            index = 1
        while index < len(text):
            char = text[index]
            if char == "\\":
                index += 1
                literal = quoted and text[index : index + 1] not in ("$", "`", '"', "\\", "\n")
                self.add(("\\" if literal else "") + text[index : index + 1].replace("\n", ""))
            elif char == '"':
                quoted = not quoted
                if quoted and not text.startswith(('"${', '"$@'), index):  # "${empty[@]}" is no word
                    self.add("")
            elif char == "'" and not quoted:
                end = _find(text, "'", index + 1)
                self.add(text[index + 1 : end])
                index = end
            elif text.startswith("$'", index) and not quoted:
                end = index + 2
                while end < len(text) and text[end] != "'":
                    end += 2 if text[end] == "\\" else 1
                self.add(re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], UNKNOWN), text[index + 2 : end]))
                index = end
            elif text.startswith('$"', index) and not quoted:
                pass
            elif char == "`":
                end = index + 1
                while end < len(text) and text[end] != "`":
                    end += 2 if text[end] == "\\" else 1
                self.put(self.shell.output(re.sub(r"\\([$`\\])", r"\1", text[index + 1 : end])), quoted)
                index = end
            elif char == "$":
                index = self.dollar(text, index + 1, quoted) - 1
            elif text[index : index + 2] in ("<(", ">(") and not quoted:
                end = closing(text, index + 2, "(")
                self.shell.output(text[index + 2 : end])
                self.add(UNKNOWN)
                index = end
            else:
                self.add(char)
            index += 1
        return self.done + ([] if self.now is None else [_short(self.now)])

    def add(self, text):
        self.now = (self.now or "") + text

    def put(self, value, quoted):
        """A value: text, or a list of words ("$@")."""
        if isinstance(value, str):
            if quoted or not self.split:
                return self.add(value)
            words = value.split()
            if value[:1].isspace():
                words.insert(0, "")
        else:
            words = [_short(word) for word in value] if quoted else " ".join(value).split()
            words = words if self.split else [" ".join(words)]
        for index, word in enumerate(words):
            if index:
                self.done.append(_short(self.now or ""))
                self.now = None
            if word or quoted or index or self.now:
                self.add(word)
        return None

    def dollar(self, text, index, quoted):
        """Takes what follows a `$`; returns the index behind it."""
        if text.startswith("((", index):
            end = closing(text, index + 1, "(")
            inner = text[index + 2 : end - 1]
            if text[end - 1 : end] == ")":
                self.put(self.number(inner), quoted)
                return end + 1
        if text.startswith("(", index):
            end = closing(text, index + 1, "(")
            self.put(self.shell.output(text[index + 1 : end]), quoted)
            return end + 1
        if text.startswith("{", index):
            end = closing(text, index + 1, "{")
            self.put(parameter(text[index + 1 : end], self.shell), quoted)
            return end + 1
        match = _NAME.match(text, index) or re.compile(r"[\d@*#?$!_-]").match(text, index)
        if not match:
            self.add("$")
            return index
        self.put(parameter(match[0], self.shell), quoted)
        return match.end()

    def number(self, text):
        value = self.shell.number(text)
        return UNKNOWN if value is None else str(value)


def parameter(text, shell):
    """The value of `${text}`: a text, or a list of words where it has several."""
    match = _PARAMETER.fullmatch(text)
    if not match:
        return UNKNOWN
    before, name, place, after = match.groups()
    several = name in "@*" or place in ("@", "*")
    operation = re.match(r":?[-=?+]", after)
    if before == "!":
        array = shell.variables.get(name)
        return list(array) if several and isinstance(array, dict) else UNKNOWN
    if before == "#":
        values = shell.values(name) if several else [_one(name, place, shell)]
        if UNKNOWN in "".join(value or "" for value in values):
            return UNKNOWN
        return str(len(values) if several else len(values[0] or ""))
    if operation:
        return _default(name, place, operation[0], after[operation.end() :], shell)
    value = shell.values(name) if several else _one(name, place, shell)
    if value is None:
        return shell.unset(name)
    if not after or not value:
        return value
    if isinstance(value, list):
        return _slice(value, after, shell)
    return _short(_changed(value, after, shell))


def _one(name, place, shell):
    """One value as text, or None if it is not set."""
    if place is None:
        return shell.value(name)
    index, array = joined(place, shell), shell.variables.get(name)
    if isinstance(array, dict) and (index in array or not all(map(str.isdigit, array))):
        return UNKNOWN if UNKNOWN in index or UNKNOWN in array else array.get(index)
    number, values = shell.number(index), shell.values(name)
    if number is None or UNKNOWN in values:
        return UNKNOWN
    return values[number] if -len(values) <= number < len(values) else None


def _default(name, place, operation, text, shell):
    several = name in "@*" or place in ("@", "*")
    value = (shell.values(name) or None) if several else _one(name, place, shell)
    missing = value is None or (operation[0] == ":" and not value)
    sign = operation[-1]
    if sign == "+":
        if value == UNKNOWN:
            return UNKNOWN
        return "" if missing else joined(text, shell)
    if not missing:
        return value
    if sign == "?":
        return UNKNOWN  # whoever submits it must set it
    made = joined(text, shell)
    if sign == "=":
        shell.set(name, made)
    return made


def _slice(values, text, shell):
    parts = [shell.number(part) for part in text.lstrip(":").split(":")]
    if not text.startswith(":") or None in parts or UNKNOWN in values or len(parts) > 2:
        return [UNKNOWN]
    start = parts[0] if parts[0] >= 0 else len(values) + parts[0]
    return values[start : start + parts[1] if len(parts) == 2 else None]


def _changed(value, text, shell):
    """A text with a part cut off or replaced; UNKNOWN where that is not known here."""
    if UNKNOWN in value or len(value) > MOST:
        return UNKNOWN
    if text in ("^^", ",,"):
        return value.upper() if text == "^^" else value.lower()
    cut = re.match(r"(##?|%%?)(.*)", text, re.DOTALL)
    if cut:
        pattern = joined(cut[2], shell)
        ends = range(len(value) + 1)
        if cut[1][0] == "#":
            ends = ends if cut[1] == "#" else reversed(ends)
            kept = (value[end:] for end in ends if fits(value[:end], pattern))
        else:
            ends = reversed(ends) if cut[1] == "%" else ends
            kept = (value[:end] for end in ends if fits(value[end:], pattern))
        return UNKNOWN if UNKNOWN in pattern or len(pattern) > 50 else next(kept, value)
    swap = re.match(r"(//?)((?:\\.|[^/\\])+)(?:/(.*))?$", text, re.DOTALL)
    if swap:
        old, new = joined(swap[2], shell), joined(swap[3] or "", shell)
        if re.search(rf"[*?\[#%{UNKNOWN}]", old):
            return UNKNOWN
        return value.replace(old, new, -1 if swap[1] == "//" else 1)
    if text.startswith(":"):
        return "".join(_slice(list(value), text, shell))
    return UNKNOWN


def fits(text, pattern):
    """Does a text match a pattern of bash's `case`? None: not known here."""
    if UNKNOWN in text or UNKNOWN in pattern or len(pattern) > 100:
        return None
    return fnmatch.fnmatchcase(text, pattern)


def _braces(text):
    """The texts that {a,b} and {1..4} outside quotes make of one."""
    found = [text]
    for _ in range(20):
        made = [other for one in found for other in _brace(one)]
        if made == found or len(made) > MOST:
            return made if len(made) <= MOST else [UNKNOWN]
        found = made
    return found


def _brace(text):
    """The texts that the first brace makes; [text] without one."""
    index = 0
    while index < len(text):
        char = text[index]
        if char == "\\":
            index += 1
        elif char in "'\"":
            index = _find(text, char, index + 1)
        elif char == "$" and text[index + 1 : index + 2] in ("{", "("):
            index = closing(text, index + 2, text[index + 1])
        elif char == "{":
            end = _end(text, index + 1)
            inner = text[index + 1 : end]
            span = re.fullmatch(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?", inner)
            if span and end < len(text):
                first, last, step = int(span[1]), int(span[2]), abs(int(span[3] or 1)) or 1
                if abs(last - first) // step >= MOST:
                    return [UNKNOWN]
                numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
                return [text[:index] + str(number) + text[end + 1 :] for number in numbers]
            parts = _parts(inner)
            if len(parts) > 1 and end < len(text):
                return [text[:index] + part + text[end + 1 :] for part in parts]
        index += 1
    return [text]


def _end(text, start):
    depth = 1
    for index in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if not depth:
            return index
    return len(text)


def _parts(text):
    """The parts between commas that stand in no inner brace."""
    parts, depth = [""], 0
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts
