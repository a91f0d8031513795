"""Answers to the self-checks of 27_other_engines: right ones, and wrong ones that students give."""

import numpy as np
from answers.where_a_step_goes import formulas
from making import swapped


def by_hand(*words):
    """The script with each old text, followed by the new one in its place."""
    return swapped("scripts/jax_by_hand.py", *zip(words[::2], words[1::2], strict=True))


MESH = 'Mesh(np.array(devices), ("data",))'
PLACED = "return mesh, jax.device_put(weights, whole), jax.device_put(images, by_rows), jax.device_put(labels, by_rows)"
MEAN = 'jax.tree.map(lambda g: jax.lax.psum(g, "data") / mesh.size, gradient)'
VALUE = 'value = jax.lax.psum(value, "data") / mesh.size'


def tolerance(trained):
    return 10 * np.abs(trained[1:] - trained[0]).max()


ANSWERS = {
    "engines.2": {
        "right": [(tolerance,), (lambda t: 10 * max(float(abs(row - t[0]).max()) for row in t),)],
        "wrong": formulas(
            globals(), "t", "10 * (t[1:] - t[0]).max()", "10 * np.abs(t[1:] - t[0]).max(axis=1)",
            "10 * np.abs(t[1:4] - t[0]).max()",
        ),
        "secret": r"max\(|\babs",
    },
    "engines.5": {
        "right": [(5, 4, 4, 4)],
        "wrong": [(4, 4, 4, 4), (5, 4, 4, 1)],
        "secret": r"line 5 .*exchange",
    },
    "engines.6": {
        "right": [by_hand(), by_hand(MESH, 'jax.make_mesh((len(devices),), ("data",), devices=devices)')],
        "wrong": [
            by_hand(MESH, 'Mesh(np.array(devices[:1]), ("data",))'),
            by_hand(MESH, 'Mesh(np.array(devices), ("batch",))', 'mesh, P("data")', 'mesh, P("batch")'),
            by_hand(PLACED, "return mesh, jax.device_put(weights, whole), images, labels"),
            by_hand(PLACED, PLACED.replace("images, by_rows", "images, NamedSharding(mesh, P(None, 'data'))")),
            by_hand(PLACED, PLACED.replace("labels, by_rows", "labels, whole")),
        ],
        "secret": r'P\("data"\)|NamedSharding',
    },
    "engines.7": {
        "right": [
            by_hand(),
            by_hand(MEAN, 'jax.lax.pmean(gradient, "data")', VALUE, 'value = jax.lax.pmean(value, "data")'),
        ],
        "wrong": [
            by_hand(MEAN, MEAN.replace(" / mesh.size", "")),
            by_hand(VALUE, "pass"),
            by_hand(MEAN, '{n: jax.lax.psum(g, "data") / mesh.size if n != "b1" else g for n, g in gradient.items()}'),
        ],
        "secret": r"pmean|/ mesh",
    },
    "engines.9": {
        "right": [(1e8, 1.25e7)],
        "wrong": [(25_000_000, 12_500_000), (1e8, 6_250_000)],
        "secret": r"100 million|12,500,000",
    },
}  # fmt: skip
