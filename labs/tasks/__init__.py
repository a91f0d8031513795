"""The questions of the notebooks, one module for each; importing this registers all of them."""

from labs.tasks import nb00, nb01, nb01_more, nb02, nb02_more, nb03, nb04, nb05, nb06, nb06_steps, nb07, nb08, nb08_more  # noqa: F401
