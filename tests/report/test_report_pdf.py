"""The report as a whole: an accessible PDF, whose numbers are those of report.json and of the records."""

import json
import math
import re
import subprocess
import sys
from itertools import pairwise
from statistics import fmean, stdev

import pytest
import reported
from pdf import Pdf
from tree import ROOT, clean_environment

from labs import files, report
from labs.results import run as records

ANSWER = "The speedup is $S = T_1 / T_2$, see ResNet50_w2.\n\n$$E(p) = \\frac{S(p)}{p}$$\n\n# Numbers\n\n"
ANSWER += "| workers | what |\n|---|---|\n| 2 | a **table** |\n\n```python\nrate = 0.01\n```\n"


def course(root):
    answers = {"T1": "Copies of the network.", "T5": ANSWER}
    reported.keep(reported.course(root, answers, {"notebooks/scripts/ResNet50.py": reported.DONE}), reported.study())
    items = {"resnet50.4": {"state": "right", "points": 2, "attempts": 3, "answer": "7.1"}}
    files.write(root / "notebooks/runs/progress.json", json.dumps({"version": 1, "items": items}))
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(what `make` gave, its PDF as a reader gets it, the course's folder)."""
    root = course(tmp_path_factory.mktemp("course"))
    made = report.make(root / "report", start=root, name="Student 7", ppi=40)
    return made, Pdf(made.pdf), root


T_QUANTILE = {5: 2.570582}  # Student's t, 97.5 %, from a table
DIGITS = {"batch (global)": "{}", "steps": "{}", "epoch (s)": "{:.4g}", "images/s": "{:.4g}"}
DIGITS |= {"speedup": "{:.3g}", "efficiency": "{:.3g}", "loss": "{:.4f}", "accuracy": "{:.4f}"}


def rows(root):
    """The study's runs in numbers, computed here from the records alone: two dicts, of 1 worker and of 2."""
    found, seconds = [], []
    for workers in (1, 2):
        record = records.load_record(root / f"notebooks/runs/ResNet50_w{workers}.json")
        steady, last = record.epochs[1:], record.epochs[-1]
        seconds.append({epoch.round: epoch.seconds for epoch in steady})
        mean = fmean(epoch.seconds for epoch in steady)
        row = {"run": record.name, "workers": workers, "epoch (s)": mean, "images/s": steady[0].images / mean}
        row |= {"batch (global)": record.configuration.global_batch, "steps": len(last.step_seconds)}
        row |= {"loss": last.metrics["loss"], "accuracy": last.metrics["accuracy"]}
        found.append(row | {"speedup": 1.0, "efficiency": 1.0})
    ratios = [math.log(seconds[0][n] / seconds[1][n]) for n in sorted(seconds[0])]
    reach = T_QUANTILE[len(ratios) - 1] * stdev(ratios) / math.sqrt(len(ratios))
    mean, low, high = (math.exp(fmean(ratios) + way * reach) for way in (0, -1, 1))
    found[1] |= {"speedup": mean, "efficiency": mean / 2, "interval": (low, high)}
    return found


# Accessible


def test_the_pdf_is_tagged_and_everything_has_a_text_alternative(made):
    made, pdf, root = made
    assert (pdf.marked, pdf.language, pdf.part, pdf.shows_title) == (True, "en", "1", True)
    assert pdf.title == "Training on many devices: report"
    figures, formulas = pdf.of("Figure"), pdf.of("Formula")
    assert len(figures) == 5 and all(tag.alt and tag.alt.strip() for tag in figures)
    assert [tag.alt for tag in formulas] == ["S = T_1 / T_2", "E(p) = \\frac{S(p)}{p}"]
    said = "{speedup:.3g} times on 2 (interval {interval[0]:.3g} to {interval[1]:.3g})".format(**rows(root)[1])
    assert any(said in tag.alt for tag in figures)
    captions = [tag.text for tag in pdf.of("Caption") if tag.text.startswith("Table")]
    assert len(captions) == len(pdf.tables()) > 10
    for first, *others in pdf.tables():
        assert first and {kind for kind, _ in first} == {"TH"} and all(text for _, text in first)
        assert others and all({kind for kind, _ in row} == {"TD"} and len(row) == len(first) for row in others)
    levels = [int(tag.kind[1]) for tag in pdf.tags if re.fullmatch("H[1-6]", tag.kind)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))
    assert len(made.pages) == len(pdf.pages) > 5 and all(page.startswith(b"\x89PNG") for page in made.pages)
    assert pdf.blank_margins()


READING = """Student 7 | Contents | What is missing | T1: Data parallelism and |
Copies of the network. | T5: An account of | The speedup is | Numbers | a table | rate = 0.01 |
A good answer contains | Evidence | ResNet50_w1.out | Checks and predictions | Runs | How the numbers were made"""


def test_the_text_comes_in_reading_order_and_each_check_with_its_state(made):
    made, pdf, root = made
    text, place = pdf.text, 0
    for words in READING.split("|"):
        place = text.index(words.strip(), place)
    assert " 1 import keras 2 + rate = 0.01 3 model.fit()" in text
    cells = {row[0][1]: [text for _, text in row] for table in pdf.tables() for row in table}
    assert cells["resnet50.4"][2:] == ["right", "2", "3"] and cells["resnet152.1"][2:] == ["open", "0", "0"]
    tasks = {task["id"]: task for task in made.report["tasks"]}
    assert len(tasks["T5"]["holds"]) == tasks["T5"]["points"] and tasks["T2"]["holds"] == [], "beside a written one"


# PDF = JSON = records


def test_numbers_of_the_tables_are_those_of_the_records_and_of_the_json(made):
    made, pdf, root = made
    by_name, count = {row["run"]: row for row in rows(root)}, 0
    for head, *body in pdf.tables():
        columns = [text for _, text in head]
        for cells in body if columns[:2] == ["run", "workers"] else ():
            found = dict(zip(columns, (text for _, text in cells), strict=True))
            row = by_name[found["run"]]
            assert found["workers"] == str(row["workers"])
            for column in DIGITS.keys() & found.keys():
                assert found[column].split(" ")[0] == DIGITS[column].format(row[column]), column
                count += 1
            if "speedup" in columns and row["workers"] == 2:
                assert found["speedup"].endswith(" [{:.3g}, {:.3g}]".format(*row["interval"]))
    assert count == 3 * 2 * (5 + 3)  # T5, T6 and T10; two runs
    assert json.loads(made.json.read_text()) == made.report


def test_two_networks_are_compared_where_both_were_measured(tmp_path):
    runs = reported.study() | reported.study(network="ResNet152V2", name="ResNet152V2")
    root = reported.keep(reported.course(tmp_path), runs)
    gathered, _ = report.gather_report(report.course.course_around(root))
    (task,) = [task for task in gathered["tasks"] if task["id"] == "T10"]
    assert all(name in task["figures"][0]["caption"] for name in ("ResNet152V2_w2", "ResNet50_w2"))
    compared = task["tables"][-1]
    assert compared["caption"] == "Efficiency of ResNet152V2 divided by that of ResNet50V2"
    assert [row[:2] for row in compared["rows"]] == [["mirrored", "2"]] and "[" in compared["rows"][0][2]


# Reproducible, and without anything else


def test_the_same_work_gives_the_same_bytes_without_tensorflow_network_or_display(made, tmp_path):
    program = """
import socket, sys
def refused(*arguments, **options):
    raise AssertionError("the report uses the network")
socket.socket.connect = socket.getaddrinfo = refused
from labs import cli
code = cli.main(["report", "notebooks", "--out", sys.argv[1], "--name", "Student 7"])
print(code, [name for name in sys.modules if name in ("tensorflow", "keras", "matplotlib.pyplot", "tkinter")])
"""
    first, _, root = made
    closed = dict.fromkeys(("https_proxy", "http_proxy"), "http://127.0.0.1:9")
    environment = clean_environment(PYTHONPATH=str(ROOT), **closed)
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "out")]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.stdout.endswith("\n0 []\n"), done.stdout + done.stderr
    assert "Hand in submission.zip" in done.stdout and "- T2: no answer is written." in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.pdf", "report.json", "submission.zip"}
    for one in (first.pdf, first.json, first.zip):
        assert one.read_bytes() == (tmp_path / "out" / one.name).read_bytes(), one.name


def test_an_untouched_course_gives_a_report_that_says_what_is_missing(tmp_path):
    root = reported.course(tmp_path / "course")
    made = report.make(tmp_path / "out", start=root)
    text = Pdf(made.pdf).text
    assert "No run is on record." in text
    assert [task for task in made.report["tasks"] if task["holds"] or task["answer"]] == []
    missing = made.report["missing"]
    assert {"T1: no answer is written.", "T5: none of its runs is on record."} <= set(missing)
    assert all(line in text for line in missing[:3])
