"""submission.zip: complete, with a manifest that agrees, and nothing of the machine that it was made on."""

import io
import json
import zipfile

import pytest
import reported

from labs import files, report
from labs.cli import main
from labs.course.release import digest
from labs.report import archive
from labs.report.private import hosts

SECRET = "zebediah"  # a user's name that stands nowhere else
HOST = "quokka17"
PIXELS = "iVBO/w0KG/go/AAAN+SUhE/UgAA/" * 12 + "=="  # what looks like paths, in base64


@pytest.fixture
def private(monkeypatch, tmp_path):
    """A course whose notebooks, scripts, logs and records hold paths, a user, a host, an account; its folder."""
    home = tmp_path / "home" / SECRET
    home.mkdir(parents=True)
    for name, value in (("HOME", home), ("USER", SECRET), ("LOGNAME", SECRET), ("SBATCH_ACCOUNT", "proj4711")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.setattr("socket.gethostname", lambda: f"{HOST}.cluster.example")
    root = reported.course(
        home / "course", {"T5": f"I, {SECRET}, ran it on {HOST}: {home}/course and https://e.org/a/b/c"}
    )
    runs = reported.study()
    for record in runs.values():
        record.command = [f"{home}/course/notebooks/scripts/ResNet50.py"]
    reported.keep(root, runs)
    log = f"Job 7 on {HOST}, GPUs 0\nModel ResNet50V2 1 workers\n{home}/data\nEpoch 1/1\n4/4 - 5s - loss: 1.5000\n"
    error = f'  File "{home}/course/notebooks/scripts/ResNet50.py", line 3\nValueError: {SECRET}@{HOST} cannot\n'
    files.write(root / "notebooks/runs/ResNet50_w1.out", log)
    files.write(root / "notebooks/runs/ResNet50_w1.err", error)
    files.write(root / "notebooks/scripts/ResNet50.py", f'import keras\nrate = 0.01\ndata = "{home}/data"\n')
    files.write(root / "slurm/local/ResNet50.sh", f"#!/bin/bash\n#SBATCH --account=proj4711\n#SBATCH --chdir={home}\n")
    output = {"output_type": "stream", "name": "stdout", "text": [f"{home}/course\n", f"{SECRET} on {HOST}\n"]}
    trace = {"ename": "OSError", "evalue": f"{home}/x", "traceback": [f"File {home}/x.py", f"OSError: {SECRET}"]}
    error = {"output_type": "error"} | trace
    picture = {"output_type": "display_data", "data": {"image/png": "aGVs/bG8v/d29y+/bGQ="}, "metadata": {}}
    shown = f'<p>{home}/x</p><img src="data:image/png;base64,{PIXELS}" alt="of {SECRET}">'
    picture["data"]["text/html"] = shown
    cells = [
        {"cell_type": "code", "source": f'open("{home}/x")', "outputs": [output, picture]},
        {"cell_type": "code", "source": "x", "outputs": [output | {"text": "y" * 1_000_000}]},
        {"cell_type": "code", "source": "z", "outputs": [error]},
        reported.answer("T4", "Largest: 256."),
    ]
    files.write(root / "notebooks/04_batch_and_rate.ipynb", reported.notebook(*cells))
    return root


def opened(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_nothing_tells_who_and_where(private, tmp_path):
    from pdf import Pdf

    made = report.make(tmp_path / "out", start=private)
    contents = opened(made.zip) | {"pdf text": Pdf(made.pdf).text.encode()}
    for word in (SECRET, HOST, "proj4711", str(tmp_path)):
        found = [name for name, content in contents.items() if word.encode() in content]
        assert found == [], word
    assert b"https://e.org/a/b/c" in contents["report.json"]


def test_what_is_not_private_stays(private, tmp_path):
    contents = opened(report.make(tmp_path / "out", start=private, name=SECRET).zip)
    notebook = json.loads(contents["notebooks/04_batch_and_rate.ipynb"])
    assert notebook["cells"][0]["outputs"][1]["data"]["image/png"] == "aGVs/bG8v/d29y+/bGQ="
    html = notebook["cells"][0]["outputs"][1]["data"]["text/html"]
    assert f'base64,{PIXELS}" alt="of <user>"' in html and html.startswith("<p><home>/")
    assert "characters are left out" in notebook["cells"][1]["outputs"][0]["text"]
    assert contents["notebooks/scripts/ResNet50.py"].startswith(b'import keras\nrate = 0.01\ndata = "<')
    assert contents["notebooks/runs/ResNet50_w2.out"] == (private / "notebooks/runs/ResNet50_w2.out").read_bytes()
    assert json.loads(contents["report.json"])["name"] == SECRET  # the student's own wish


def test_the_manifest_names_every_file_with_its_hash(private, tmp_path):
    contents = opened(report.make(tmp_path / "out", start=private).zip)
    manifest = json.loads(contents.pop("manifest.json"))["files"]
    assert set(manifest) == set(contents)
    assert [name for name, entry in manifest.items() if entry["sha256"] != digest(contents[name])] == []
    script = (private / "notebooks/scripts/ResNet50.py").read_bytes()
    assert manifest["notebooks/scripts/ResNet50.py"]["sha256_before_cleaning"] == digest(script)
    assert "sha256_before_cleaning" not in manifest["notebooks/01_basic_concepts.ipynb"]


def test_the_evidence_of_a_search_goes_along(private, tmp_path):
    """The line that says that memory ran out stands in its .err file."""
    for ending, text in {".maxbatch.json": "{}", ".out": "Trial batch 2: starts\n", ".err": "OOM when\n"}.items():
        files.write(private / f"notebooks/runs/maxbatch_ResNet50V2_32{ending}", text)
    contents = opened(report.make(tmp_path / "out", start=private).zip)
    assert contents["notebooks/runs/maxbatch_ResNet50V2_32.err"] == b"OOM when\n"
    assert {f"notebooks/runs/maxbatch_ResNet50V2_32{end}" for end in (".out", ".maxbatch.json")} <= set(contents)


def test_it_holds_all_that_the_report_rests_on(private, tmp_path):
    made = report.make(tmp_path / "out", start=private)
    names = set(opened(made.zip))
    wanted = {"report.pdf", "report.json", "report.schema.json", "manifest.json", "slurm/local/ResNet50.sh"}
    wanted |= {f"notebooks/{task.notebook}.ipynb" for task in made.report.tasks}
    wanted |= {f"notebooks/runs/{run.name}{end}" for run in made.report.runs for end in (".json", ".out", ".err")}
    wanted |= {log.file and f"notebooks/runs/{log.file}" for task in made.report.tasks for log in task.logs}
    wanted |= {script.file for task in made.report.tasks for script in task.scripts}
    assert wanted <= names and "notebooks/scripts/ResNet50.py" in wanted


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("node1", {"node1"}),
        ("n[1-3,7],gpu1", {"n1", "n2", "n3", "n7", "gpu1"}),
        ("jwb[0009-0011]", {"jwb0009", "jwb0010", "jwb0011"}),
    ],
)
def test_a_list_of_nodes_is_its_names(listed, names):
    assert hosts(listed) == names


def test_runs_that_lie_elsewhere_come_along(tmp_path):
    root = reported.course(tmp_path / "course", {"T5": "The speedup."})
    elsewhere = reported.keep(reported.course(tmp_path / "other"), reported.study()) / "notebooks/runs"
    made = report.make(tmp_path / "out", start=root, runs=elsewhere)
    names = opened(made.zip)
    assert [run.name for run in made.report.runs] == ["ResNet50_w1", "ResNet50_w2"]
    assert {"runs/ResNet50_w1.json", "runs/ResNet50_w2.out"} <= set(names)


def test_the_zip_has_no_dates_and_is_sorted():
    made = archive.zipped({"b": b"2", "a/c": b"1"})
    assert made == archive.zipped({"a/c": b"1", "b": b"2"})
    entries = zipfile.ZipFile(io.BytesIO(made)).infolist()
    assert [entry.filename for entry in entries] == ["a/c", "b"] and {e.date_time[0] for e in entries} == {1980}


def test_a_record_that_says_odd_things_of_script_and_dates_stops_no_report(tmp_path, capsys):
    from pdf import Pdf

    (record, _), runs = reported.study().values(), {}
    for number, mark in enumerate(("abc", "", "é" * 40, "0" * 64, "A" * 64, None, None), 1):
        runs[f"ResNet50_w{number}"] = reported.changed(record, name=f"ResNet50_w{number}", script_sha256=mark)
    runs["ResNet50_w1"].started, runs["ResNet50_w2"].finished = "2026-11-02T09:0é:00", ""
    root = reported.keep(reported.course(tmp_path / "course"), runs)
    path = root / "notebooks/runs/ResNet50_w7.json"
    files.write(path, path.read_text().replace('"script_sha256": null', '"script_sha256": 17'))
    assert main(["report", str(root), "--out", str(tmp_path / "out")]) == 0
    text = Pdf(tmp_path / "out/report.pdf").text
    assert text.count("no SHA-256") == 4 and "000000000000" in text and "not recorded" in text
    assert "2026-11-02 09:0é" in text and "ResNet50_w7" not in text  # a number there is no record
