"""Answers to the self-checks of 27_other_engines that have a judge of their own."""

MESH, IMAGES = 'Mesh(np.array(devices), ("data",))', "jax.device_put(images, by_rows)"
MEAN = 'jax.tree.map(lambda g: jax.lax.psum(g, "data") / mesh.size, gradient)'
VALUE = 'value = jax.lax.psum(value, "data") / mesh.size'

STYLES = [
    ("engines.6", MESH, 'jax.make_mesh((len(devices),), ("data",), devices=devices)'),
    ("engines.7", MEAN, 'jax.lax.pmean(gradient, "data")', VALUE, 'value = jax.lax.pmean(value, "data")'),
]
MISTAKES = [
    ("engines.6", MESH, 'Mesh(np.array(devices[:1]), ("data",))'),
    ("engines.6", MESH, 'Mesh(np.array(devices), ("batch",))', 'mesh, P("data")', 'mesh, P("batch")'),
    ("engines.6", IMAGES, "images"),
    ("engines.6", IMAGES, "jax.device_put(images, NamedSharding(mesh, P(None, 'data')))"),
    ("engines.7", MEAN, MEAN.replace(" / mesh.size", "")),
    ("engines.7", VALUE, "pass"),
    ("engines.7", MEAN, '{n: jax.lax.psum(g, "data") / mesh.size if n != "b1" else g for n, g in gradient.items()}'),
    ("engines.7", MEAN, MEAN.replace(" / mesh.size", " / mesh.size * jax.numpy.sign(g)")),
]
