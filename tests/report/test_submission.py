"""submission.zip: complete, with a manifest that agrees, and nothing of the machine that it was made on."""

import json
import zipfile
from types import SimpleNamespace

import pytest
import reported
from pdf import Pdf

from labs import files, report
from labs.files import digest
from labs.report.private import Private, hosts

SECRET = "zebediah"  # a user's name that stands nowhere else
HOST = "quokka17"
PIXELS = "iVBO/w0KG/go/AAAN+SUhE/UgAA/" * 12 + "=="  # what looks like paths, in base64
SEARCH = {".maxbatch.json": "{}", ".out": "Trial batch 2: starts\n", ".err": "OOM when\n"}


@pytest.fixture
def private(monkeypatch, tmp_path):
    """A course whose notebooks, scripts, logs and records hold paths, a user, a host, an account; its folder."""
    home = tmp_path / "home" / SECRET
    home.mkdir(parents=True)
    for name, value in (("HOME", home), ("USER", SECRET), ("LOGNAME", SECRET), ("SBATCH_ACCOUNT", "proj4711")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("socket.gethostname", lambda: f"{HOST}.cluster.example")
    answer = f"I, {SECRET}, ran it on {HOST}: {home}/course and https://e.org/a/b/c"
    root, runs = reported.course(home / "course", {"T5": answer}), reported.study()
    for record in runs.values():
        record.command = [f"{home}/course/notebooks/scripts/ResNet50.py"]
    reported.keep(root, runs)
    output = {"output_type": "stream", "name": "stdout", "text": [f"{home}/course\n", f"{SECRET} on {HOST}\n"]}
    trace = {"ename": "OSError", "evalue": f"{home}/x", "traceback": [f"File {home}/x.py", f"OSError: {SECRET}"]}
    shown = f'<p>{home}/x</p><img src="data:image/png;base64,{PIXELS}" alt="of {SECRET}">'
    data = {"image/png": "aGVs/bG8v/d29y+/bGQ=", "text/html": shown}
    picture = {"output_type": "display_data", "data": data, "metadata": {}}
    shows = [output, picture, {"output_type": "error"} | trace]
    cells = [{"cell_type": "code", "source": f'open("{home}/x")', "outputs": shows}, reported.answer("T4", "256.")]
    log = f"Job 7 on {HOST},jwb[0017-0018], GPUs 0\nModel ResNet50V2 1 workers\n{home}/data\n"
    log += "Epoch 1/1\n4/4 - 5s - loss: 1.5000\n"
    error = (
        f'  File "{home}/course/notebooks/scripts/ResNet50.py", line 3\nValueError: {SECRET}@{HOST} cannot\n'
        f'  File "/opt/{SECRET}/lib/python3.11/site-packages/keras/src/trainer.py", line 8\n'
        f"cannot open {home}/img.png or /elsewhere/asmith/x.npy or ~asmith/y/z\n"
        f"mail j.doe@uni.example, at 10.0.3.17, {SECRET.upper()} on {HOST.upper()} ({HOST}.example.org)\n"
        "srun --account=proj4711 --qos debug -A proj4711\nslurmstepd: error: *** STEP 1.0 ON jwb0017 CANCELLED AT\n"
    )
    batch = f"#!/bin/bash\n#SBATCH --account=proj4711\n#SBATCH --chdir={home}\n"
    for name, text in {
        "notebooks/runs/ResNet50_w1.out": log,
        "notebooks/runs/ResNet50_w1.err": error,
        "notebooks/scripts/ResNet50.py": f'import keras\nrate = 0.01\ndata = "{home}/data"\n',
        "slurm/local/ResNet50.sh": batch,
        "notebooks/04_batch_and_rate.ipynb": reported.notebook(*cells),
        **{f"notebooks/runs/maxbatch_ResNet50V2_32{ending}": text for ending, text in SEARCH.items()},
    }.items():
        files.write(root / name, text)
    return root


def opened(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_all_that_the_report_rests_on_goes_along_and_nothing_tells_who_and_where(private, tmp_path):
    made = report.make(tmp_path / "out", start=private)
    contents = opened(made.zip)
    told = b"".join(contents.values()) + Pdf(made.pdf).text.encode()
    secret = [SECRET, HOST, "proj4711", str(tmp_path), "asmith", "elsewhere", "10.0.3.17", "uni.example", "jwb00"]
    assert [word for word in secret if word.encode().lower() in told.lower()] == []
    error = contents["notebooks/runs/ResNet50_w1.err"].decode()
    kept = ['"<course>/notebooks/scripts/ResNet50.py", line 3', '"<path>/keras/src/trainer.py", line 8']
    assert [words for words in [*kept, "<home>/img.png or <path>/x.npy"] if words not in error] == []
    assert b"https://e.org/a/b/c" in contents["report.json"]
    notebook = json.loads(contents["notebooks/04_batch_and_rate.ipynb"])
    assert notebook["cells"][0]["outputs"][1]["data"]["image/png"] == "aGVs/bG8v/d29y+/bGQ="
    html = notebook["cells"][0]["outputs"][1]["data"]["text/html"]
    assert f'base64,{PIXELS}" alt="of <user>"' in html and html.startswith("<p><home>/")
    assert contents["notebooks/scripts/ResNet50.py"].startswith(b'import keras\nrate = 0.01\ndata = "<')
    assert contents["notebooks/runs/ResNet50_w2.out"] == (private / "notebooks/runs/ResNet50_w2.out").read_bytes()
    with zipfile.ZipFile(made.zip) as packed:
        assert {entry.date_time[0] for entry in packed.infolist()} == {1980}
    manifest = json.loads(contents["manifest.json"])["files"]
    assert {name: entry["sha256"] for name, entry in manifest.items()} == {
        name: digest(content) for name, content in contents.items() if name != "manifest.json"
    }
    script = (private / "notebooks/scripts/ResNet50.py").read_bytes()
    assert manifest["notebooks/scripts/ResNet50.py"]["sha256_before_cleaning"] == digest(script)
    assert "sha256_before_cleaning" not in manifest["notebooks/01_basic_concepts.ipynb"]
    wanted = {"report.pdf", "report.json", "slurm/local/ResNet50.sh"}
    wanted |= {f"notebooks/{task['notebook']}.ipynb" for task in made.report["tasks"]}
    wanted |= {f"notebooks/runs/ResNet50_w{n}{end}" for n in (1, 2) for end in (".json", ".out", ".err")}
    wanted |= {f"notebooks/runs/{log['file']}" for task in made.report["tasks"] for log in task["logs"]}
    wanted |= {script["file"] for task in made.report["tasks"] for script in task["scripts"]}
    wanted |= {f"notebooks/runs/maxbatch_ResNet50V2_32{ending}" for ending in SEARCH}
    assert wanted <= set(contents) and "notebooks/scripts/ResNet50.py" in wanted


def test_runs_that_lie_elsewhere_come_along_and_a_name_that_is_given_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("USER", SECRET)
    root = reported.course(tmp_path / "course", {"T5": "The speedup."})
    elsewhere = reported.keep(reported.course(tmp_path / "other"), reported.study()) / "notebooks/runs"
    monkeypatch.setenv("LABS_RUNS", str(elsewhere))
    made = report.make(tmp_path / "out", start=root, name=SECRET)
    contents = opened(made.zip)
    assert [run["name"] for run in made.report["runs"]] == ["ResNet50_w1", "ResNet50_w2"]
    assert {"runs/ResNet50_w1.json", "runs/ResNet50_w2.out"} <= set(contents)
    assert json.loads(contents["report.json"])["name"] == SECRET  # the student's own wish


def test_what_stays_plain_text_and_that_a_list_of_nodes_is_its_names(tmp_path, monkeypatch):
    monkeypatch.setenv("USER", "li")
    clean, words = (
        Private(tmp_path).log,
        "labs maxbatch --model ResNet50V2, Keras 3.15.1, 1/8 steps, 12 images/s, a/b/c",
    )
    assert clean(words) == words and clean("li_w1 of li: list, limit") == "<user>_w1 of <user>: list, limit"
    will = SimpleNamespace(pw_name="li", pw_gecos="Will A Smith,room 1,,")
    monkeypatch.setattr("pwd.getpwuid", lambda _: will)
    monkeypatch.setattr("socket.gethostname", lambda: "gpu.uni.example")
    told = "I will ask a smith for a GPU. Will A Smith"
    assert Private(tmp_path).text(told) == "I will ask a smith for a GPU. <user>"
    assert hosts("node1") == {"node1"} and hosts("n[1-3,7],gpu1") == {"n1", "n2", "n3", "n7", "gpu1"}
    assert hosts("jwb[0009-0011]") == {"jwb0009", "jwb0010", "jwb0011"}
