"""Answers to the self-checks of 27_other_engines that have a judge of their own."""

from making import swapped


def by_hand(*words):
    """The script with each old text, followed by the new one in its place."""
    return swapped("scripts/jax_by_hand.py", *zip(words[::2], words[1::2], strict=True))


MESH = 'Mesh(np.array(devices), ("data",))'
IMAGES = "jax.device_put(images, by_rows)"
MEAN = 'jax.tree.map(lambda g: jax.lax.psum(g, "data") / mesh.size, gradient)'
VALUE = 'value = jax.lax.psum(value, "data") / mesh.size'

ANSWERS = {
    "engines.6": {
        "right": [by_hand(), by_hand(MESH, 'jax.make_mesh((len(devices),), ("data",), devices=devices)')],
        "wrong": [
            by_hand(MESH, 'Mesh(np.array(devices[:1]), ("data",))'),
            by_hand(MESH, 'Mesh(np.array(devices), ("batch",))', 'mesh, P("data")', 'mesh, P("batch")'),
            by_hand(IMAGES, "images"),
            by_hand(IMAGES, "jax.device_put(images, NamedSharding(mesh, P(None, 'data')))"),
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
            by_hand(MEAN, MEAN.replace(" / mesh.size", " / mesh.size * jax.numpy.sign(g)")),
        ],
        "secret": r"pmean|/ mesh",
    },
}
