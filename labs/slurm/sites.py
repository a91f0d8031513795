"""A site: what its nodes have, which rules its scheduler keeps, how Python starts there. One TOML file describes it.

slurm/sites/<site>.toml         what everybody may know; slurm/sites/template.toml explains every line
slurm/sites/<site>.local.toml   what is yours (account, QOS, folders); not in the repository
"""

import os
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

LAUNCHERS = ("srun", "horovodrun", "mpiexec")
# Personal settings: key in <site>.local.toml -> the environment variable that says the same, and goes before the file.
PERSONAL = {
    "account": "SBATCH_ACCOUNT",
    "qos": "SBATCH_QOS",
    "container": "LABS_CONTAINER",
    "data": "LABS_DATA",
    "python": "LABS_PYTHON",
}
# Section -> key -> (type, must it be there); lists: [type of the elements].
_KEYS = {
    "": {"name": (str, True), "about": (str, True)},
    "scheduler": {"partition": (str, False), "account": (bool, False), "qos": (bool, False), "time_max": (str, True)},
    "node": {"count": (int, True), "gpus": (int, True), "cpus": (int, True), "threads_per_core": (int, False)},
    "cpus_per_gpus": {},
    "job": {"preset": (str, True), "workers": ([int], True), "nodes": (int, True), "time": (str, True)},
    "software": {
        "modules": ([str], False),
        "python": ([str], True),
        "launcher": (str, True),
        "launcher_options": ([str], False),
        "interface": (str, False),
    },
    "paths": {"data": (str, False), "scratch": (str, False)},
}
_WORDS = {str: "a text in quotes", bool: "true or false", int: "a whole number"}


class SiteError(ValueError):
    """A site's file cannot be used; the message names the file and the line's key, and says what to write."""


@dataclass(frozen=True)
class Site:
    """A site as its file says. cpus: CPUs of a node as SLURM counts them; cpus_per_gpus: {GPUs per node: (least, most)
    CPUs per node}; workers: those of the scripts on one node, in turn; nodes: of the script over several nodes;
    time: a job's limit as text; time_max: the site's longest, in minutes; python: words of the command that starts
    Python; personal: account, QOS and folders, as far as the environment or <site>.local.toml says them."""

    id: str
    name: str
    about: str
    partition: str | None
    account: bool
    qos: bool
    time_max: float
    nodes_max: int
    gpus: int
    cpus: int
    threads_per_core: int
    cpus_per_gpus: dict
    preset: str
    workers: tuple
    nodes: int
    time: str
    modules: tuple
    python: tuple
    launcher: str
    launcher_options: tuple
    interface: str | None
    data: str | None
    scratch: str | None
    personal: dict = field(default_factory=dict, compare=False)

    def cpus_for(self, gpus):
        """(least, most) CPUs per node for a job with that many GPUs per node; without a rule (1, all of them)."""
        return self.cpus_per_gpus.get(gpus, (1, self.cpus))


def find_root(start=None):
    """The course's top folder: from `start` (default: the working directory) upwards the first with slurm/sites, else
    the one that holds this package. Raises SiteError where there is none."""
    start = Path(start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
        if (folder / "slurm" / "sites").is_dir():
            return folder
    raise SiteError("There is no folder slurm/sites here or above: go to the folder of the course and try again.")


def default():
    """The site to use where none is named: $LABS_SITE, else `local`."""
    return os.environ.get("LABS_SITE") or "local"


def names(root=None):
    """Ids of all sites, in alphabetical order."""
    files = (Path(root or find_root()) / "slurm" / "sites").glob("*.toml")
    return sorted(file.stem for file in files if file.stem != "template" and not file.stem.endswith(".local"))


def load(id=None, root=None):
    """The Site with this id (default: the one in use).

    Raises SiteError: no such site, an unknown or missing key, a wrong type or value.
    """
    root, id = Path(root or find_root()), id or default()
    path = root / "slurm" / "sites" / f"{id}.toml"
    if id not in names(root):
        raise SiteError(
            f"No site is called {id!r}: there are {', '.join(names(root)) or 'none'}. For a new one copy "
            "slurm/sites/template.toml."
        )
    where = f"slurm/sites/{id}.toml"
    table = _read(path, where)
    values = _checked(table, where)
    personal = {key: os.environ[name] for key, name in PERSONAL.items() if os.environ.get(name)}
    local = path.with_suffix(".local.toml")
    if local.exists():
        personal = _personal(_read(local, f"slurm/sites/{local.name}"), f"slurm/sites/{local.name}") | personal
    return Site(id=id, personal=personal, **values)


def script(name, id=None):
    """Path of a site's batch script, from the working directory: the complete one in solutions/, else the student's.

    name: such as "ResNet50.sh"; id: of the site (default: the one in use). Raises SiteError if there is none.
    """
    for folder in (Path.cwd(), find_root()):
        path = folder / "slurm" / (id or default()) / name
        if path.exists():
            return Path(os.path.relpath(path))
    raise SiteError(
        f"There is no slurm/{id or default()}/{name}. The sites are {', '.join(names())}; to choose one: "
        "export LABS_SITE=<site>."
    )


def minutes(text):
    """Minutes in a time of SLURM's ("30", "30:00", "1:00:00", "1-12", "1-12:30:00"), as a float; None if it is none."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", str(text).strip())
    if not match:
        return None
    days, *rest = match.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is not None:  # days-hours[:minutes[:seconds]]
        hours, mins, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, mins, seconds = parts
    else:  # minutes[:seconds]
        hours, (mins, seconds) = 0, [*parts, 0][:2]
    return int(days or 0) * 1440 + hours * 60 + mins + seconds / 60


def _read(path, where):
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise SiteError(f"{where} cannot be read: {problem}. A line is `key = value`, texts are in quotes.") from None


def _personal(table, where):
    for key, value in table.items():
        if key not in PERSONAL or not isinstance(value, str):
            raise SiteError(f"{where}: {key} is not known there; write texts for {', '.join(PERSONAL)}.")
    return table


def _checked(table, where):
    """The values of a site's file as fields of a Site."""
    flat = {"": {key: value for key, value in table.items() if not isinstance(value, dict)}}
    flat |= {key: value for key, value in table.items() if isinstance(value, dict)}
    found = {}
    for section, values in flat.items():
        if section not in _KEYS:
            raise SiteError(f"{where}: there is no section [{section}]; known are {', '.join(filter(None, _KEYS))}.")
        if section == "cpus_per_gpus":
            continue
        for key, value in values.items():
            name = f"{section}.{key}".lstrip(".")
            if key not in _KEYS[section]:
                raise SiteError(f"{where}: {name} is not known; in [{section}] stand {', '.join(_KEYS[section])}.")
            _typed(value, _KEYS[section][key][0], f"{where}: {name}")
            found[name] = value
    for section, keys in _KEYS.items():
        for key, (_, needed) in keys.items():
            name = f"{section}.{key}".lstrip(".")
            if needed and name not in found:
                raise SiteError(f"{where}: {name} is missing; slurm/sites/template.toml says what it is.")
    rule = _rule(flat.get("cpus_per_gpus", {}), found, where)
    _sensible(found, where)
    rename = {"count": "nodes_max"}
    fields = {rename.get(name.split(".")[-1], name.split(".")[-1]): value for name, value in found.items()}
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    optional = {
        "partition": None,
        "account": False,
        "qos": False,
        "threads_per_core": 1,
        "modules": (),
        "launcher_options": (),
        "interface": None,
        "data": None,
        "scratch": None,
    }
    return optional | fields | {"time_max": minutes(found["scheduler.time_max"]), "cpus_per_gpus": rule}


def _typed(value, kind, name):
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise SiteError(f"{name} must be a list, such as [{'1, 2' if kind[0] is int else chr(34) * 2}].")
        for element in value:
            _typed(element, kind[0], f"{name}, {element!r}:")
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise SiteError(f"{name} must be {_WORDS[kind]}, not {value!r}.")


def _rule(table, found, where):
    rule = {}
    for gpus, span in table.items():
        name, gpus_there, cpus = f"{where}: cpus_per_gpus.{gpus}", found["node.gpus"], found["node.cpus"]
        if not gpus.isdigit() or not 1 <= int(gpus) <= gpus_there:
            raise SiteError(f"{name}: the key is a number of GPUs, from 1 to the {gpus_there} of a node.")
        _typed(span, [int], name)
        if len(span) != 2 or not 1 <= span[0] <= span[1] <= cpus:
            raise SiteError(f"{name} must be [least, most] CPUs, at most the {cpus} of a node, not {span}.")
        rule[int(gpus)] = tuple(span)
    return rule


def _sensible(found, where):
    from labs import presets

    for key in ("scheduler.time_max", "job.time"):
        if minutes(found[key]) is None:
            raise SiteError(f"{where}: {key} = {found[key]!r} is no time of SLURM's; write hours:minutes:seconds.")
    if minutes(found["job.time"]) > minutes(found["scheduler.time_max"]):
        raise SiteError(f"{where}: job.time is longer than scheduler.time_max, so no job would start.")
    if found["software.launcher"] not in LAUNCHERS:
        raise SiteError(
            f"{where}: software.launcher must be {', '.join(LAUNCHERS)}, not {found['software.launcher']!r}."
        )
    if found["job.preset"] not in presets.PRESETS:
        raise SiteError(
            f"{where}: job.preset must be one of {', '.join(presets.PRESETS)}, not {found['job.preset']!r}."
        )
    if not found["job.workers"] or min(found["job.workers"]) < 1:
        raise SiteError(f"{where}: job.workers must name at least one number of workers, such as [1, 2, 4].")
    if not found["software.python"]:
        raise SiteError(f'{where}: software.python must hold the command that starts Python, such as ["python"].')
    for key in ("paths.data", "paths.scratch"):
        if found.get(key, "$").startswith(("/", "~")):
            raise SiteError(
                f"{where}: {key} is a path of one machine or person; name an environment variable, such as "
                '"$LABS_DATA".'
            )
