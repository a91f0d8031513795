"""`make gpu-pack`: what a machine with Python 3.12 and JAX lacks to run gpu_proof, in one folder; no network there.

    python benchmarks/gpu_proof/pack.py [--out build/gpu-pack]

wheels/ holds Keras and what it and labs need beside JAX, in the versions of uv.lock. labs and benchmarks/gpu_proof lie
beside it, and run.sh, which makes an environment on that machine beside the packages that it has, and hands its options
to gpu_proof.
Prints the sizes, and fails above 64 MiB.
"""

import argparse
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 64 * 2**20  # bytes
# What run.sh asks for; the machine's own packages serve where they fit.
ASKED = ("keras", "pydantic", "psutil", "tabulate", "nvidia-ml-py")
# And what these need, without what comes with JAX (numpy, scipy, ml-dtypes, opt-einsum).
NEEDED = (
    "absl-py",
    "annotated-types",
    "h5py",
    "markdown-it-py",
    "mdurl",
    "namex",
    "optree",
    "packaging",
    "pydantic-core",
)
NEEDED += ("pygments", "rich", "typing-extensions", "typing-inspection")
PLATFORMS = [f"manylinux_2_{n}_x86_64" for n in (39, 34, 31, 28, 27, 26, 24, 17, 12, 5)]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu-pack")
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    locked = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    versions = {each["name"]: each["version"] for each in locked}
    pins = [f"{name}=={versions[name]}" for name in (*ASKED, *NEEDED)]
    # uv has no `download`: it lends pip for it.
    pip = [
        "uv",
        "run",
        "--no-project",
        "--isolated",
        "--with",
        "pip",
        "--python",
        sys.executable,
        "python",
        "-m",
        "pip",
    ]
    target = ["--no-deps", "--only-binary=:all:", "--python-version=3.12", "--implementation=cp"]
    target += [f"--platform={name}" for name in PLATFORMS]
    (out / "wheels").mkdir(parents=True)
    subprocess.run([*pip, "download", "--quiet", *target, "--dest", str(out / "wheels"), *pins], check=True, cwd=out)
    tracked = subprocess.run(
        ["git", "ls-files", "labs", "lessons", "benchmarks/gpu_proof"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.split("\n")
    for name in filter(None, tracked):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, out / name)
    (out / "requirements.txt").write_text("".join(f"{name}=={versions[name]}\n" for name in ASKED))
    shutil.copy(Path(__file__).with_name("run.sh"), out)
    total = 0
    for part in sorted(out.iterdir()):
        size = sum(path.stat().st_size for path in [part, *part.rglob("*")] if path.is_file())
        total += size
        print(f"{size / 2**20:8.2f} MiB  {part.name}")
    print(f"{total / 2**20:8.2f} MiB  {out}")
    return 0 if total <= MOST else "The folder is larger than 64 MiB."


if __name__ == "__main__":
    sys.exit(main())
