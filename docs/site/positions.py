"""Widgets on a page that has no kernel: what `widgets.explore` of a notebook shows, at some positions of each control.

The pictures are drawn by the same function when the site is made; static/positions.js moves between them.
"""

import ast
import base64
import builtins
import html
import inspect
import io
import json

from PIL import Image

from labs.blanks import BuildError, parse
from labs.show import widgets
from labs.show.figure import png

STOPS = 5  # positions of a control, at most
PAGE = 2_000_000  # bytes that the pictures of a page may take
SAYS = (
    "<strong>Recorded</strong>: drawn by the notebook's own function, at a few positions. Move one control at a time; "
    "the others return to their first position. In the notebook every position can be drawn."
)


def of(sources, wanted):
    """{index of a cell: HTML} for those of the texts of code cells that call `widgets.explore` and are `wanted`.

    Before a call the imports of the cells are executed, and the assignments of names that it needs. A call that needs
    more raises NameError.
    """
    trees, found, space = [parse(source) for source in sources], {}, {}
    for index, tree in [each for each in enumerate(trees) if each[0] in wanted]:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _explores(node)):
            before = [line for each in trees[: index + 1] for line in each.body]
            exec(_code([line for line in before if isinstance(line, ast.Import | ast.ImportFrom)]), space)
            _bind(call, before, space)
            draw = eval(ast.unparse(call.args[0]), space)
            found[index] = draw, {word.arg: eval(ast.unparse(word.value), space) for word in call.keywords}
    room = PAGE // len(found) if found else 0
    return {index: _html(f"w{index}", *each, room) for index, each in found.items()}


def _explores(call):
    return ast.unparse(call.func) == "widgets.explore"


def _bind(tree, before, space):
    """Execute what binds the names of a tree that are not known yet."""
    for name in sorted({n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} - {*space, *vars(builtins)}):
        binding = [line for line in before if isinstance(line, ast.Assign) and name in ast.unparse(line.targets)]
        if binding:
            _bind(binding[-1], before[: before.index(binding[-1])], space)
            exec(_code(binding[-1:]), space)


def _code(statements):
    return compile(ast.Module(statements, []), "notebook", "exec")


def _html(key, draw, controls, room):
    """Sliders and pictures of a widget, with as many positions as fit into `room` bytes."""
    first = {name: p.default for name, p in inspect.signature(draw).parameters.items()}
    made = {name: widgets.control(name, values, first.get(name)) for name, values in controls.items()}
    start = {name: widget.value for name, widget in made.items()}
    for most in range(STOPS, 0, -1):
        stops = {name: _stops(widget, most) for name, widget in made.items()}
        sliders = "".join(_slider(f"{key}-{name}", name, stops[name], start[name]) for name in made)
        shown = [(f"{key}-{name}", n, start | {name: v}) for name in made for n, v in enumerate(stops[name])]
        pictures = _picture("", 0, draw(**start)) + "".join(
            _picture(id, place, draw(**values)) for id, place, values in shown if values != start
        )
        text = f'<div class="positions"><p>{SAYS}</p>{sliders}{pictures}</div>'
        if len(text) <= room:
            return text
    raise BuildError(f"the pictures of {key} take more than {room} bytes")


def _stops(widget, most):
    """At most so many values of a control, in order, its own among them."""
    if hasattr(widget, "options"):
        values = list(widget.options)
    else:
        steps = round((widget.max - widget.min) / widget.step)
        values = [widget.min + step * widget.step for step in range(steps + 1)]
    own = min(range(len(values)), key=lambda place: values[place] != widget.value)
    places = {round(n * (len(values) - 1) / max(1, most - 1)) for n in range(most)}
    nearest = min(places, key=lambda place: abs(place - own))
    return [values[place] for place in sorted(places - {nearest} | {own})]


def _slider(id, name, stops, value):
    texts = [f"{stop:.4g}" if isinstance(stop, float) else str(stop) for stop in stops]
    at, told = stops.index(value), html.escape(json.dumps(texts))
    return (
        f'<p><label for="{id}">{html.escape(name.replace("_", " "))}</label> <input type="range" id="{id}" min="0" '
        f'max="{len(stops) - 1}" value="{at}" data-first="{at}" data-texts="{told}" aria-valuetext="{texts[at]}"> '
        f'<output for="{id}">{html.escape(texts[at])}</output></p>'
    )


def _picture(id, place, figure):
    """An image of few colours; that without `id` is there at first."""
    small, image = io.BytesIO(), Image.open(io.BytesIO(png(figure)))
    image.convert("RGB").quantize(64).save(small, "png", optimize=True)
    data, hidden = base64.b64encode(small.getvalue()).decode(), " hidden" if id else ""
    return f'<img alt="{html.escape(figure.alt)}" data-at="{id} {place}"{hidden} src="data:image/png;base64,{data}">'
