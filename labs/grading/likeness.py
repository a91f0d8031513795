"""Scripts and answers that are like somebody else's, by fingerprints of their tokens.

Winnowing (S. Schleimer, D. Wilkerson, A. Aiken, SIGMOD 2003): of every `WINDOW` neighbouring hashes of `GRAM` tokens
the smallest is kept, so two texts that share GRAM + WINDOW - 1 tokens in a row share a fingerprint. In scripts every
name is one token, every number another one, and comments are none: names that were changed hide nothing. Left out is
what the course itself gives, and what more than a few submissions have: the usual way to fill a blank is nobody's own.
"""

import hashlib
import io
import keyword
import re
import tokenize
from collections import Counter
from html import escape
from itertools import combinations

from labs.grading import reference
from labs.grading.finding import Finding
from labs.printed import printable

GRAM, WINDOW = {"script": 10, "answer": 5}, 4
LEAST, SHARE = 8, 0.5  # fingerprints that two texts share, and of the shorter one's
COMMON = 0.15  # share of the submissions, though 3 of them are always a few


def texts(contents, answers):
    """{what: text} of what a student wrote. contents: {path: bytes}; answers: {id: text}."""
    scripts = {name: content.decode(errors="replace") for name, content in contents.items() if name.endswith(".py")}
    return scripts | {f"the answer to {id}": text for id, text in answers.items()}


def prints(what, text):
    """{fingerprint: number of its line, from 1}."""
    kind = "script" if what.endswith(".py") else "answer"
    tokens = list(_code(text) if kind == "script" else _words(text))
    grams = [tokens[n : n + GRAM[kind]] for n in range(len(tokens) - GRAM[kind] + 1)]
    hashes = [(_hash(" ".join(token for token, _ in gram)), gram[0][1]) for gram in grams]
    windows = [hashes[n : n + WINDOW] for n in range(max(1, len(hashes) - WINDOW + 1))] if hashes else []
    return dict(min(window) for window in windows)


def own(contents, answers, root):
    """{what: sorted fingerprints} of a student's texts without what the course gives."""
    given = {name: {mark for text in of for mark in prints(name, text)} for name, of in reference.scripts(root).items()}
    held = set(prints("answers", " ".join(reference.criteria())))
    found = {what: prints(what, text).keys() - given.get(what, held) for what, text in texts(contents, answers).items()}
    return {what: sorted(of) for what, of in found.items() if of}


def pairs(owned):
    """(what, number, number, fingerprints of both, share of the shorter one's), the most alike first, of
    {number: what `own` gave}."""
    found, few = [], max(3, COMMON * len(owned))
    for what in sorted({what for of_one in owned.values() for what in of_one}):
        held = Counter(mark for of_one in owned.values() for mark in of_one.get(what, ()))
        rare = {n: {mark for mark in of_one.get(what, ()) if held[mark] <= few} for n, of_one in owned.items()}
        for one, other in combinations(sorted(rare), 2):
            both = rare[one] & rare[other]
            if len(both) >= LEAST and (share := len(both) / min(len(rare[one]), len(rare[other]))) >= SHARE:
                found.append((what, one, other, both, share))
    return sorted(found, key=lambda pair: (-pair[4], pair[:3]))


def findings(found):
    """{number: findings} of what `pairs` gave."""
    made = {}
    for what, one, other, both, share in found:
        for here, there in ((one, other), (other, one)):
            seen = (
                f"{len(both)} fingerprints are also those of submission {there}, {share:.0%} of the shorter text's own"
            )
            made.setdefault(here, []).append(Finding("alike", "look", what, seen))
    return made


def page(found, texts):
    """HTML that shows what `pairs` gave side by side; lines in which a fingerprint of both begins are marked.

    texts: {number: what `texts` gave}.
    """
    parts = []
    for what, one, other, both, share in found:
        cells = "".join(f"<td>{_marked(what, texts[number][what], both)}</td>" for number in (one, other))
        heading = f"{escape(printable(what))}: submissions {one} and {other}, {share:.0%} of the shorter text's own"
        parts.append(f"<h2>{heading}</h2><table><tr>{cells}</tr></table>")
    style = "table {table-layout: fixed; width: 100%} td {vertical-align: top} pre {white-space: pre-wrap}"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>What is alike</title><style>{style}</style>'
    return f"{head}<h1>What is alike</h1>{''.join(parts) or '<p>No two scripts or answers are.</p>'}</html>"


def _marked(what, text, both):
    lines = {line for mark, line in prints(what, text).items() if mark in both}
    shown = (escape(printable(line)) for line in text.split("\n"))
    return "<pre>" + "\n".join(f"<mark>{s}</mark>" if n in lines else s for n, s in enumerate(shown, 1)) + "</pre>"


def _code(text):
    """(token, number of its line) of Python; of what is none its words."""
    kinds = {tokenize.NUMBER: "0", tokenize.STRING: "''"}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.string if keyword.iskeyword(token.string) else "name", token.start[0]
            elif token.type == tokenize.OP or token.type in kinds:
                yield kinds.get(token.type, token.string), token.start[0]
    except (tokenize.TokenError, SyntaxError):
        return  # what stands before it counts


def _words(text):
    for number, line in enumerate(text.split("\n"), 1):
        for word in re.findall(r"\w+", line.lower()):
            yield word, number


def _hash(gram):
    return hashlib.blake2b(gram.encode(errors="replace"), digest_size=6).hexdigest()
