"""Does the suite notice? Plant faults, one at a time, and run the tests that should see them.

    python benchmarks/faults/plant.py                   all of faults.toml; build/faults.json keeps what came of each
    python benchmarks/faults/plant.py NAME NAME         these
    python benchmarks/faults/plant.py --missed --tests tests/results tests/show     those that nothing has caught so far

For whoever changes the suite or makes it quicker: what it caught before, it must catch afterwards. Run it in a clone of
its own, with its own environment: it writes each fault into the tree it stands in, and takes it out again.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "build/faults.json"
LIMIT = 600  # seconds, for the tests of one fault


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help="faults; without any all of them")
    parser.add_argument("--missed", action="store_true", help="only those that nothing has caught so far")
    parser.add_argument("--tests", nargs="+", help="run these tests in place of those that the fault names")
    args = parser.parse_args()
    faults = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))["fault"]
    known = [fault["name"] for fault in faults]
    if unknown := set(args.names) - set(known):
        parser.error(f"no fault is called {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the fault is taken out then, too
    results = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for fault in faults:
        name = fault["name"]
        if (args.names and name not in args.names) or (args.missed and results.get(name, {}).get("caught")):
            continue
        results[name] = planted(fault, args.tests or fault["tests"])
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(results, indent=1), encoding="utf-8")
        print(row(fault, results[name]), flush=True)
    print(f"\n{'fault':38} {'drawn':5} {'seconds':>7}  caught by")
    for fault in faults:
        print(row(fault, results.get(fault["name"])))
    missed = [name for name in known if not results.get(name, {}).get("caught")]
    print(f"{len(known) - len(missed)} of {len(known)} caught; not caught: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def row(fault, result):
    """A line of the table; result: None if the fault was not planted yet."""
    said = (result["caught"] or result.get("why", "MISSED")) if result else "not planted yet"
    return f"{fault['name']:38} {fault['drawn']:5} {result['seconds'] if result else 0:7.1f}  {said}"


def planted(fault, tests):
    """{caught: id of the first test that failed, or None; seconds; tests} with a fault in the tree.

    Ends the program where the file has changes that are not committed. `why` stands beside None where no test has run.
    """
    path, begin = ROOT / fault["file"], time.monotonic()
    if subprocess.run(["git", "status", "--porcelain", "--", fault["file"]], cwd=ROOT, capture_output=True).stdout:
        sys.exit(f"{fault['file']} has changes that are not committed: commit them, or plant in a clone.")
    text, old = path.read_bytes(), fault["old"].encode()
    if (count := text.count(old)) != 1:
        return {"caught": None, "seconds": 0.0, "tests": tests, "why": f"`old` stands {count} times in its file"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += [word for test in tests for word in shlex.split(test)]
    process = None
    with tempfile.TemporaryFile() as output:  # no pipe: what a test leaves running would keep it open
        try:
            path.write_bytes(text.replace(old, fault["new"].encode()))
            # A session of its own: at the limit, what the tests have started ends with them.
            streams = {"stdout": output, "stderr": subprocess.STDOUT, "start_new_session": True}
            process = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"COLUMNS": "400"}, **streams)
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            output.write(f"\nFAILED at the limit of {LIMIT} s\n".encode())
        finally:
            path.write_bytes(text)
            if process and process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
    result = {"caught": failed[1] if failed else None, "seconds": time.monotonic() - begin, "tests": tests}
    if not failed and process.returncode != 0:
        result["why"] = f"pytest ended with status {process.returncode}: {said.strip().splitlines()[-1:]}"
    return result


if __name__ == "__main__":
    sys.exit(main())
