"""labs.measure.maxbatch: the border is found by real steps, and its evidence is kept."""

import json
import re
from pathlib import Path

import pytest

from labs import cli, jobs
from labs.errors import LabsError, UseError
from labs.measure import maxbatch
from labs.measure.maxbatch import parse_memory

MIB = 2**20


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.more("a search with real steps, as in notebook 04")
def test_a_search_by_real_steps(tmp_path):
    result = maxbatch.search("SmallCNN", memory=96 * MIB, start=128, runs=tmp_path, show=False)
    trials, evidence = result["trials"], result["evidence"]
    assert [t["batch"] for t in trials] == [128 * 2**k for k in range(len(trials))] and len(trials) >= 2
    assert [t["fits"] for t in trials] == [True] * (len(trials) - 1) + [False]
    assert (result["largest"], result["fails"]) == (trials[-2]["batch"], trials[-1]["batch"])
    line = Path(evidence["file"]).read_text().splitlines()[evidence["line_number"] - 1]
    assert line.strip() == evidence["line"] and "OOM when allocating tensor with shape[" in line
    assert json.loads((tmp_path / "maxbatch_SmallCNN_32.maxbatch.json").read_text()) == result
    text = maxbatch.table(result)
    assert "SmallCNN at 32x32 on CPU under a memory budget, 0.0938 GiB for a step" in text
    fits = r"fits \([\d.]+ s a step, [\d.,]+ images/s\)"
    assert re.search(rf"^ +128  {fits}$[^$]*^ +{result['fails']}  out of memory$", text, re.M)
    assert f"largest batch that fits: {result['largest']}" in text and evidence["line"] in text


def test_memory_as_text_and_a_search_that_cannot_be_run(tmp_path):
    sizes = {"1GiB": 2**30, "1.5G": 3 * 2**29, "512MiB": 2**29, " 64 kB ": 2**16, "4096": 4096, "100B": 100, 4096: 4096}
    assert {text: parse_memory(text) for text in sizes} == sizes
    wrong = [({"memory": text}, "not an amount of memory.*1GiB") for text in (0, "-1GiB", "1TiB", "", "1 2", True, 0.2)]
    for options, says in [*wrong, ({"model": "ResNet50V2", "image_size": 16}, "32x32")]:
        with pytest.raises(UseError, match=says):
            maxbatch.search(**{"model": "SmallCNN", "runs": tmp_path / "runs"} | options)
    assert not (tmp_path / "runs").exists()


FAKE = """
import json, os, signal, sys
print("Device: pretended", flush=True)
print("Memory: 4096 bytes")
for batch in json.loads(sys.argv[1])["batches"]:
    print(f"Trial batch {{batch}}: starts", flush=True)
    if batch >= {border}:
        {end}
    print(f"Trial batch {{batch}}: fits in 0.001 s", flush=True)
"""
OOM = """print("OOM when allocating tensor with shape[1]", file=sys.stderr)
        print(f"Trial batch {batch}: out of memory"); sys.exit()"""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Let the process that tries be another program: all batches below `border` fit, then it does `end`."""
    start = jobs.start

    def pretend(border, end=OOM, **options):
        (tmp_path / "fake.py").write_text(FAKE.format(border=border, end=end))

        def started(*words, env, **more):
            # else the border would be another one in each run
            assert {"TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "MALLOC_ARENA_MAX"} <= set(env)
            return start(tmp_path / "fake.py", *words[2:], env=env, **more)

        monkeypatch.setattr(jobs, "start", started)
        found = maxbatch.search("SmallCNN", runs=tmp_path, show=False, **options)
        return found, (found["largest"], found["fails"])

    return pretend


def test_borders(pretend):
    found, border = pretend(1000, memory="512MiB", start=3, limit=7)  # is never reached
    assert border == (6, None) and found["evidence"] is None and found["memory"] == 4096
    assert [(t["batch"], t["fits"]) for t in found["trials"]] == [(3, True), (6, True)]
    found, border = pretend(1, start=16384, memory="48MiB")  # not even the start fits
    assert border == (None, 16384) and "OOM when allocating tensor" in found["evidence"]["line"]
    found, border = pretend(4, "os.kill(os.getpid(), signal.SIGKILL)")
    assert border == (2, 4) and found["evidence"] is None
    assert "no out-of-memory line was written" in maxbatch.table(found)


def test_a_search_that_breaks_off(pretend, tmp_path, capsys):
    with pytest.raises(LabsError, match="not for lack of memory.*a broken disk"):
        pretend(4, "raise RuntimeError('a broken disk')")
    (tmp_path / "fake.py").write_text("raise ImportError('no TensorFlow here')")
    for out, says in ((tmp_path, "no TensorFlow here"), (tmp_path / "fake.py/runs", "runs cannot be written")):
        assert cli.main(["maxbatch", "--model", "SmallCNN", "--out", str(out)]) == 1
        error = capsys.readouterr().err.strip().splitlines()[-1]
        assert says in error and "Traceback" not in error
