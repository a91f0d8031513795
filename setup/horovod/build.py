"""Builds Horovod's wheel: fetches the published source, checks it, corrects it, and hands it to setuptools.

    python setup/horovod/build.py FOLDER

with a Python that has what the group `compile` in pyproject.toml names. It is compiled for TensorFlow and, where MPI is
found, MPI, both as installed there, and for Gloo, which is part of it. With HOROVOD_GPU_OPERATIONS=NCCL and nvcc it is
compiled for GPUs too. With HOROVOD_PORTABLE=1 the wheel runs on other machines with the same TensorFlow, as the one
that the course brings. Any HOROVOD_* variable of Horovod's guide wins over what is chosen here.
"""

import os
import shutil
import subprocess
import sys
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
PORTABLE = os.environ.get("HOROVOD_PORTABLE") == "1"
PLATFORM = "manylinux_2_34_x86_64"  # the GLIBC that a portable wheel needs: Ubuntu 22.04, Debian 12, RHEL 9
# std::condition_variable::wait: from GCC 12 on a compiler takes a newer version of it, for which nothing else asks.
WAIT = "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"


def build_wheel(target):
    """Build Horovod's wheel in the folder `target`."""
    target, before = Path(target).resolve(), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="horovod-") as folder:
        os.environ.update(_choices(Path(folder)))
        os.chdir(_source(Path(folder)))
        try:
            name = setuptools.build_wheel(str(target))
        finally:
            os.chdir(before)
    if PORTABLE:  # its name says what TensorFlow it belongs to
        tags = [f"--platform-tag={PLATFORM}", f"--build={_version('tensorflow-cpu')}"]
        command = [sys.executable, "-m", "wheel", "tags", "--remove", *tags, str(target / name)]
        subprocess.run(command, check=True)


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
    if PORTABLE:  # without symbols, for every processor on which TensorFlow starts, and for the C++ library of GCC 11
        header = folder / "portable.h"
        header.write_text(f'__asm__(".symver {WAIT}, {WAIT}@GLIBCXX_3.4.11");\n')
        found["LDFLAGS"] += " -s"
        found["HOROVOD_BUILD_ARCH_FLAGS"] = f"-mavx -mf16c -include {header}"
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


if __name__ == "__main__":
    build_wheel(sys.argv[1])
