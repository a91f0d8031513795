"""Settings of JupyterLab in the course's environment (its etc/jupyter): the first notebook, no network at run time, and
terminals that find `labs`, `uv`, `horovodrun` and `mpiexec`."""

import os
import sys
from pathlib import Path
from shutil import which

c = get_config()  # noqa: F821

# Without a terminal of its own, the server would start login shells, which forget the environment's PATH.
os.environ["LABS_ENV"] = sys.prefix
if which("bash"):
    terminal = Path(__file__).with_name("terminal.sh")
    c.ServerApp.terminado_settings = {"shell_command": ["bash", "--rcfile", str(terminal), "-i"]}

# The list of installable extensions would be fetched from PyPI. News and update checks: labconfig/page_config.json.
c.LabApp.extension_manager = "readonly"

FIRST = "notebooks/00_start_here.ipynb"
if Path(FIRST).is_file():
    c.LabApp.default_url = f"/lab/tree/{FIRST}"
c.ServerApp.allow_root = True  # in containers
