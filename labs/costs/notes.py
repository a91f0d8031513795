"""The notes on a fit and on a prediction; notes.toml has their words."""

from labs import files

_TEXTS = files.beside(__file__)


def note(name: str, /, **gaps) -> str:
    """The note of this name, with the {gaps} of its sentence filled."""
    return _TEXTS[name].format(**gaps)
