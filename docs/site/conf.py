"""How Sphinx builds the course's site. teaching.author.web collects the pages of an edition and starts Sphinx."""

import html
import json
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

import positions
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

from labs.checks import tasks

edition = "instructors" if tags.has("instructors") else "students"  # noqa: F821  (given by Sphinx)
project = "Training on many devices"
html_title = f"{project}: for {edition}"
language = "en"
html_theme = "sphinx_book_theme"
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],  # the search stands at the side
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("positions.js", {"defer": "defer"})]
templates_path = ["templates"]
html_use_index = html_domain_indices = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses to those of a folder
html_copy_source = html_show_sourcelink = html_show_copyright = html_show_sphinx = False

extensions = ["myst_nb", "sphinx.ext.autodoc"]
nb_execution_mode = "off"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
autodoc_mock_imports = ["tensorflow", "keras", "horovod"]
autodoc_member_order = "bysource"
default_role = "code"
html_math_renderer = "mathml"  # what browsers draw themselves: nothing is fetched


# ---- pages of the code, and the lists at the side -----------------------------------------------------

ROOM = "# {0}\n\n```{{eval-rst}}\n.. automodule:: {0}\n   :members:\n   :imported-members:\n```\n"
FILES = {
    "Scripts of the solutions": ("solutions/scripts/*.py", "solutions/slurm/*.sh"),
    "Sites": ("slurm/sites/*.toml",),
}
PARTS = {
    "Notebooks": ("notebooks/",),
    "For students": ("docs/students/", "docs/measured", "docs/not_run"),
    "For instructors": ("docs/instructors/", "CONTRIBUTING", "files/"),
    "The code": ("rooms/",),
}


def add_pages(app):
    """Pages of the rooms' doors and, for instructors, of scripts and the files of the sites; then all in the lists."""
    made, pages = {}, Path(app.srcdir)
    for package in ("labs", "lessons", "teaching") if edition == "instructors" else ("labs", "lessons"):
        rooms = () if package == "lessons" else sorted(ROOT.glob(f"{package}/*/__init__.py"))
        for path in (ROOT / package / "__init__.py", *rooms):
            name = path.parent.relative_to(ROOT).as_posix().replace("/", ".")
            made[f"rooms/{name}.md"] = ROOM.format(name)
    for title, patterns in FILES.items() if edition == "instructors" else ():
        listed = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
        kinds = {".py": "python", ".sh": "bash", ".toml": "toml"}
        made[f"files/{title.partition(' ')[0].lower()}.md"] = f"# {title}\n" + "".join(
            f"\n## {path.relative_to(ROOT)}\n\n~~~~{kinds[path.suffix]}\n{path.read_text(encoding='utf-8')}\n~~~~\n"
            for path in listed
        )
    for name, text in made.items():
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")
    every = sorted(p.relative_to(pages).as_posix() for end in ("md", "ipynb") for p in pages.rglob(f"*.{end}"))
    lists = ""
    for title, start in PARTS.items():
        listed = sorted((name for name in every if name.startswith(start)), key=lambda name: name != "rooms/labs.md")
        if listed:
            lists += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(listed) + "\n```\n"
    with open(pages / "index.md", "a", encoding="utf-8") as index:
        index.write(lists)


# ---- notebooks ----------------------------------------------------------------------------------------

NOTE = {
    "students": "This is the notebook as you get it. Its figures and tables appear when you run it.",
    "instructors": "This is the solution, as it was executed on 2 cores without a GPU.",
}

# The first graph of notebook 01 that moves, as a cell.
ON_THE_FRONT = """
from labs.show import widgets
from lessons.basic_concepts import pictures
widgets.explore(pictures.speedups, workers=[4, 16, 64, 256, 1024], serial=[0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
"""


def read_notebook(app, name, source):
    """The front page's graph; in a notebook's text positions of widgets, links to others, a note about the outputs."""

    def linked(text):
        def link(found):
            return f"[{found[0]}](/notebooks/{found[1]}.ipynb)" if f"notebooks/{found[1]}" in known else found[0]

        return re.sub(r"(?<!\[)`(\d\d[a-z]?_\w+)`", link, text)

    known = app.env.found_docs
    if name == "index":
        (drawn,) = positions.of([ON_THE_FRONT], {0}).values()
        source[0] = source[0].replace("## Start\n", f"```{{raw}} html\n{drawn}\n```\n\n## Start\n", 1)
    if not name.startswith("notebooks/"):
        source[0] = linked(source[0])
        return
    page = json.loads(source[0])
    code = [cell for cell in page["cells"] if cell["cell_type"] == "code"]
    wanted = {index for index, cell in enumerate(code) if cell["outputs"]}
    for index, drawn in positions.of(["".join(cell["source"]) for cell in code], wanted).items():
        code[index]["outputs"][-1]["data"] = {"text/html": drawn}
    heading = ""
    for number, cell in enumerate(page["cells"]):
        if cell["cell_type"] == "markdown":
            found = re.findall(r"(?m)^#+ (.+)$", "".join(cell["source"]))
            heading = html.escape(found[-1].replace("`", "")) if found else heading
        for output in cell.get("outputs", ()):
            for kind, text in output.get("data", {}).items():
                if kind == "text/html":
                    output["data"][kind] = _captioned("".join(text), heading)
        if cell["cell_type"] == "markdown":
            text = linked("".join(cell["source"]))
            cell["source"] = (
                text if number else re.sub(r"(\A# .*\n)", rf"\1\n:::{{note}}\n{NOTE[edition]}\n:::\n", text)
            )
    source[0] = json.dumps(page)


def _captioned(text, heading):
    """HTML in which each table's caption begins with the heading of its section."""

    def caption(found):
        return f"{found[1]}<caption>{': '.join(filter(None, (heading, found[2])))}</caption>"

    return re.sub(r"(<table[^>]*>)(?:<caption[^>]*>(.*?)</caption>)?", caption, text)


# ---- docstrings of the code ---------------------------------------------------------------------------


def as_rest(app, what, name, thing, options, lines):
    """A docstring as reStructuredText: columns of names become a list, other indented lines stay as they are."""
    made = []
    for line in lines:
        line = re.sub(r"`[^`]*`|([*|]|(?<=\w)_(?!\w))", lambda found: "\\" + found[0] if found[1] else found[0], line)
        column = re.fullmatch(r"\s*(\S.*?) {2,}(\S.*)", line)
        if column:
            made += [
                *([""] if made and not made[-1].startswith("    ") else []),
                f"``{column[1]}``",
                f"    {column[2]}",
            ]
        elif line.startswith("    "):
            made += ["| " + line.strip()] if made and made[-1][:2] == "| " else ["", "| " + line.strip()]
        else:
            made += ["", line] if made and made[-1][:2] in ("| ", "  ") and line else [line]
    lines[:] = made


def of_the_room(app, what, name, thing, skip, options):
    """Leave out what a door imports from elsewhere."""
    room = app.env.current_document.docname.removeprefix("rooms/")
    return skip or not str(getattr(thing, "__module__", "")).startswith(room)


# ---- pages --------------------------------------------------------------------------------------------


def as_mathml(writer, node):
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext().replace(r"\dots", r"\ldots"), as_block=block)
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def captions(app, tree, name):
    """A table without a caption gets that of its section's heading, for those who hear the page."""
    for number, table in enumerate(tree.findall(nodes.table), 1):
        table["ids"] = table["ids"] or [f"table-{number}"]
        heading = table
        while heading.parent and not isinstance(heading, nodes.section):
            heading = heading.parent
        if not any(isinstance(child, nodes.title) for child in table) and isinstance(heading, nodes.section):
            table.insert(0, nodes.title("", heading[0].astext()))


def tables(app, page, template, context, tree):
    """The heads of Markdown's tables are those of their columns, and names of code may break within them."""
    body = re.sub(r'<th (?=class="head)', '<th scope="col" ', context.get("body") or "")
    context["body"] = re.sub(
        r'(?<=<span class="pre">)[^<]+', lambda found: re.sub(r"([._/(=])(?=\w)", r"\1<wbr>", found[0]), body
    )


def learning_resource(app, name, template, context, tree):
    """What catalogues of teaching material read (schema.org/LearningResource)."""
    lesson = next((each for each in tasks.lessons().values() if name == f"notebooks/{each.notebook}"), None)
    told = {
        "@context": "https://schema.org",
        "@type": "LearningResource",
        "name": re.sub(r"<[^>]*>", "", context.get("title", project)),
        "description": tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["description"],
        "license": "https://spdx.org/licenses/CC-BY-4.0",  # of the texts, see LICENSE
        "inLanguage": "en",
        "learningResourceType": "notebook" if lesson else "course",
        "educationalLevel": "university",
        "isAccessibleForFree": True,
        "teaches": ["distributed training", "TensorFlow MirroredStrategy", "Horovod", "SLURM"],
    }
    told |= {"timeRequired": f"PT{lesson.minutes}M"} if lesson else {}
    context["learning_resource"] = json.dumps(told, indent=1).replace("<", "\\u003c")


def setup(app):
    app.add_html_math_renderer("mathml", (as_mathml, None), (as_mathml, None))
    app.connect("config-inited", lambda app, config: add_pages(app))
    app.connect("source-read", read_notebook)
    app.connect("autodoc-process-docstring", as_rest)
    app.connect("autodoc-skip-member", of_the_room)
    app.connect("doctree-resolved", captions)
    app.connect("html-page-context", tables)
    app.connect("html-page-context", learning_resource)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
