"""labs.measure.maxbatch: the border is found by real steps, is the same in every run, and its evidence is kept."""

import json
import re
from pathlib import Path

import pytest

from labs import cli, jobs, models
from labs.measure import maxbatch
from labs.measure.maxbatch import BatchError, SearchError, parse_memory

MIB = 2**20
BUDGET = dict(memory=96 * MIB, start=128, show=False)


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search with one bisection, and where its files are."""
    folder = tmp_path_factory.mktemp("search")
    return maxbatch.search("SmallCNN", bisect=1, runs=folder, **BUDGET), folder


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def doubling(result):
    return [trial for trial in result["trials"] if trial["batch"] & (trial["batch"] - 1) == 0]


def test_this_process_has_no_limit_afterwards(searched):
    import resource

    assert searched[0]["fails"]  # memory ran out, but not here
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY and len(bytearray(256 * MIB))


def test_largest_fits_and_the_next_fails(searched):
    result, _ = searched
    assert result["device"] == "CPU under a memory budget" and result["memory"] == 96 * MIB
    trials = doubling(result)
    assert [t["batch"] for t in trials] == [128 * 2**k for k in range(len(trials))]
    assert len(trials) >= 2 and [t["fits"] for t in trials] == [True] * (len(trials) - 1) + [False]
    assert all(t["seconds"] > 0 for t in trials if t["fits"]) and trials[-1]["seconds"] is None
    outcomes = {t["batch"]: t["fits"] for t in result["trials"]}
    assert outcomes[result["largest"]] and not outcomes[result["fails"]]


def test_bisection_halves_the_gap(searched):
    result, _ = searched
    last = doubling(result)[-1]["batch"]
    middle = last // 2 + last // 4
    assert result["trials"][-1]["batch"] == middle  # halfway between last / 2, which fits, and last, which fails
    assert result["fails"] - result["largest"] == last // 4
    assert middle in (result["largest"], result["fails"])


def test_evidence_is_the_line_of_the_err_file(searched):
    result, _ = searched
    evidence = result["evidence"]
    assert "OOM when allocating tensor with shape[" in evidence["line"]
    line = Path(evidence["file"]).read_text().splitlines()[evidence["line_number"] - 1]
    assert line.strip() == evidence["line"] and evidence["file"].endswith(".err")
    assert evidence["file"] in {trial["err"] for trial in result["trials"]}


def test_result_is_kept_beside_its_logs(searched):
    result, folder = searched
    assert json.loads((folder / "maxbatch_SmallCNN_32.maxbatch.json").read_text()) == result
    assert all(Path(t["out"]).is_file() and Path(t["err"]).is_file() for t in result["trials"])


def test_border_is_the_same_in_another_run(searched, tmp_path):
    again = maxbatch.search("SmallCNN", runs=tmp_path, **BUDGET)
    assert [(t["batch"], t["fits"]) for t in again["trials"]] == [
        (t["batch"], t["fits"]) for t in doubling(searched[0])
    ]


def test_table_tells_trials_border_and_evidence(searched):
    result, _ = searched
    text = maxbatch.table(result)
    assert "SmallCNN at 32x32 on CPU under a memory budget, 0.0938 GiB for a step" in text
    assert re.search(r"^ +128  fits \([\d.]+ s a step\)$", text, re.M)
    assert re.search(rf"^ +{result['fails']}  out of memory$", text, re.M)
    assert f"largest batch that fits: {result['largest']}" in text
    assert result["evidence"]["file"] in text and result["evidence"]["line"] in text
    assert "all of its memory" in maxbatch.table(result | {"memory": None, "device": "a GPU"})


# A search that cannot be run, or breaks off


def test_memory_as_text():
    for text, size in (
        ("1GiB", 2**30),
        ("512MiB", 2**29),
        ("1.5G", 3 * 2**29),
        (" 64 kB ", 2**16),
        ("4096", 4096),
        (4096, 4096),
        ("100B", 100),
    ):
        assert parse_memory(text) == size


def test_memory_that_is_no_amount(tmp_path):
    for memory in (0, -1, "0", "-1GiB", "much", "1TiB", "", "GiB", "1 2", "nan", True, 0.25):
        with pytest.raises(BatchError, match="not an amount of memory") as caught:
            maxbatch.search("SmallCNN", memory=memory, runs=tmp_path / "runs")
        assert "1GiB" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "runs").exists()


def test_batches_that_cannot_be_tried(tmp_path):
    for sizes in ({"start": 0}, {"start": -2}, {"start": 9, "limit": 8}, {"bisect": -1}):
        with pytest.raises(BatchError, match="cannot run"):
            maxbatch.search("SmallCNN", runs=tmp_path / "runs", **sizes)
    assert not (tmp_path / "runs").exists()


def test_network_that_does_not_exist(tmp_path):
    for model, size, says in (("ResNet51", 32, "Unknown model"), ("ResNet50V2", 16, "32x32")):
        with pytest.raises(models.ModelError, match=says):
            maxbatch.search(model, image_size=size, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_cannot_be_written(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["maxbatch", "--model", "SmallCNN", "--out", str(tmp_path / "file" / "runs")]) == 1
    error = capsys.readouterr().err
    assert "Cannot write into" in error and error.count("\n") == 1


FAKE = """
import json, os, signal, sys
border = {border}
batches = json.loads(sys.argv[1])["batches"]
print("Device: pretended", flush=True)
print("Memory: 4096 bytes")
for batch in batches:
    print(f"Trial batch {{batch}}: starts", flush=True)
    if batch >= border:
        {end}
    print(f"Trial batch {{batch}}: fits in 0.001 s", flush=True)
"""
OOM = """print("OOM when allocating tensor with shape[1]", file=sys.stderr)
        print(f"Trial batch {batch}: out of memory"); sys.exit()"""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Let the process that tries be another program: all batches below `border` fit, then it does `end`."""
    start = jobs.start

    def pretend(border, end):
        (tmp_path / "fake.py").write_text(FAKE.format(border=border, end=end))
        monkeypatch.setattr(jobs, "start", lambda *a, **k: start(tmp_path / "fake.py", *a[2:], **k))

    return pretend


def test_limit_that_is_never_reached(pretend, tmp_path):
    pretend(1000, OOM)
    result = maxbatch.search("SmallCNN", memory="512MiB", start=3, limit=7, runs=tmp_path, show=False)
    assert [(t["batch"], t["fits"]) for t in result["trials"]] == [(3, True), (6, True)]
    assert (result["largest"], result["fails"], result["evidence"]) == (6, None, None)


def test_not_even_the_start_fits(pretend, tmp_path, capsys):
    pretend(1, OOM)
    arguments = "--model SmallCNN --memory 48MiB --start 16384 --json --out"
    assert cli.main(["maxbatch", *arguments.split(), str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["largest"], result["fails"]) == (None, 16384)
    assert "OOM when allocating tensor" in result["evidence"]["line"]


def test_bisection_goes_on_until_the_border_is_exact(pretend, tmp_path):
    pretend(77, OOM)
    result = maxbatch.search("SmallCNN", memory=4096, bisect=20, runs=tmp_path, show=False)
    assert (result["largest"], result["fails"]) == (76, 77)
    assert [t["batch"] for t in result["trials"][8:]] == [96, 80, 72, 76, 78, 77]
    assert Path(result["evidence"]["file"]).name == "maxbatch_SmallCNN_32_bisect6.err"


def test_trial_that_is_killed_counts_and_its_missing_evidence_is_said(pretend, tmp_path):
    pretend(4, "os.kill(os.getpid(), signal.SIGKILL)")
    result = maxbatch.search("SmallCNN", runs=tmp_path, show=False)
    assert (result["largest"], result["fails"], result["evidence"]) == (2, 4, None)
    assert "no out-of-memory line was written" in maxbatch.table(result)


def test_trial_that_fails_for_another_reason_is_no_border(pretend, tmp_path):
    pretend(4, "raise RuntimeError('a broken disk')")
    with pytest.raises(SearchError, match="not for lack of memory.*a broken disk"):
        maxbatch.search("SmallCNN", runs=tmp_path, show=False)


def test_search_without_a_trial(pretend, tmp_path, capsys):
    pretend(1, "")
    (tmp_path / "fake.py").write_text("raise ImportError('no TensorFlow here')")
    assert cli.main(["maxbatch", "--model", "SmallCNN", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "no TensorFlow here" in error.strip().splitlines()[-1] and "Traceback" not in error
