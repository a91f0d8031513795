"""JupyterLab as `make lab` starts it, and a notebook of it in a real browser."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import psutil
from tree import ROOT, clean_environment, tracked
from waiting import until

CALL = re.compile(r"^(?:\w+ = )?(?:widgets\.explore|game\.show)\(", re.MULTILINE).search


def chromium():
    """Path of the browser: the program that $CHROMIUM names, else `chromium`; None where there is none."""
    return shutil.which(os.environ.get("CHROMIUM") or "chromium")


def missing():
    """What this machine lacks for these tests, and what to do, as one line; None if nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "Playwright is not installed here: `.venv/bin/uv sync --locked --inexact --group browser`"
    if not chromium():
        return "Chromium is not installed here: as root, `apt-get install chromium` (Debian), or name one in $CHROMIUM"
    return None


def cells(name):
    """The cells of student notebook `name` as (type, text)."""
    found = json.loads((ROOT / f"notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def widgets():
    """{name of a student notebook that calls widgets.explore: numbers of the cells}."""
    names = (path.stem for path in sorted(Path(ROOT, "notebooks").glob("*.ipynb")))
    called = {
        name: [n for n, (kind, text) in enumerate(cells(name)) if kind == "code" and CALL(text)] for name in names
    }
    return {name: numbers for name, numbers in called.items() if numbers}


def copy_course(folder):
    """The working tree's files that git tracks or would track, copied to `folder`."""
    for name in tracked("--cached", "--others", "--exclude-standard"):
        Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, Path(folder, name))


@contextlib.contextmanager
def server(folder, token=""):
    """`make lab` on the course tree in `folder`: gives the address. At its end none of its processes is left.

    It imports the tree's own labs, with the packages of this Python; settings and runtime files stay out of yours.
    """
    with tempfile.TemporaryDirectory() as own:
        log = Path(own, "log")
        places = {f"JUPYTER_{name}_DIR": f"{own}/{name}" for name in ("CONFIG", "DATA", "RUNTIME")}
        places |= {"IPYTHONDIR": f"{own}/ipython", "LABS_PRESET": "test", "LABS_RUNS": "runs"}
        environment = clean_environment(**places, PYTHONPATH=str(folder), UV_PROJECT_ENVIRONMENT=sys.prefix)
        options = f"--no-browser --port=0 --IdentityProvider.token={token} --LabApp.expose_app_in_browser=True"
        command, quiet = ["make", "-o", "setup", "lab", f"ARGS={options}"], subprocess.DEVNULL
        with open(log, "w") as out:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdin=quiet, stdout=out, stderr=subprocess.STDOUT
            )
        try:
            until(lambda: process.poll() is not None or address(places["JUPYTER_RUNTIME_DIR"]))
            if process.poll() is not None or not (url := address(places["JUPYTER_RUNTIME_DIR"])):
                raise RuntimeError("JupyterLab does not answer:\n" + log.read_text())
            yield url
        finally:
            started = [] if process.poll() is not None else psutil.Process(process.pid).children(recursive=True)
            process.terminate()
            process.wait(300)
            _, left = psutil.wait_procs(started, 120)
            for each in left:
                each.kill()
            assert not left, f"these processes outlived their server: {left}"


def address(runtime):
    """Address of the one server that keeps its files in the folder `runtime`, None while it does not answer."""
    with contextlib.suppress(OSError, ValueError):  # no file yet, half of it, no answer
        (told,) = Path(runtime).glob("jpserver-*.json")
        url = f"http://127.0.0.1:{json.loads(told.read_text())['port']}"
        with urllib.request.urlopen(f"{url}/api", timeout=60) as answer:  # which needs no token
            return url if answer.status == 200 else None
    return None


@contextlib.contextmanager
def browser():
    """Chromium without a window (playwright.sync_api.Browser).

    While it is open this thread has a running event loop: nothing else here may start one (asyncio.run, nbclient).
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), timeout=300_000)
        yield opened
        opened.close()


# These run in the page. [execution counts of the code cells with these numbers, or of all; texts of error outputs],
# from the model that JupyterLab saves: on the page an error looks like any text on stderr.
STATE = """numbers => {
  const every = jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model)
  const cells = every.filter((model, number) => !numbers || numbers.includes(number))
  const code = cells.filter(model => model.type === 'code' && model.sharedModel.getSource().trim())
  const outputs = code.flatMap(({outputs}) => Array.from({length: outputs.length}, (_, n) => outputs.get(n).toJSON()))
  return [code.map(model => model.executionState === 'idle' ? model.executionCount : null),
          outputs.filter(one => one.output_type === 'error').map(one => `${one.ename}: ${one.evalue}`)]
}"""
# Cells that are run while the kernel's connection is being made are not run at all; the indicator says idle already.
IDLE = """() => {
  const context = window.jupyterapp?.shell.currentWidget?.sessionContext, kernel = context?.session?.kernel
  return context?.isReady && kernel?.connectionStatus === 'connected' && kernel.status === 'idle'
      && document.querySelector('.jp-Notebook-ExecutionIndicator[data-status=idle]') !== null
}"""
WRONG = ".jp-Notebook [role=alert], .jp-Notebook .jupyter-widgets-error-widget, .jp-Dialog"


class Notebook:
    """A student notebook, or one of another folder of the course, opened in JupyterLab.

    outside: what it asked of other machines, as addresses. counts: execution counts, see `run`.
    """

    def __init__(self, browser, url, name, folder="notebooks"):
        self.name, self.outside, self.counts = name, [], None
        self.page = browser.new_page(viewport={"width": 1366, "height": 768})
        self.page.set_default_timeout(300_000)  # ms, also of going to a page: for what never comes
        server = re.escape(url.partition("//")[2])
        own = re.compile(rf"(https?|ws)://{server}/|data:|blob:|about:|chrome(-extension)?:")  # the last: to show a PDF
        for event in ("request", "websocket"):
            self.page.on(event, lambda asked: own.match(asked.url) or self.outside.append(asked.url))
        self.page.goto(f"{url}/lab/workspaces/{name}/tree/{folder}/{name}.ipynb?reset")
        self.idle()

    def idle(self):
        self.page.wait_for_function(IDLE, polling=100)

    def cell(self, number):
        return self.page.locator(f".jp-Notebook .jp-Cell[data-windowed-list-index='{number}']")

    def menu(self, bar, entry):
        """Choose from a menu, such as "Run", "Run All Cells"."""
        self.page.locator(".lm-MenuBar-itemLabel").get_by_text(bar, exact=True).click()
        self.page.locator(".lm-Menu-itemLabel").get_by_text(entry, exact=True).click()

    def run(self, numbers=None, seconds=1500):
        """Run All Cells, or the cells with these numbers in their order, and wait for the end or for an error.

        Then `counts` holds the execution counts of these code cells, None for what did not run to its end.
        """
        if numbers is None:
            self.menu("Run", "Run All Cells")
        for number in numbers or []:
            self.cell(number).locator(".jp-InputPrompt").click()
            self.menu("Run", "Run Selected Cell")
        done = f"some => {{ const [counts, errors] = ({STATE})(some); return errors.length || counts.every(Number) }}"
        self.page.wait_for_function(done, arg=numbers, polling=200, timeout=1000 * seconds)
        self.idle()
        self.counts = self.page.evaluate(STATE, numbers)[0]

    def problems(self):
        """Error outputs, alerts, dialogs, and widgets that could not be shown, as texts."""
        return self.page.evaluate(STATE, None)[1] + self.page.locator(WRONG).all_inner_texts()
