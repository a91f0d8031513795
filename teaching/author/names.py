"""docs/students/labs.md: the names of `labs` that notebooks and scripts use, a line each, from their docstrings.

A name stands there because two sources in solutions/ use it; nobody lists it.
"""

import ast
import re
from collections import Counter
from pathlib import Path

from labs.blanks import BuildError

PAGE = "docs/students/labs.md"
HEAD = """# The names of `labs`

What more than one notebook or script uses of the helper package. `help(jobs.run)` shows the whole description of a
name, with its parameters and errors.
"""


def page(root) -> dict[str, str]:
    """{PAGE: its text}; nothing for a course without `labs` of its own. Raises BuildError for a name without a
    description."""
    rows = {}
    for (module, name), sources in sorted(used(root).items()):
        about = _about(root, module, name)
        if not about:
            raise BuildError(f"{module}.{name}, which a source in solutions/ uses, has no description.")
        if sources > 1:
            rows.setdefault(module, []).append(f"- `{name}`: {about}\n")
    parts = [f"\n## {module}\n\n{''.join(lines)}" for module, lines in rows.items()]
    return {PAGE: HEAD + "".join(parts)} if rows else {}


def used(root) -> Counter[tuple[str, str]]:
    """{(module, name): number of sources} of all that the sources of notebooks and scripts take from `labs`."""
    counts = Counter()
    for source in [*Path(root).glob("solutions/*.py"), *Path(root).glob("solutions/scripts/*.py")]:
        nodes, modules, names = [*ast.walk(ast.parse(source.read_text(encoding="utf-8")))], {}, set()
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "labs":
                for imported in node.names:
                    names.add((node.module, imported.name))
                    modules[imported.asname or imported.name] = f"{node.module}.{imported.name}"
        for dotted in (ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)):
            first, _, rest = dotted.partition(".")
            if first in modules:
                names.add(tuple(f"{modules[first]}.{rest}".rsplit(".", 1)))
        counts.update(name for name in names if _about(root, *name) is not None)  # else a folder, or another thing
    return counts


def _about(root, module, name):
    """What a name is, in one sentence: of its docstring, or of the comment in the line of a constant, else ""; None
    where the module has no such name."""
    text = _text(root, module)
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return _sentence(node)
        if isinstance(node, ast.Assign) and name in re.findall(r"\w+", ast.unparse(node.targets)):
            return text.splitlines()[node.lineno - 1].partition("  # ")[2]
        for imported in node.names if isinstance(node, ast.ImportFrom) else ():
            if name == (imported.asname or imported.name) or imported.name == "*":
                if not str(node.module).startswith("labs"):
                    listed = re.search(rf"(?m)^{name}  +(.+)$", text)  # in the docstring of the module
                    return listed[1] if listed else f"`{node.module}.{imported.name}`"
                original = name if imported.name == "*" else imported.name
                about = _about(root, node.module, original) if node.module != module else None
                if about is not None:
                    return about
    return None


def _sentence(node):
    """The first sentence of a docstring, in one line."""
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return re.split(r"(?<=[.;]) +(?=[A-Z(])", " ".join(text.split()))[0]


def _text(root, module):
    """The text of a module; "" where there is none."""
    base = Path(root, module.replace(".", "/"))
    paths = [path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()]
    return paths[0].read_text(encoding="utf-8") if paths else ""
