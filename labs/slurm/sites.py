"""A site: what its nodes have, which rules its scheduler keeps, how Python starts there. One TOML file describes it.

slurm/sites/<site>.toml         what everybody may know; slurm/sites/template.toml explains every line
slurm/sites/<site>.local.toml   what is yours (account, QOS, folders); not in the repository
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, create_model, model_validator

from labs import presets, schema
from labs.errors import UseError
from labs.schema import Section, wrong
from labs.slurm.directives import SUPPORTED, minutes

# Personal settings: key in <site>.local.toml -> the environment variable that says the same, and goes before the file.
PERSONAL = {
    "account": "SBATCH_ACCOUNT",
    "qos": "SBATCH_QOS",
    "container": "LABS_CONTAINER",
    "data": "LABS_DATA",
    "python": "LABS_PYTHON",
}


def _fits(pattern, says, kind=str):
    """The type of a text that may stand in a batch script as it is: all of it matches the pattern; `says`: what it must
    be."""

    def check(text):
        if not re.fullmatch(pattern, text):
            raise ValueError(f"= {text[:60]!r} {says}")
        return text

    return Annotated[kind, AfterValidator(check)]


Time = _fits(r"(\d+-)?\d+(:\d+){0,2}", "is not a time as SLURM writes it; write hours:minutes:seconds")
Minutes = Annotated[Time, AfterValidator(minutes)]
Count = Annotated[int, Field(gt=0, le=10**6)]
Id = _fits(r"[A-Za-z0-9_][\w.,+-]*", "must be a name of letters, digits and . , + - _")
Module = _fits(r"[A-Za-z0-9_][\w./+@:~=-]*", "must be a module's name and version, without what `module avail` adds")
Line = _fits(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,100}", "must be one line of at most 100 characters")
# What bash keeps as one word in double quotes, and a variable as ${NAME}, ${NAME:-default} or ${NAME:?what to do}.
_PLAIN = r"[^$`\"\\{}\x00-\x1f\x7f-\x9f]"
Word = _fits(
    rf"(?:{_PLAIN}|\$[A-Za-z_]\w*|\$\{{[A-Za-z_]\w*(?::?[-?]{_PLAIN}*)?\}})+",
    "must be one word of text and variables, such as ${NAME} or ${NAME:-default}, without commands, quotes, newlines",
)
Folder = _fits(r"[^/~].*", 'is a path of one machine or person; name an environment variable: "$LABS_DATA"', Word)


class Scheduler(Section):
    """account, qos: must a job name one? time_max: the site's longest job, in minutes."""

    partition: Id | None = None
    account: bool = False
    qos: bool = False
    time_max: Minutes


class SiteNode(Section):
    """cpus: of a node, as SLURM counts them; nodes_max: how many nodes there are."""

    nodes_max: Count = Field(alias="count")
    gpus: int = Field(ge=0, le=1000)
    cpus: Count
    threads_per_core: Count = 1


class SiteJob(Section):
    """workers: those of the scripts on one node, in turn; nodes: of the script over several nodes; time: the limit."""

    preset: Literal[tuple(presets.PRESETS)]
    workers: list[Count] = Field(min_length=1, max_length=100)
    nodes: Count
    time: Time


class SiteSoftware(Section):
    """python: words of the command that starts Python."""

    modules: list[Module] = []
    python: list[Word] = Field(min_length=1)
    launcher: Literal[tuple(SUPPORTED)]
    launcher_options: list[Word] = []
    interface: Id | None = None


class Paths(Section):
    """Folders, as environment variables."""

    data: Folder | None = None
    scratch: Folder | None = None


class SiteFile(Section):
    """All of slurm/sites/<site>.toml."""

    name: Line
    about: str
    scheduler: Scheduler
    node: SiteNode
    cpus_per_gpus: dict[str, list[int]] = {}
    job: SiteJob
    software: SiteSoftware
    paths: Paths = Paths()

    @model_validator(mode="after")
    def _parts_agree(self):
        gpus_there, cpus_there = self.node.gpus, self.node.cpus
        for gpus, span in self.cpus_per_gpus.items():
            key = f"cpus_per_gpus.{gpus}"
            if not gpus.isdigit() or not 1 <= int(gpus) <= gpus_there:
                raise wrong(key, f"is not known: the key is a number of GPUs, from 1 to the {gpus_there} of a node")
            if len(span) != 2 or not 1 <= span[0] <= span[1] <= cpus_there:
                raise wrong(key, f"must be [least, most] CPUs, at most the {cpus_there} of a node, not {span}")
        if (minutes(self.job.time) or 0) > float(self.scheduler.time_max):
            raise wrong("job.time", "is longer than scheduler.time_max, so no job would start")
        if self.job.nodes > self.node.nodes_max:
            raise wrong("job.nodes", f"is more than the {self.node.nodes_max} of node.count")
        if gpus_there and max(self.job.workers) > gpus_there:
            raise wrong("job.workers", f"has more than the {gpus_there} GPUs of a node")
        return self


_fields: dict[str, Any] = {key: (str | None, None) for key in PERSONAL}
Personal = create_model("Personal", __base__=Section, **_fields)


class Site(Paths, SiteSoftware, SiteJob, SiteNode, Scheduler):
    """A site as its file says, all sections side by side. cpus_per_gpus: {GPUs per node: [least, most] CPUs per node};
    personal: account, QOS and folders, as far as the environment or <site>.local.toml says them."""

    id: str
    name: str
    about: str
    cpus_per_gpus: dict[int, list[int]]
    personal: dict[str, str]

    def cpus_for(self, gpus):
        """The site's rule for the cores (SLURM: CPUs) of a job with that many GPUs per node: (least, most) per node;
        without a rule (1, all of them)."""
        return tuple(self.cpus_per_gpus.get(gpus, (1, self.cpus)))


def find_root(start=None):
    """The folder of slurm/sites: from `start` (default: the working directory) upwards the first with it, else the one
    that holds this package. The course of a student's files is labs.course.find_course. Raises UseError where there is
    none."""
    start = Path(start or Path.cwd()).resolve()
    for folder in (start, *start.parents, Path(__file__).resolve().parents[2]):
        if (folder / "slurm" / "sites").is_dir():
            return folder
    raise UseError("There is no folder slurm/sites here or above: go to the folder of the course and try again.")


def default():
    """The site to use where none is named: $LABS_SITE, else `local`."""
    return os.environ.get("LABS_SITE") or "local"


def names(root=None):
    """Ids of all sites, in alphabetical order."""
    files = (Path(root or find_root()) / "slurm" / "sites").glob("*.toml")
    return sorted(file.stem for file in files if file.stem != "template" and not file.stem.endswith(".local"))


def load(id=None, root=None):
    """The Site with this id (default: the one in use).

    Raises UseError: no such site, an unknown or missing key, a wrong type or value.
    """
    root, id = Path(root or find_root()), id or default()
    path = root / "slurm" / "sites" / f"{id}.toml"
    if id not in names(root):
        raise UseError(
            f"No site is called {id!r}: there are {', '.join(names(root)) or 'none'}. For a new one copy "
            "slurm/sites/template.toml."
        )
    if not re.fullmatch(r"[A-Za-z0-9_][\w.+-]*", id):
        raise UseError(f"slurm/sites/{id}.toml: the name of a site's file has only letters, digits and . + - _.")
    file = _read(path, SiteFile)
    local = path.with_suffix(".local.toml")
    personal = _read(local, Personal).model_dump(exclude_none=True) if local.exists() else {}
    personal |= {key: os.environ[name] for key, name in PERSONAL.items() if os.environ.get(name)}
    sections = (file.scheduler, file.node, file.job, file.software, file.paths)
    parts = {key: value for section in sections for key, value in section}
    cpus = {int(gpus): span for gpus, span in file.cpus_per_gpus.items()}
    return Site.model_construct(id=id, name=file.name, about=file.about, cpus_per_gpus=cpus, personal=personal, **parts)


def _read(path, model):
    return schema.read(model, path, f"slurm/sites/{path.name}", UseError, "slurm/sites/template.toml")


def script(name):
    """Path of a site's batch script, from the working directory.

    The one of the site in use is looked for in slurm/ of the working directory, so in solutions/ the complete one is
    found; then in the course's. name: such as "ResNet50.sh". Raises UseError if there is none.
    """
    for folder in (Path.cwd(), find_root()):
        path = folder / "slurm" / default() / name
        if path.exists():
            return Path(os.path.relpath(path))
    raise UseError(
        f"There is no slurm/{default()}/{name}. The sites are {', '.join(names())}; to choose one: "
        "export LABS_SITE=<site>."
    )
