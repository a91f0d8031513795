"""Arithmetic as bash does it, on numbers of 64 bits: `$((64 * workers))`. Nothing is run.

Where bash and Python write the same, Python's parser reads it. What is rare is not known: octal numbers, a `?` in
brackets, what the two bind in another order.
"""

import ast
import operator
import re

LONGEST = 1000  # characters of an expression
_CHANGE = re.compile(r"\s*([A-Za-z_]\w*)\s*(<<|>>|[-+*/%&|^])?=(?!=)(.*)", re.DOTALL)
_COUNT = re.compile(r"\s*(\+\+|--)?\s*([A-Za-z_]\w*)\s*(\+\+|--)?\s*")


def _quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # cut towards 0


_DO = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda a, b: _quotient(a, b) if b else None,
    ast.Mod: lambda a, b: a - b * _quotient(a, b) if b else None,
    ast.Pow: lambda a, b: a**b if 0 <= b <= 64 else None,
    ast.LShift: lambda a, b: a << b if 0 <= b < 64 else None,
    ast.RShift: lambda a, b: a >> b if 0 <= b < 64 else None,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.And: lambda a, b: bool(a and b),
    ast.Or: lambda a, b: bool(a or b),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
_BITS = ast.BitOr | ast.BitAnd | ast.BitXor


def evaluate(text, get, put):
    """The number of an expression, or None where it is not known.

    text: without `$`. get(name): a number or None; put(name, number or None): for `n++` and `n = 2`.
    """
    value = None
    for part in text.split(",") if len(text) <= LONGEST else ():
        value = _one(part, get, put)
    return value


def _one(text, get, put):
    count, change = _COUNT.fullmatch(text), _CHANGE.fullmatch(text)
    if count and (count[1] or count[3]):
        before = get(count[2])
        after = _read(f"{before} {(count[1] or count[3])[0]} 1", get) if before is not None else None
        put(count[2], after)
        return after if count[1] else before
    if change:
        name, sign, right = change.groups()
        value = _one(right, get, put)
        if sign:
            value = _read(f"({get(name)}) {sign} ({value})", get)
        put(name, value)
        return value
    condition, mark, rest = text.partition("?")
    if not mark:
        return _read(text, get)
    told, (first, _, second) = _read(condition, get), rest.partition(":")
    return None if told is None else _one(first if told else second, get, put)


def _read(text, get):
    """The number of an expression without `=`, `++` and `?`."""
    for sign, word in (("&&", " and "), ("||", " or "), ("/", "//")):
        text = text.replace(sign, word)
    text = re.sub(r"!(?!=)", " not ", text).strip()
    try:
        return _value(ast.parse(text, mode="eval").body, get)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError, KeyError):
        return None


def _value(node, get):
    """The number of a part, None where it is not known. Raises TypeError or KeyError: nothing that is read here."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return get(node.id)
    parts, sign = _parts(node)
    values = [_value(part, get) for part in parts]
    if None in values:
        return None
    value = values[0] if len(values) > 1 else _DO[type(sign)](values[0])
    for more in values[1:]:
        value = None if value is None else _DO[type(sign)](value, more)
    return None if value is None else (int(value) + 2**63) % 2**64 - 2**63


def _parts(node):
    """(operands, operator). Raises TypeError also where bash and Python bind in another order."""
    if isinstance(node, ast.BoolOp):
        return node.values, node.op
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Compare | ast.BinOp):
        return [node.operand], node.op
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        parts, sign, other = [node.left, *node.comparators], node.ops[0], _BITS
    elif isinstance(node, ast.BinOp):
        parts, sign, other = [node.left, node.right], node.op, ()
    else:
        raise TypeError
    if any(isinstance(part, ast.Compare) or isinstance(getattr(part, "op", None), other) for part in parts):
        raise TypeError
    return parts, sign
