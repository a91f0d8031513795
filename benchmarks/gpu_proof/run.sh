#!/bin/sh
# Runs gpu_proof from its packed folder, with Keras on the JAX of this machine's Python 3.12; needs no network.
#     sh run.sh [options of gpu_proof]      such as --out DIR --part steps --preset test
# PYTHON: the Python that has JAX (python3). GPU_PROOF_ENV: where the environment is made (/tmp/gpu-proof-env).
set -e
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
env=${GPU_PROOF_ENV:-${TMPDIR:-/tmp}/gpu-proof-env}
if [ ! -e "$env/ready" ]; then
  "$python" -c 'import sys, jax; print("Python", sys.version.split()[0], "JAX", jax.__version__)'
  rm -rf "$env"
  "$python" -m venv --without-pip --system-site-packages "$env"
  # If this Python is itself that of an environment, its packages are not the system's: name them.
  "$python" - "$("$env/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'PYTHON'
import pathlib, site, sys
own = [path for path in site.getsitepackages() if pathlib.Path(path).is_dir()]
text = "".join(f"import site; site.addsitedir({path!r})\n" for path in own)
pathlib.Path(sys.argv[1], "beside.pth").write_text(text)
PYTHON
  "$env/bin/python" -m pip install --quiet --no-index --no-cache-dir --disable-pip-version-check \
    --root-user-action=ignore --find-links "$here/wheels" --requirement "$here/requirements.txt"
  touch "$env/ready"
fi
exec "$env/bin/python" "$here/benchmarks/gpu_proof" --engine jax "$@"
