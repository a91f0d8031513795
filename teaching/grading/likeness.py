"""Scripts and answers that are like somebody else's, by fingerprints of their tokens.

Winnowing (S. Schleimer, D. Wilkerson, A. Aiken, SIGMOD 2003): of every `WINDOW` neighbouring hashes of `GRAM` tokens
the smallest is kept, so two texts that share GRAM + WINDOW - 1 tokens in a row share a fingerprint. In scripts every
name is one token, every number another one, and comments are left out: names that were changed hide nothing.

What the course itself gives is left out, and so is what more than a few submissions have: the usual way to fill a blank
is nobody's own. Answers that are equal as a whole are found however many students have them, since everybody chooses
their own words.
"""

import hashlib
import io
import keyword
import re
import tokenize
from collections import Counter
from contextlib import suppress
from functools import cache
from itertools import combinations
from pathlib import Path

from labs.checks import kept, tasks
from labs.printed import few, grouped
from teaching.author import sources
from teaching.grading import reference
from teaching.grading.finding import Finding

GRAM, WINDOW = {"script": 10, "answer": 5}, 4
LEAST, SHARE = 8, 0.5  # fingerprints in common: so many at least, and such a share of the shorter text's
WHOLE = 0.8  # of the longer one's, where texts are equal as a whole
COMMON = 0.15  # share of the submissions, though 3 of them are always a few


def prints(what, text):
    """The set of fingerprints of a script (`what` is its path) or an answer."""
    kind = "script" if what.endswith(".py") else "answer"
    tokens = list(_code(text)) if kind == "script" else re.findall(r"\w+", text.lower())
    grams = [" ".join(tokens[n : n + GRAM[kind]]) for n in range(len(tokens) - GRAM[kind] + 1)]
    hashes = [hashlib.blake2b(gram.encode(errors="replace"), digest_size=6).hexdigest() for gram in grams]
    return {min(hashes[n : n + WINDOW]) for n in range(max(1, len(hashes) - WINDOW + 1))} if hashes else set()


def _code(text):
    """The tokens of Python, up to where it is broken."""
    kinds = {tokenize.NUMBER: "0", tokenize.STRING: "''"}
    with suppress(tokenize.TokenError, SyntaxError):  # what stands before it counts
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.string if keyword.iskeyword(token.string) else "name"
            elif token.type == tokenize.OP or token.type in kinds:
                yield kinds.get(token.type, token.string)


def own(contents, answers, root):
    """{what: sorted fingerprints} of a student's scripts and answers without what the course gives. contents: {path:
    bytes}; answers: {id: text}."""
    texts = {name: content.decode(errors="replace") for name, content in contents.items() if name.endswith(".py")}
    texts |= {f"the answer to {id}": text for id, text in answers.items()}
    given, told = _of_scripts(root), _of_answers(root)[0]
    found = {what: prints(what, text) - given.get(what, told) for what, text in texts.items()}
    return {what: sorted(marks) for what, marks in found.items() if marks}


def of_solutions(owned, root):
    """Findings where a written answer is that of the solutions. owned: what `own` gave of a submission.

    The solutions are compared here and nowhere else: their words stand in nothing that is kept or shown.
    """
    for what, _, _, count, share in pairs({"": owned, "solution": _of_answers(root)[1]}):
        seen = f"it shares {count} fingerprints with the solution's answer ({share:.0%} of the shorter text's own)"
        yield Finding("solution", "look", what, seen)


@cache
def _of_scripts(root):
    """{name: fingerprints of the blank form and of the complete one} of the course's scripts."""
    forms = reference.scripts(root).items()
    return {name: prints(name, blank) | prints(name, complete) for name, (blank, complete) in forms}


@cache
def _of_answers(root):
    """(fingerprints of what students read: what a good answer contains, and the notebooks; those of the solution's
    answers without them, as `own` gives them)."""
    read, model = [" ".join(text for _, item in tasks.items().values() for text in getattr(item, "holds", ()))], {}
    for name in sources.sources(Path(root)):
        for cell, theirs in zip(*(form.cells for form in reference.pair(root, name)), strict=True):
            read += [theirs.source] * (theirs.cell_type == "markdown")
            if theirs.metadata.get("labs", {}).get("kind") == "answer":
                model[theirs.metadata.labs.id] = kept.written(cell.source)
    told = {mark for text in read for mark in prints("answer", text)}
    return told, {f"the answer to {id}": prints("answer", text) - told for id, text in model.items()}


def pairs(owned):
    """(what, number, number, how many fingerprints both have, share of the shorter one's), the most alike first, of
    {number: what `own` gave}."""
    found, most = [], max(3, COMMON * len(owned))
    for what in sorted({what for of_one in owned.values() for what in of_one}):
        every = {number: set(of_one[what]) for number, of_one in sorted(owned.items()) if of_one.get(what)}
        held = Counter(mark for marks in every.values() for mark in marks)
        rare = {number: {mark for mark in marks if held[mark] <= most} for number, marks in every.items()}
        for one, other in combinations(every, 2):
            both, (shorter, longer) = every[one] & every[other], sorted((len(every[one]), len(every[other])))
            if what.endswith(".py") or len(both) < WHOLE * longer:
                both, shorter = rare[one] & rare[other], min(len(rare[one]), len(rare[other]))
            if len(both) >= max(LEAST, SHARE * shorter):
                found.append((what, one, other, len(both), len(both) / shorter))
    return sorted(found, key=lambda pair: (-pair[4], pair[:3]))


def findings(found):
    """{number: findings} of what `pairs` gave: one for each text, which names all others that are like it."""
    like = grouped(
        ((here, what), f"{there} ({count}, {share:.0%} of the shorter text's own)")
        for what, one, other, count, share in found
        for here, there in ((one, other), (other, one))
    )
    said = "it shares fingerprints with submission"
    return grouped((n, Finding("alike", "look", what, f"{said} {few(others)}")) for (n, what), others in like.items())
