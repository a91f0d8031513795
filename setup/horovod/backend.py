"""Builds Horovod: fetches its published source, checks it, corrects it, and hands it to setuptools (PEP 517).

It is compiled for TensorFlow and, where MPI is found, MPI, both as installed where it is built, and for Gloo, which is
part of it. With HOROVOD_GPU_OPERATIONS=NCCL and nvcc it is compiled for GPUs too. Any HOROVOD_* variable of Horovod's
guide wins over what is chosen here. A wheel is kept in the user's cache: the next checkout on this machine with the
same TensorFlow, MPI, compiler and corrections does not compile again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata, util
from pathlib import Path

import patch_ng
from setuptools.build_meta import __legacy__ as setuptools  # Horovod has a setup.py and no pyproject.toml

VERSION = "0.28.1"
SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"
HERE = Path(__file__).resolve().parent
PATCHES = sorted((HERE / "patches").glob("*.patch"))
LIBRARY = Path("horovod", "tensorflow")  # where in site-packages the compiled library lies

get_requires_for_build_wheel = lambda config_settings=None: []  # noqa: E731, all stand in pyproject.toml


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build Horovod's wheel in `wheel_directory`; returns its file name."""
    target = Path(wheel_directory).resolve()
    with tempfile.TemporaryDirectory(prefix="horovod-") as folder:
        os.environ.update(_choices(Path(folder)))
        kept = _cache() / _key()
        if found := sorted(kept.glob("*.whl")):
            print(f"Horovod was compiled before for the same versions: {found[0]}")
            shutil.copy(found[0], target)
            return found[0].name
        before = Path.cwd()
        os.chdir(_source(Path(folder)))
        try:
            name = setuptools.build_wheel(str(target), config_settings)
        finally:
            os.chdir(before)
    _keep(target / name, kept)
    return name


def _source(folder):
    """The corrected source, as a folder."""
    wanted = folder / "requirements.txt"
    wanted.write_text(f"horovod=={VERSION} --hash=sha256:{SHA256}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes"]
    subprocess.run([*pip, "--no-build-isolation", "--dest", folder, "--requirement", wanted], check=True)
    shutil.unpack_archive(folder / f"horovod-{VERSION}.tar.gz", folder)  # no `filter`: it came with Python 3.11.4
    source = folder / f"horovod-{VERSION}"
    for patch in PATCHES:
        changes = patch_ng.fromfile(str(patch))
        if not changes or not changes.apply(strip=1, root=str(source)):
            raise SystemExit(f"{patch.name} does not fit Horovod {VERSION}: nothing was built.")
    return source


def _choices(folder):
    """{name: value} of the environment variables that Horovod's setup reads, where they are not set yet."""
    runpath = ["../../../.."]  # from LIBRARY to the environment's lib/, where the wheel of MPICH puts libmpi
    found = {"HOROVOD_WITH_TENSORFLOW": "1", "HOROVOD_WITH_GLOO": "1", "MAKEFLAGS": "-j4"}
    found |= {"HOROVOD_WITHOUT_PYTORCH": "1", "HOROVOD_WITHOUT_MXNET": "1"}
    if _version("mpich"):
        found["HOROVOD_WITH_MPI"] = "1"
    if os.environ.get("HOROVOD_GPU_OPERATIONS") == "NCCL" and (nccl := _nccl()):
        # The wheel of NCCL has the library under its full name only; the linker looks for libnccl.so.
        (folder / "libnccl.so").symlink_to(next((nccl / "lib").glob("libnccl.so.*")))
        found |= {"HOROVOD_NCCL_INCLUDE": str(nccl / "include"), "HOROVOD_NCCL_LIB": str(folder)}
        found |= {"HOROVOD_NCCL_LINK": "SHARED"}
        runpath.append(os.path.relpath("nvidia/nccl/lib", LIBRARY))
    found["LDFLAGS"] = " ".join(f"-Wl,-rpath,'$ORIGIN/{path}'" for path in runpath)
    return {name: value for name, value in found.items() if name not in os.environ}


def _nccl():
    """The folder of NCCL's wheel, or None."""
    spec = util.find_spec("nvidia")
    folders = [Path(folder, "nccl") for folder in (spec.submodule_search_locations if spec else [])]
    return next((folder for folder in folders if (folder / "include" / "nccl.h").is_file()), None)


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _key():
    """A name for all that goes into a wheel: source, corrections, Python, TensorFlow, MPI, compilers, choices."""
    parts = [SHA256, *(file.read_text() for file in (Path(__file__), *PATCHES)), sysconfig.get_platform(), sys.version]
    parts += [f"{name} {_version(name)}" for name in ("tensorflow", "tensorflow-cpu", "mpich", "nvidia-nccl-cu12")]
    for program in (os.environ.get("CXX", "c++"), "mpicxx", "nvcc"):
        path = shutil.which(program)
        said = path and subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        parts.append(f"{program} {said}")
    parts += [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(("HOROVOD_", "CXXFLAGS", "LDFLAGS"))
        and name not in ("HOROVOD_NCCL_INCLUDE", "HOROVOD_NCCL_LIB")
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(home, "labs", f"horovod-{VERSION}")


def _keep(wheel, folder):
    """Keep the wheel for the next checkout, whole or not at all; a home that cannot be written is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{wheel.name}.{os.getpid()}"
        shutil.copy(wheel, part)
        part.replace(folder / wheel.name)
    except OSError as problem:
        print(f"The compiled Horovod is not kept for other checkouts ({problem}).")
