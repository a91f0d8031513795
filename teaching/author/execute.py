"""Run All: execute a notebook in a kernel of this very Python, and make its outputs fit to be kept."""

import os
import re
import textwrap
from pathlib import Path

from labs.blanks import BuildError

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ONEDNN = re.compile(r"(WARNING: All log messages before absl.*\n)?I\d{4} .* port\.cc:\d+\] oneDNN custom op.*\n")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_INTERACTIVE = "[interactive: run this cell to use it]"


def execute(notebook, folder: Path | str, name: str = "notebook", timeout: int = 1200, env: dict | None = None) -> None:
    """Execute all code cells of a notebook, in place, with `folder` as working directory.

    The kernel is ipykernel of `sys.executable` whatever kernels a user has installed; the environment is
    handed on as it is, with what `env` adds to it. `timeout` is in seconds per cell.
    Raises BuildError with the cell, its source and the traceback at the first cell that fails.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, CellExecutionError

    started = []
    client = NotebookClient(
        notebook,
        AsyncKernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[])),
        extra_arguments=["--log-level=ERROR"],
        on_cell_start=lambda cell, cell_index: started.append(cell_index),
        resources={"metadata": {"path": str(folder)}},
        timeout=timeout,
        startup_timeout=120,
        record_timing=False,
        store_widget_state=False,
    )
    try:
        client.execute(env={**os.environ, **(env or {})}, cleanup_kc=True)
    except (CellControlSignal, RuntimeError) as error:
        index = started[-1] if started else 0
        cell = notebook.cells[index]
        said = f"{error}\n{cell.source}"
        if isinstance(error, CellExecutionError):  # whose text holds the source
            said = f"{error.ename}: {error.evalue}\n{error}"
        text = textwrap.indent(_ESCAPE.sub("", said).strip(), "    ").lstrip()
        raise BuildError(f"{name}: cell {index + 1} (id {cell.get('id')}) failed: {text}") from None


def clean(notebook, root: Path | str) -> None:
    """Make outputs independent of the way they arrived, in place.

    Consecutive pieces of one stream become one, carriage returns are applied as a terminal does, widgets (which need a
    kernel) become what they show without one or, where that is nothing, a line of text, paths below `root` or the home
    folder lose that beginning, and TensorFlow's lines that oneDNN is on are left out.
    """
    from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

    here, home = re.escape(str(Path(root).resolve())), re.escape(str(Path.home()))

    def neutral(text: str) -> str:
        text = _ONEDNN.sub("", text)
        text = re.sub(rf"{here}(?![\w.-])", ".", re.sub(rf"{here}/", "", text))
        return re.sub(rf"{home}(?=/)", "~", text) if len(home) > 1 else text

    for place, cell in enumerate(notebook.cells):
        CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, place)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if data.pop(_WIDGET, None) and "text/html" not in data:
                data.clear()
                data["text/plain"] = _INTERACTIVE
            if "text" in output:
                output.text = neutral(_settled(output.text))
            data |= {kind: neutral(of) for kind, of in data.items() if kind.startswith("text/") and isinstance(of, str)}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("text") != ""]


def _settled(text: str) -> str:
    """Text without the escape codes of a terminal, but for colours."""
    return _ESCAPE.sub(lambda code: code[0] if code[0].endswith("m") else "", text.replace("\r", ""))
