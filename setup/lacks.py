"""Says what the course needs and this Python's environment lacks, in a few words; nothing if it is complete.

Run by `make` with the Python of the active environment: conda's, or a site's.
"""

import sys
from importlib import metadata, util
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036, run by any Python
    sys.exit("its Python is older than 3.11")
try:
    from packaging.requirements import Requirement
except ImportError:
    sys.exit("packaging is missing")
import tomllib

HERE = Path(__file__).resolve().parents[1]
project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
lacks = []
for requirement in map(Requirement, [*project["dependencies"], "labs"]):
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        lacks.append(f"{requirement.name} is missing")
        continue
    if not requirement.specifier.contains(version, prereleases=True):
        lacks.append(f"{requirement.name} is {version}")
labs = util.find_spec("labs")
if labs and labs.origin and not Path(labs.origin).resolve().is_relative_to(HERE):
    lacks.append("labs is that of another folder")
if not util.find_spec("tensorflow"):
    lacks.append("tensorflow is missing")
if lacks:
    more = f" and {len(lacks) - 3} more" if len(lacks) > 3 else ""
    sys.exit(", ".join(lacks[:3]) + more)
