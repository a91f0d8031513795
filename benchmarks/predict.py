"""What `labs predict` takes for a network that was never counted, and for one that was: seconds of the whole command.

python benchmarks/predict.py [--runs 5] [--model ResNet101]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from statistics import median


def seconds(model, cache):
    """Wall time of one prediction for 512 workers, with the facts of networks kept in the folder `cache`."""
    command = [
        sys.executable,
        "-m",
        "labs",
        "predict",
        "--model",
        model,
        "--machine",
        "p100-ethernet25",
        "--workers",
        "512",
        "--local_batch",
        "64",
        "--json",
    ]
    begin = time.perf_counter()
    subprocess.run(command, env=os.environ | {"LABS_CACHE": cache}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs of each")
    parser.add_argument("--model", default="ResNet101", help="a network of keras.applications")
    options = parser.parse_args()
    first, again = [], []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as cache:
            first.append(seconds(options.model, cache))
            again.append(seconds(options.model, cache))
    for name, times in (("the first time", first), ("again", again)):
        print(
            f"labs predict --model {options.model}, 512 workers, {name}: {median(times):.3g} s "
            f"({min(times):.3g} to {max(times):.3g}, {options.runs} runs)"
        )


if __name__ == "__main__":
    main()
