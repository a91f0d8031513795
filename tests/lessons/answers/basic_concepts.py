"""Answers to the self-checks of 01_basic_concepts: right ones, and wrong ones that students give."""

import numpy as np


def three(throughput=lambda i, s: i / s, speedup=lambda a, b: a / b, efficiency=lambda a, b, p: a / b / p):
    return throughput, speedup, efficiency


def row(ideal=lambda a, b: b["devices"] / a["devices"]):
    return (lambda a, b: (a["minutes"] / b["minutes"], a["minutes"] / b["minutes"] / ideal(a, b)),)


ANSWERS = {
    "concepts.1": dict(
        right=[(lambda m: 2 ** (12 / m),), (lambda m: np.exp2(12 / m),)],
        wrong=[(lambda m: 12 / m,), (lambda m: 2 ** (m / 12),)],
        secret=r"\*\*|2 to the power|11\.5",
    ),
    "concepts.2": dict(
        right=[(2, 2, 0.5), (np.float32(2), np.int64(2), np.array(0.5))],
        wrong=[(2, 4, 1), (2, 2, 0.25)],
        secret=r"\b0\.5\b|\b50 ?%",
    ),
    "concepts.4": dict(
        right=[row(), (lambda a, b: list(row()[0](a, b)),)],
        wrong=[row(ideal=lambda a, b: a["devices"]), (lambda a, b: (a["minutes"] - b["minutes"], 1),)],
        secret=r"\[\"|\b8\b|0\.625",
    ),
    "concepts.7": dict(
        right=[three(), three(throughput=np.divide, efficiency=lambda a, b, p: a / (p * b))],
        wrong=[three(throughput=lambda i, s: i // s), three(speedup=lambda a, b: a - b)],
        secret=r"\b187\.5\b|\b0\.75\b",
    ),
    "concepts.8": dict(
        right=[(44.5 / 12.5, 45.5 / 11.5), (3.6, 4.0), ("3.56", "3.96")],
        wrong=[(3.957, 3.56), (3.64, 3.87), (3.6, 3.913)],
        secret=r"3\.5\d|3\.9|44\.5|12\.5|45\.5|11\.5",
    ),
    "concepts.11": dict(
        right=[(4, 8, 2), ("4", 8.0, np.int64(2))],
        wrong=[(2, 8, 2), (4, 4, 2), (4, 8, 4)],
        secret=r"\b[248]\b|\btwo\b|\bfour\b|\beight\b",
    ),
    "concepts.13": dict(
        right=[(lambda k, m: (k - 1) / (m + k - 1),), (lambda k, m: 1 - m / (m + k - 1),)],
        wrong=[(lambda k, m: (k - 1) / k,), (lambda k, m: 3 / 7,)],
        secret=r"M \+ K|\bK\b|\+|3 ?/ ?7",
    ),
    "concepts.14": dict(right=[(27,), ("27.0",)], wrong=[(26,), (28,), (26.5,)], secret=r"\b27\b"),
    "concepts.16": dict(
        right=[(lambda p: 12 * p,), (lambda p: 3 * p * 4.0,)],
        wrong=[(lambda p: 8 * p,), (lambda p: 16 * p,)],
        secret=r"\b12\b|12[ ,]?000|\b4 bytes",
    ),
}
