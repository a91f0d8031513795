"""labs results with files as copied from a cluster: each run once, failures where they belong, and only what belongs
together divided."""

import json
import math
import os
from pathlib import Path

import pytest
from made_runs import log, write

from labs import cli, recorded, results
from labs.errors import LabsError

LOGS = Path(__file__).parents[1] / "data" / "logs"


def rows(*paths):
    """(file, workers, seconds, kind of failure) of each run."""
    found = results.load(paths)
    return [(run.source, run.workers, run.epoch_seconds.value, run.failure and run.failure["kind"]) for run in found]


# A job of 1, 2 and 4 workers that has ended: the log of its batch script, and a record of each training


SECONDS = {1: 60, 2: 40, 4: 20}
W1, W2, W4 = ((f"job_812_w{n}.json", n, SECONDS[n] + 0.25, None) for n in SECONDS)
LIMIT = "slurmstepd: error: *** JOB 812 ON n1 CANCELLED AT 2024-09-30T16:00:24 DUE TO TIME LIMIT ***\n"


BATCH = [
    ({}, [W1, W2, W4]),
    ({"_w2.json": None}, [W1, W4]),  # the log adds nothing to records
    ({"_w2.json": "{"}, [W1, ("job_812_w2.json", None, None, None), W4]),
    ({"_w2.json": "running", "_w4.json": None, ".err": LIMIT}, [W1, (*W2[:3], "time limit")]),
]


@pytest.mark.parametrize("changed, expected", BATCH)
def test_each_run_of_a_batch_script_appears_once_with_the_failure_that_is_its_own(tmp_path, changed, expected):
    out = "Job 812 on n1\n" + log(1, 60) + log(2) + log(4, 20)
    for ending, content in ({".out": out, ".err": ""} | {f"_w{n}.json": "finished" for n in SECONDS} | changed).items():
        if content in ("finished", "running"):
            workers, has = int(ending[2]), {"state": content, "job_id": "812"}
            write(tmp_path, f"job_812_w{workers}", workers, SECONDS[workers] + 0.25, **has)
        elif content is not None:
            (tmp_path / f"job_812{ending}").write_text(content)
    assert rows(tmp_path) == rows(*sorted(tmp_path.iterdir())) == expected
    two = [run for run in results.load(tmp_path) if run.workers == 2]
    assert [run.speedup.value for run in two] == ([pytest.approx(60.25 / 40.25)] if expected[1] == W2 or two else [])


@pytest.mark.parametrize("err", ["a_w2.err", "a.err"])
def test_a_failed_record_takes_the_line_of_its_err_or_of_its_batch_script(tmp_path, err):
    (tmp_path / err).write_text("\nMemoryError\n")
    (run,) = results.load(write(tmp_path, "a_w2", 2, state="failed"))
    assert run.truncated and (run.failure["line_number"], run.failure["file"]) == (2, err)
    assert results.load(write(tmp_path, "a_w2", 2))[0].failure is None


def test_the_study_of_a_batch_script_stands_for_it(tmp_path):
    """Its log says nothing that its records do not say, unless there are none."""
    folder = tmp_path / "study_7"
    folder.mkdir()
    (tmp_path / "study_7.out").write_text("Job 7 on node1\n")
    (tmp_path / "study_7.err").write_text(LIMIT)
    with pytest.raises(LabsError, match="study_7.out: no finished epoch.*time limit"):
        results.load([tmp_path])
    for workers, seconds in ((1, 60), (2, 40)):
        write(folder, f"w{workers}", workers, seconds, study="s")
    write(tmp_path, "alone", 1, 10)
    assert sorted(rows(tmp_path)) == [("alone.json", 1, 10, None), ("w1.json", 1, 60, None), ("w2.json", 2, 40, None)]


# Folders of files that are no job's


def test_jobs_of_the_cluster_and_of_this_machine_in_one_folder(tmp_path, capsys):
    """Beside files that are no results; what has a log and a record is told by its record."""
    for name, workers in (("job_812_w1", 1), ("job_local_w1", 1), ("job_w2", 2), ("job_w4", 4)):
        write(tmp_path, name, workers)
    others = {"job_812.out": log(1), "job_local.out": log(1), "job_w2.out": log(2), "progress.json": "{}"}
    others |= {"maxbatch_SmallCNN.out": "Trial batch 1: starts\n", "maxbatch_SmallCNN.err": "MemoryError\n"}
    others |= {"a_timeline.json": "[\n", "table.txt": "run model\n"}
    for name, content in others.items():
        (tmp_path / name).write_text(content)
    sources = [f"job_{run}.json" for run in ("812_w1", "local_w1", "w2", "w4")]
    assert [source for source, *_ in rows(tmp_path)] == sources
    assert rows(tmp_path / "job_w2.out", tmp_path / "job_w2.json") == [("job_w2.json", 2, 40, None)]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/job.txt").write_text(log(1))
    with pytest.raises(LabsError, match=r"no results \(.json, .out, .log, .err\) in this folder"):
        results.load(tmp_path / "texts")
    assert cli.main(["results", str(tmp_path)]) == 0 and "FAILED" not in capsys.readouterr().out


def test_an_earlier_run_is_shown_only_where_the_later_one_is_not(tmp_path):
    for name, seconds in (("a", 40), ("a.1", 50), ("a.2", 60)):
        write(tmp_path, name, 1, seconds, name="a", study="one")
        (tmp_path / f"{name}.out").write_text(log(1))
    write(tmp_path, "b0.1", 2, 20, study="one")
    write(tmp_path, "b0", 2, 10, study="two")
    assert [source for source, *_ in rows(tmp_path)] == ["a.json", "b0.1.json", "b0.json"]
    assert results.load([tmp_path])[1].speedup.value == pytest.approx(2)
    assert [source for source, *_ in rows(tmp_path / "a.2.json")] == ["a.2.json"]


# The files, each with its workers, seconds and fields: the speedup of each run on several, or why there is none
MIXTURES = [
    ("l1 1 60 study=l, l2 2 40 study=l, c1 1 6 study=c gpus=V, c2 2 3 study=c gpus=V", {"l2": 1.5, "c2": 2.0}),
    ("w1 1 60 study=s rounds=6, w2 2 40 study=s rounds=6, old 2 20", {"w2": 1.5, "old": "measured in another study"}),
    ("a1 1 60 job_id=J, a2 2 40 job_id=J, b1 1 30 job_id=K, b2 2 24 job_id=K", {"a2": 1.5, "b2": 1.25}),
    ("monday 1 60, tuesday 1 30, other 2 20", {"other": "in another file, and no study or job says that they belong"}),
    # stopped after two rounds, and begun again: the first attempt was moved aside
    ("w1.1 1 9 study=s name=w1 state=stopped, w2.1 2 9 study=s name=w2, w1 1 60 study=t, w2 2 40 study=t", {"w2": 1.5}),
]


@pytest.mark.parametrize("files, wanted", MIXTURES)
def test_only_what_belongs_together_is_divided_and_the_rest_says_why(tmp_path, files, wanted, capsys):
    for file in files.split(", "):
        name, workers, seconds, *fields = file.split()
        given = {key: int(value) if value.isdecimal() else value for key, value in (f.split("=") for f in fields)}
        if name.endswith(".out"):
            (tmp_path / name).write_text(log(int(workers), int(seconds)))
        else:
            write(tmp_path, name, int(workers), float(seconds), **given)
    found = {run.source.rpartition(".")[0]: run for run in results.load(tmp_path) if run.workers != 1}
    assert set(found) == set(wanted)
    assert cli.main(["results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    for name, expected in wanted.items():
        run, notes = found[name], " ".join(found[name].notes)
        if isinstance(expected, str):
            assert run.speedup.value is None and run.efficiency.value is None and expected in notes and expected in said
        else:
            assert run.speedup.value == pytest.approx(expected) and ("not paired" in notes) == (not run.rounds)


# Records and logs that cannot be


NAN = math.nan
DIVERGED = [{"epoch": e, "seconds": 20.0, "metrics": {"loss": (-1) ** e * 1e308}} for e in range(3)]
BROKEN = {
    "no workers": {"configuration": {"workers": -2}},
    "no time": {"epochs": [{"seconds": 0.0}] * 3},
    "binary": b"\0\xff",
}
STRANGE = {
    "loss that diverges": {"epochs": DIVERGED + [epoch | {"repeat": 1} for epoch in DIVERGED]},
    "fields of another kit": {"version": 2, "configuration": {"workers": 2, "source": 5, "rate": NAN}},
    "escapes": {"name": "\x1b[31m", "configuration": {"model": "\x1b]0;x\x07"}},
}


@pytest.mark.parametrize("kind", [*BROKEN, *STRANGE])
def test_a_bad_record_is_a_row_and_the_others_stand(tmp_path, capsys, kind):
    for workers in (1, 2):
        write(tmp_path, f"good_{workers}", workers, SECONDS[workers], study="good")
    content = (BROKEN | STRANGE)[kind]
    if isinstance(content, bytes):
        (tmp_path / "bad.json").write_bytes(content)
    else:
        write(tmp_path, "bad", 2)
        made = json.loads((tmp_path / "bad.json").read_text()) | content
        (tmp_path / "bad.json").write_text(json.dumps(made))
    assert cli.main(["results", "--json", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    found = {row["source"]: row for row in json.loads(text, parse_constant=pytest.fail)["runs"]}
    assert set(found) == {"bad.json", "good_1.json", "good_2.json"} and found["good_2.json"]["speedup"] == 1.5
    assert kind in STRANGE or (found["bad.json"]["notes"] and found["bad.json"]["epoch_seconds"] is None)
    assert cli.main(["results", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "good_2.json" in out and "\x1b" not in out


def test_failed_job_is_a_run_beside_others_and_an_error_alone(tmp_path):
    runs = results.load([recorded.CTE_POWER, LOGS / "oom.out", LOGS / "oom.err"], images=50000)
    assert runs[3].failure["kind"] == "out of memory" and runs[3].speedup.value is None
    assert (runs[3].model, runs[3].global_batch) == ("ResNet152V2", 512)
    text = results.table(runs)
    assert "4 oom.out FAILED" in text and "Run 4: failed: out of memory (oom.err, line 4: " in text
    with pytest.raises(LabsError, match="out of memory"):
        results.load([LOGS / "oom.out"])
    (tmp_path / "b.err").write_text("MemoryError\n")
    assert rows(tmp_path / "b.err") == [("b.err", None, None, "out of memory")]


def test_wrong_files_are_named(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.err").write_text("all is well\n")
    os.mkfifo(tmp_path / "c.out")
    (tmp_path / "a.pdf").touch()
    (tmp_path / "none").mkdir()
    wrong = {"a.pdf": "not a regular file of a type that is read", "no.out": "no such file", "none": "no res"}
    wrong |= {"b.err": "no line that the kit knows, and no log beside it", "c.out": "not a regular file"}
    for path, message in {**wrong, "a.json": "not a run record"}.items():
        with pytest.raises(LabsError, match=message):
            results.load([tmp_path / path])


# What is shown of runs
