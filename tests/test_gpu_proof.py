"""benchmarks/gpu_proof: what was measured is kept, whatever happens to a case; a later call goes on. Nothing trains."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tree import ROOT

from benchmarks.gpu_proof import page, plan
from labs import costs

# In place of measures.py: cases that cost nothing.
MEASURES = """
import json, sys, time
from pathlib import Path
asked = json.loads(sys.argv[1])
name, work = asked["function"], Path(asked["runs"])
with (work / "started").open("a") as file:
    file.write(name + "\\n")
if name == "fails" and not (work / "mended").exists():
    sys.exit("ValueError: no such thing")
if name == "hangs" and not (work / "mended").exists():
    time.sleep(60)
Path(asked["result"]).write_text(json.dumps({"step_seconds": 0.5, "machine": {"cpu": "a", "cores": 2, "gpus": []},
  "versions": {"python": "3"}}))
"""
RUN = """
import sys
sys.path.insert(0, "tests")
from test_gpu_proof import call
from pathlib import Path
sys.exit(call(Path(sys.argv[1]), *sys.argv[2:]))
"""


def call(folder, *options):
    """main() of gpu_proof with four cheap parts and the programs of MEASURES."""
    proof = importlib.import_module("benchmarks.gpu_proof.__main__")
    (folder / "measures.py").write_text(MEASURES)
    given = proof.HERE, plan.parts
    proof.HERE = folder
    names = ("doctor", "fails", "hangs", "last")
    made = [plan.Part(name, f"about {name}", {"case": (name, {})}) for name in names]
    made.append(plan.Part("more", "about more", {"case": ("more", {})}, ("no_such_package",)))
    plan.parts = lambda sizes: made
    try:
        return proof.main(["--preset", "test", "--engine", "jax", "--out", str(folder / "out"), *options])
    finally:
        proof.HERE, plan.parts = given


def kept(folder):
    parts = json.loads((folder / "out/records.json").read_text())["parts"]
    return {name: part.get("left_out") or part["cases"]["case"] for name, part in parts.items()}


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", os.environ.get("KERAS_BACKEND", "tensorflow"))  # main() names another


@pytest.mark.slow
def test_a_case_that_fails_or_takes_too_long_says_why_and_the_next_call_measures_it_again(tmp_path):
    call(tmp_path, "--part", "doctor", "--part", "fails", "--part", "last")
    assert call(tmp_path, "--part", "hangs", "--limit", "1") == 1
    found = kept(tmp_path)
    states = [found[name]["state"] for name in ("doctor", "fails", "hangs", "last")]
    assert states == ["done", "failed", "out of time", "done"]
    assert "no such thing" in found["fails"]["reason"] and "1 s" in found["hangs"]["reason"]
    assert found["more"] == "no_such_package not installed here"
    (tmp_path / "out/work/mended").touch()
    assert call(tmp_path) == 0
    assert {case["state"] for name, case in kept(tmp_path).items() if name != "more"} == {"done"}
    assert "reason" not in kept(tmp_path)["fails"]
    started = _text(tmp_path / "out/work/started").split()
    assert [started.count(name) for name in ("doctor", "fails", "last")] == [1, 2, 1]
    with pytest.raises(SystemExit, match="give another --out"):
        call(tmp_path, "--preset", "gpu")


@pytest.mark.slow
def test_a_call_that_is_killed_loses_no_case_before_it(tmp_path):
    command = [sys.executable, "-c", RUN, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while time.monotonic() < end and "hangs" not in _text(tmp_path / "out/work/started"):
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert kept(tmp_path)["doctor"]["state"] == "done" and kept(tmp_path)["hangs"]["state"] == "running"
    (tmp_path / "out/work/mended").touch()
    time.sleep(0.5)  # its case ends with it
    assert call(tmp_path, "--minutes", "0.1") == 1  # no time for a case
    assert "in the middle" in kept(tmp_path)["hangs"]["reason"]
    assert call(tmp_path) == 0
    assert _text(tmp_path / "out/work/started").split().count("doctor") == 1


def _text(path):
    return path.read_text() if path.exists() else ""


def test_parts_that_need_tensorflow_come_last_and_every_case_has_its_function():
    from benchmarks.gpu_proof import measures

    for sizes in plan.PRESETS.values():
        parts = plan.parts(sizes)
        needs = ["tensorflow" in part.needs for part in parts]
        assert needs == sorted(needs) and parts[0].name == "doctor"
        assert all(callable(getattr(measures, of)) for part in parts for of, _ in part.cases.values())


def test_a_prediction_is_asked_of_the_machine_that_measures(tmp_path):
    from benchmarks.gpu_proof import measures

    for gpu, memory in (("NVIDIA H200", 141e9), ("NVIDIA H100 80GB HBM3", 80e9)):
        path = tmp_path / "gpu.toml"
        path.write_text(measures.machine_file(gpu))
        assert costs.load_machine(path).device.memory.value == memory


def test_the_page_says_that_no_gpu_was_there_and_what_is_kept():
    training = {"epochs": [{"seconds": 3.0}, {"seconds": 1.0}], "images_per_second": 1000.5, "step_seconds": 0.25}
    cases = {"A": {"state": "done", "seconds": 4.0, "result": training}}
    cases["B"] = {"state": "interrupted", "reason": "the machine | ended", "kept": training}
    ratio = {"of": "A / B", "ratio": 1.5, "interval": [1.4, 1.6]}
    cases["C"] = {"state": "done", "result": {"trials": {"8": 0.0025, "16": 0.004}, "ratios": [ratio]}}
    predicted = {"A": {"state": "done", "result": {"step_seconds": 0.5, "interval": [0.2, 0.9]}}}
    parts = {"predict": {"about": "before", "cases": predicted}, "steps": {"about": "steps", "cases": cases}}
    records = {"preset": "test", "engine": "jax", "parts": parts, "calls": [{"started": "now", "seconds": 60.0}]}
    text = "\n".join(page.lines(records))
    assert "no GPU (a rehearsal on the CPU)" in text and "1 calls, 1.0 minutes" in text
    assert "interval 0.2 to 0.9; measured then: 0.25" in text
    assert "| A | done | 4.0 | 2 epochs, the first 3 s, images per second 1000" in text
    assert "the machine / ended; kept: 2 epochs" in text
    assert "batch 8: 2.5 ms, batch 16: 4 ms" in text and "A / B 1.5 (1.4 to 1.6)" in text
