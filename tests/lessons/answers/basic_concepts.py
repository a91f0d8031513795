"""Answers to the self-checks of 01_basic_concepts: right ones, and wrong ones that students give."""

import numpy as np

DAYS = 355 * 365


def three(throughput=lambda i, s: i / s, speedup=lambda a, b: a / b, efficiency=lambda a, b, p: a / b / p):
    return throughput, speedup, efficiency


def row(speedup=lambda a, b: a["minutes"] / b["minutes"], ideal=lambda a, b: b["devices"] / a["devices"]):
    return (lambda a, b: (speedup(a, b), speedup(a, b) / ideal(a, b)),)


ANSWERS = {
    "concepts.1": dict(
        right=[(lambda m: 2 ** (12 / m),), (lambda m: np.exp2(12 / m),)],
        wrong=[
            (lambda m: 12 / m,),
            (lambda m: 2 * 12 / m,),
            (lambda m: 2 ** (m / 12),),
            (lambda m: 2 ** (1 / m),),
            (lambda m: 1 + 12 / m,),
        ],
        secret=r"\*\*|2 to the power|11\.5",
    ),
    "concepts.2": dict(
        right=[
            (2, 2, 0.5),
            (150 / 75, 150 / 75, 2 / 4),
            ("2", "2.0", "0.5"),
            (np.float32(2), np.int64(2), np.array(0.5)),
        ],
        wrong=[
            (150, 150, 37.5),
            (75, 75, 18.75),
            (0.5, 0.5, 2),
            (2, 4, 1),
            (2, 1, 0.25),
            (2, 2, 2),
            (2, 2, 0.25),
            (2, 2, 0.75),
            (2, 2, 50),
            (2, 2, "50 %"),
            (2, True, 0.5),
        ],
        raises=[9],
        secret=r"\b0\.5\b|\b50 ?%",
    ),
    "concepts.4": dict(
        right=[
            row(),
            (lambda a, b: [a["minutes"] / b["minutes"], a["minutes"] * a["devices"] / b["minutes"] / b["devices"]],),
        ],
        wrong=[
            row(speedup=lambda a, b: b["minutes"] / a["minutes"]),
            row(ideal=lambda a, b: b["devices"]),
            row(ideal=lambda a, b: a["devices"]),
            (lambda a, b: (a["minutes"] / b["minutes"], b["devices"] / a["devices"]),),
            (lambda a, b: (a["minutes"] / b["minutes"], b["devices"] * b["minutes"] / a["devices"] / a["minutes"]),),
            (lambda a, b: row()[0](a, b)[::-1],),
            (lambda a, b: (a["minutes"] - b["minutes"], 1),),
            (lambda a, b: (5, 0.625),),
            (lambda a, b: (5, 62.5),),
            (lambda a, b: a["minuten"],),
        ],
        secret=r"\[\"|\b8\b|0\.625",
        raises=[9],
    ),
    "concepts.7": dict(
        right=[three(), three(throughput=np.divide), three(efficiency=lambda a, b, p: a / (p * b))],
        wrong=[
            three(throughput=lambda i, s: s / i),
            three(throughput=lambda i, s: i * s),
            three(throughput=lambda i, s: i),
            three(speedup=lambda a, b: b / a),
            three(speedup=lambda a, b: a - b),
            three(speedup=lambda a, b: a),
            three(efficiency=lambda a, b, p: a / b),
            three(efficiency=lambda a, b, p: a / b * p),
            three(efficiency=lambda a, b, p: b / a / p),
            three(efficiency=lambda a, b, p: 1),
            three(throughput=lambda i, s: i // s),
            three(speedup=lambda a, b: a // b),
            three(efficiency=lambda a, b, p: a / b // p),
            three(efficiency=lambda a, b, p: 100 * a / b / p),
            three(throughput=lambda i, s: print(end="")),
            three(throughput=lambda i, s: 187.5),
            three(speedup=lambda a, b: 30 / b),
            three(efficiency=lambda a, b, p: a / b / 5),
        ],
        secret=r"\b187\.5\b|\b0\.75\b",
    ),
    "concepts.8": dict(
        right=[(3.56, 3.957), (44.5 / 12.5, 45.5 / 11.5), (3.6, 4.0), ("3.56", "3.96")],
        wrong=[
            (3.957, 3.56),
            (3.75, 3.75),
            (3.64, 3.87),
            (3.6, 3.913),
            (3.708, 3.792),
            (44 / 13, 46 / 11),
            (0.89, 0.989),
            (3, 4),
            (3.6, 3.9),
        ],
        same=[(3, 8), (7, 8)],
        secret=r"3\.5\d|3\.9|44\.5|12\.5|45\.5|11\.5",
    ),
    "concepts.11": dict(
        right=[(4, 8, 2), (4.0, np.int64(8), 2), ("4", "8", "2")],
        wrong=[(8, 8, 2), (1, 8, 2), (2, 8, 2), (4, 2, 2), (4, 1, 2), (4, 4, 2), (4, 8, 8), (4, 8, 4), (4, 8, 1)],
        secret=r"\b[248]\b|\btwo\b|\bfour\b|\beight\b",
    ),
    "concepts.13": dict(
        right=[(lambda k, m: (k - 1) / (m + k - 1),), (lambda k, m: 1 - m / (m + k - 1),)],
        wrong=[
            (lambda k, m: (k - 1) / k,),
            (lambda k, m: (k - 1) / m,),
            (lambda k, m: m / (m + k - 1),),
            (lambda k, m: (m - 1) / (m + k - 1),),
            (lambda k, m: (k - 1) / (m + k),),
            (lambda k, m: (k - 1) / (m * k),),
            (lambda k, m: 3 / 7,),
            (lambda k, m: 100 * (k - 1) / (m + k - 1),),
            (lambda k, m: (k - 1) // (m + k - 1),),
        ],
        secret=r"M \+ K|\bK\b|\+|3 ?/ ?7",
    ),
    "concepts.14": dict(
        right=[(27,), (27.0,), ("27",)], wrong=[(4,), (26,), (30,), (28,), (26.5,), (3,)], secret=r"\b27\b"
    ),
    "concepts.16": dict(
        right=[(lambda p: 12 * p,), (lambda p: 3 * p * 4.0,)],
        wrong=[
            (lambda p: 4 * p,),
            (lambda p: 8 * p,),
            (lambda p: 3 * p,),
            (lambda p: 16 * p,),
            (lambda p: 96 * p,),
            (lambda p: 6 * p,),
            (lambda p: 12 * 25_613_800,),
            (lambda p: 12_000,),
            (lambda p: 24 * p,),
            (lambda p: 12 * p / 1e6,),
        ],
        secret=r"\b12\b|12[ ,]?000|\b4 bytes",
    ),
}
