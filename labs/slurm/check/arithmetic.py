"""Arithmetic as bash does it, on numbers of 64 bits: `$((64 * workers))`. Nothing is run."""

import operator
import re

_TOKEN = re.compile(
    r"\s*(0[xX][\da-fA-F]+|\d+(?![#\w])|[A-Za-z_]\w*|\*\*|<<=|>>=|&&|\|\||<<|>>|\+\+|--|[-+*/%&|^<>=!]=|[-+*/%&|^<>=!~?:(),])"
)
_ASSIGN = re.compile(r"([-+*/%&|^]|<<|>>)?=")
_STEPS = 500  # tokens of one expression


def _divide(a, b):
    """The quotient, cut towards 0; None by 0."""
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a, b):
    return None if b == 0 else a - b * _divide(a, b)


def _power(a, b):
    return a**b if 0 <= b <= 64 else None


def _shift(a, b):
    return a << b if 0 <= b < 64 else None


# operator: (binds how strongly, what it does)
_BINARY = {
    "||": (1, lambda a, b: a or b),
    "&&": (2, lambda a, b: a and b),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, operator.eq),
    "!=": (6, operator.ne),
    "<": (7, operator.lt),
    ">": (7, operator.gt),
    "<=": (7, operator.le),
    ">=": (7, operator.ge),
    "<<": (8, _shift),
    ">>": (8, lambda a, b: a >> b if 0 <= b < 64 else None),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, _remainder),
    "**": (12, _power),
}


class _Unread(Exception):
    """The text is no arithmetic that is known here."""


def evaluate(text, get, put):
    """The number of an expression, or None where it is not known.

    text: without `$`. get(name): a number or None; put(name, number or None): for `n++` and `n = 2`.
    """
    tokens, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if not match or len(tokens) > _STEPS:
            return None
        tokens.append(match[1])
        position = match.end()
    reader = _Reader(tokens, get, put)
    try:
        value = reader.listed()
        return value if not reader.tokens else None
    except _Unread:
        return None


class _Reader:
    def __init__(self, tokens, get, put):
        self.tokens, self.get, self.put, self.depth = tokens[::-1], get, put, 0

    def next(self):
        if not self.tokens:
            raise _Unread
        return self.tokens.pop()

    def take(self, *wanted):
        return self.tokens.pop() if self.tokens and self.tokens[-1] in wanted else None

    def listed(self):
        value = self.choice()
        while self.take(","):
            value = self.choice()
        return value

    def choice(self):
        self.depth += 1
        if self.depth > 50:
            raise _Unread
        value = self.binary(1)
        if self.take("?"):
            first = self.choice()
            if not self.take(":"):
                raise _Unread
            second = self.choice()
            value = None if value is None else first if value else second
        self.depth -= 1
        return value

    def binary(self, least):
        left = self.unary()
        while self.tokens and _BINARY.get(self.tokens[-1], (0,))[0] >= least:
            strength, do = _BINARY[self.tokens[-1]]
            right_least = strength if self.next() == "**" else strength + 1
            left = _apply(do, left, self.binary(right_least))
        return left

    def unary(self):
        token = self.next()
        if token in ("++", "--"):
            name = self.next()
            return self.set(name, _apply(operator.add, self.get(name), 1 if token == "++" else -1))
        if token in ("+", "-", "!", "~"):
            value = self.binary(11)
            made = {"+": operator.pos, "-": operator.neg, "!": operator.not_, "~": operator.invert}[token]
            return None if value is None else int(made(value))
        if token == "(":
            value = self.choice()
            if not self.take(")"):
                raise _Unread
            return value
        if token[0].isdigit():
            return int(token, 16 if token[1:2] in ("x", "X") else 8 if token[0] == "0" and token.strip("89") else 10)
        if not re.match(r"[A-Za-z_]", token):
            raise _Unread
        return self.name(token)

    def name(self, name):
        if self.tokens and _ASSIGN.fullmatch(self.tokens[-1]) and self.tokens[-1] != "==":
            sign = self.next()[:-1]
            value = self.choice()
            return self.set(name, _apply(_BINARY[sign][1], self.get(name), value) if sign else value)
        value = self.get(name)
        after = self.take("++", "--")
        if after:
            self.set(name, _apply(operator.add, value, 1 if after == "++" else -1))
        return value

    def set(self, name, value):
        self.put(name, value)
        return value


def _apply(do, left, right):
    if left is None or right is None:
        return None
    value = do(left, right)
    return None if value is None else (int(bool(value)) if isinstance(value, bool) else _wrap(int(value)))


def _wrap(value):
    """The 64 bits that bash keeps."""
    return (value + 2**63) % 2**64 - 2**63
