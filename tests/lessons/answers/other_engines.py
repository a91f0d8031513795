"""Answers to the self-checks of 27_other_engines: right ones, and wrong ones that students give."""

import numpy as np
from making import swapped


def by_hand(*words):
    """The script with each old text, followed by the new one in its place."""
    return swapped("scripts/jax_by_hand.py", *zip(words[::2], words[1::2], strict=True))


MESH = 'Mesh(np.array(devices), ("data",))'
PLACED = "return mesh, jax.device_put(weights, whole), jax.device_put(images, by_rows), jax.device_put(labels, by_rows)"
MEAN = 'jax.tree.map(lambda g: jax.lax.psum(g, "data") / mesh.size, gradient)'
VALUE = 'value = jax.lax.psum(value, "data") / mesh.size'
STEP = "w - RATE * g, weights, gradient), value\n"


def tolerance(trained):
    return 10 * np.abs(trained[1:] - trained[0]).max()


ANSWERS = {
    "engines.2": {
        "right": [(tolerance,), (lambda t: 10 * max(float(abs(row - t[0]).max()) for row in t),)],
        "wrong": [
            (lambda t: np.abs(t[1:] - t[0]).max(),),
            (lambda t: 10 * (t[1:] - t[0]).max(),),
            (lambda t: 10 * np.abs(t[1:] - t[0]).mean(),),
            (lambda t: 10 * np.abs(t).max(),),
            (lambda t: 10 * np.abs(t[0] - t[0]).max(),),
            (lambda t: 10 * np.ptp(t, axis=0).max(),),
            (lambda t: 10 * np.abs(t[1:] - t[0]).max(axis=1),),
            (lambda t: 5 * np.abs(t[1] - t[0]).max(),),
            (lambda t: 10 * np.abs(t[1:4] - t[0]).max(),),
        ],
        "secret": r"max\(|\babs",
    },
    "engines.5": {
        "right": [(5, 4, 4, 4)],
        "wrong": [
            (4, 4, 4, 4),
            (6, 4, 4, 4),
            (5, 1, 4, 4),
            (5, 3, 4, 4),
            (5, 4, 5, 4),
            (5, 4, 1, 4),
            (5, 4, 4, 1),
            (5, 4, 4, 5),
            (5, 4, 4, 0),
        ],
        "secret": r"line 5 .*exchange",
    },
    "engines.6": {
        "right": [
            by_hand(),
            by_hand(PLACED, "return mesh, *map(jax.device_put, (weights, images, labels), (whole, by_rows, by_rows))"),
            by_hand(MESH, 'jax.make_mesh((len(devices),), ("data",), devices=devices)'),
        ],
        "wrong": [
            by_hand(MESH, 'Mesh(np.array(devices[:1]), ("data",))'),
            by_hand(
                MESH,
                'Mesh(np.array(devices), ("batch",))',
                'whole, by_rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))',
                'whole, by_rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("batch"))',
            ),
            by_hand(PLACED, "return mesh, jax.device_put(weights, whole), images, labels"),
            by_hand(PLACED, "return mesh, jax.device_put(weights, whole), *jax.device_put((images, labels), whole)"),
            by_hand(PLACED, PLACED.replace("images, by_rows", "images, NamedSharding(mesh, P(None, 'data'))")),
            by_hand(PLACED, PLACED.replace("labels, by_rows", "labels, whole")),
            by_hand(PLACED, PLACED.replace("mesh, ", "")),
            by_hand(PLACED, "return devices, weights, images, labels"),
            by_hand("def spread(", "def divided("),
        ],
        "secret": r'P\("data"\)|NamedSharding',
    },
    "engines.7": {
        "right": [
            by_hand(),
            by_hand(MEAN, 'jax.lax.pmean(gradient, "data")', VALUE, 'value = jax.lax.pmean(value, "data")'),
            by_hand(
                f"gradient = {MEAN}\n",
                "pass\n",
                "w - RATE * g, weights",
                'jax.lax.pmean(w - RATE * g, "data"), weights',
            ),
        ],
        "wrong": [
            by_hand(f"gradient = {MEAN}\n", "pass\n"),
            by_hand(MEAN, MEAN.replace(" / mesh.size", "")),
            by_hand(MEAN, MEAN.replace("/ mesh.size", "/ mesh.size**2")),
            by_hand(VALUE, "pass"),
            by_hand(VALUE, VALUE.replace(" / mesh.size", "")),
            by_hand(STEP, "w + RATE * g, weights, gradient), value\n"),
            by_hand(STEP, "w, weights, gradient), value\n"),
            by_hand(MEAN, '{n: jax.lax.psum(g, "data") / mesh.size if n != "b1" else g for n, g in gradient.items()}'),
            by_hand(STEP, "w - 0.5 * g, weights, gradient), value\n"),
        ],
        "secret": r"pmean|/ mesh",
    },
    "engines.9": {
        "right": [(100_000_000, 12_500_000), (1e8, 1.25e7)],
        "wrong": [
            (25_000_000, 12_500_000),
            (6_250_000, 12_500_000),
            (200_000_000, 12_500_000),
            (100_000_000, 200_000_000),
            (100_000_000, 6_250_000),
            (100_000_000, 3_125_000),
            (100_000_000, 100_000_000),
            (100_000_000, 25_000_000),
        ],
        "secret": r"100 million|12,500,000",
    },
}
