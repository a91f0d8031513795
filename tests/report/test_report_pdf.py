"""The report as a whole: an accessible PDF, whose numbers are those of report.json and of the records."""

import json
import math
import re
import subprocess
import sys
import zipfile
from itertools import pairwise
from statistics import fmean

import pytest
import reported
from pdf import Pdf
from tree import ROOT, clean_environment

from labs import files, report
from labs.report import form
from labs.results import run as records

ANSWER = """The speedup is $S = T_1 / T_2$, see ResNet50_w2.

$$E(p) = \\frac{S(p)}{p}$$

# Numbers

| workers | what |
|---|---|
| 2 | a **table** |

```python
rate = 0.01
```
"""
PROGRESS = {
    "resnet50.1": {"state": "predicted", "attempts": 1, "answer": "1.6"},
    "resnet50.7": {"state": "predicted", "attempts": 1, "answer": "1.2"},
    "horovod.10": {"state": "predicted", "attempts": 1, "answer": "1.5", "outcome": 1.43, "interval": [1.26, 1.62]},
    "horovod.21": {
        "state": "predicted",
        "attempts": 1,
        "answer": "[0.005, 0.005]",
        "outcome": [0.0050000008, 0.0199999],
    },
    "averages.5": {"state": "predicted", "attempts": 1, "answer": "'no'", "outcome": "no"},
    "networks.5": {"state": "predicted", "attempts": 1, "answer": "no", "outcome": "can't tell"},
    "resnet50.4": {"state": "right", "points": 2, "attempts": 3, "answer": "7.1"},
}


def course(root):
    reported.course(
        root, {"T1": "Copies of the network.", "T5": ANSWER}, {"notebooks/scripts/ResNet50.py": reported.DONE}
    )
    reported.keep(root, reported.study())
    files.write(root / "notebooks/runs/progress.json", json.dumps({"version": 1, "items": PROGRESS}))
    return root


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(what `make` gave, its PDF as a reader gets it, the course's folder)."""
    root = course(tmp_path_factory.mktemp("course"))
    made = report.make(root / "report", start=root, name="Student 7", machine="my laptop", ppi=40)
    return made, Pdf(made.pdf), root


# ---- accessible ------------------------------------------------------------------------------------------


def test_the_pdf_is_tagged_and_says_its_language_and_title(made):
    _, pdf, _ = made
    assert (pdf.marked, pdf.language, pdf.part) == (True, "en", "1")
    assert pdf.title == "Training on many devices: report" and pdf.shows_title and pdf.embedded_fonts_only


def test_every_figure_and_formula_has_a_text_alternative(made):
    made, pdf, _ = made
    figures, formulas = pdf.of("Figure"), pdf.of("Formula")
    assert len(figures) == 5 and len(formulas) == 2
    assert all(tag.alt and tag.alt.strip() for tag in figures + formulas)
    assert [tag.alt for tag in formulas] == ["S = T_1 / T_2", "E(p) = \\frac{S(p)}{p}"]
    row = next(row for row in rows(made.pdf.parents[1]) if row["workers"] == 2)
    said = "{:.3g} times on 2 (interval {:.3g} to {:.3g})".format(row["speedup"], *row["speedup_interval"])
    assert any(said in tag.alt for tag in figures)


def test_every_table_has_a_header_and_a_caption_and_no_heading_is_skipped(made):
    _, pdf, _ = made
    assert len(pdf.tables()) > 10
    captions = [tag.text for tag in pdf.of("Caption") if tag.text.startswith("Table")]
    assert len(captions) == len(pdf.tables())
    for first, *others in pdf.tables():
        assert first and {kind for kind, _ in first} == {"TH"} and all(text for _, text in first)
        assert others and all({kind for kind, _ in row} == {"TD"} and len(row) == len(first) for row in others)
    levels = [int(tag.kind[1]) for tag in pdf.tags if re.fullmatch("H[1-6]", tag.kind)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


def test_the_text_comes_in_reading_order(made):
    _, pdf, _ = made
    wanted = [
        "Student 7",
        "Main result",
        "Contents",
        "What is missing",
        "T1: Data parallelism and",
        "Copies of the network.",
        "T5: An account of",
    ]
    wanted += [
        "The speedup is",
        "Numbers",
        "a table",
        "rate = 0.01",
        "A good answer contains",
        "Evidence",
        "ResNet50_w1.out",
    ]
    wanted += ["Checks and predictions", "Runs", "How the numbers were made"]
    text, place = pdf.text, 0
    for words in wanted:
        place = text.index(words, place)
    assert "Machine: my laptop" in text and " 1 import keras 2 + rate = 0.01 3 model.fit()" in text


def test_pages_are_pictures_with_nothing_in_the_margins(made):
    made, pdf, _ = made
    assert len(made.pages) == len(pdf.pages) > 5 and all(page.startswith(b"\x89PNG") for page in made.pages)
    assert pdf.blank_margins()


# ---- PDF = JSON = records --------------------------------------------------------------------------------


def rows(root):
    """The study's runs in numbers, computed here from the records alone: {name, workers, ...}."""
    one, two = (records.load(root / f"notebooks/runs/ResNet50_w{n}.json") for n in (1, 2))
    found, seconds = [], []
    for record in (one, two):
        steady = [epoch for epoch in record.epochs if epoch.epoch > 0]
        seconds.append({epoch.round: epoch.seconds for epoch in steady})
        images, mean = steady[0].images, fmean(epoch.seconds for epoch in steady)
        found.append({"name": record.name, "workers": record.configuration.workers, "epoch (s)": mean})
        found[-1] |= {"global batch": record.configuration.global_batch, "images/s": images / mean}
        found[-1] |= {
            "last loss": record.epochs[-1].metrics["loss"],
            "last accuracy": record.epochs[-1].metrics["accuracy"],
        }
        found[-1] |= {"steps per epoch": len(record.epochs[-1].step_seconds), "speedup": 1.0, "efficiency": 1.0}
    ratios = [math.log(seconds[0][n] / seconds[1][n]) for n in sorted(seconds[0])]
    mean, spread = fmean(ratios), math.sqrt(sum((r - fmean(ratios)) ** 2 for r in ratios) / (len(ratios) - 1))
    reach = T_QUANTILE[len(ratios) - 1] * spread / math.sqrt(len(ratios))
    found[1] |= {"speedup": math.exp(mean), "efficiency": math.exp(mean) / 2}
    found[1]["speedup_interval"] = math.exp(mean - reach), math.exp(mean + reach)
    return found


T_QUANTILE = {5: 2.570582}  # Student's t, 97.5 %, from a table
DIGITS = {"global batch": "{}", "steps per epoch": "{}", "epoch (s)": "{:.4g}", "images/s": "{:.4g}"}
DIGITS |= {"speedup": "{:.3g}", "efficiency": "{:.3g}", "last loss": "{:.4f}", "last accuracy": "{:.4f}"}


def printed_as_measured(pdf, root):
    """Assert that each value of a table of runs in the PDF is the one that the records give now; how many these are."""
    by_name, count = {row["name"]: row for row in rows(root)}, 0
    for head, *body in pdf.tables():
        columns = [text for _, text in head]
        if columns[:2] != ["run", "workers"]:
            continue
        for cells in body:
            found = dict(zip(columns, (text for _, text in cells), strict=True))
            row = by_name[found["run"]]
            assert found["workers"] == str(row["workers"])
            for column in columns[2:]:
                if column in DIGITS:
                    assert found[column].split(" ")[0] == DIGITS[column].format(row[column]), column
                    count += 1
            if "speedup" in columns and row["workers"] == 2:
                assert found["speedup"].endswith(" [{:.3g}, {:.3g}]".format(*row["speedup_interval"]))
    return count


def test_numbers_of_the_tables_are_those_of_the_records(made):
    _, pdf, root = made
    assert printed_as_measured(pdf, root) == 3 * 2 * (5 + 3)  # T5, T6 and T10; two runs


@pytest.mark.parametrize("name", ["ResNet50_w1", "ResNet50_w2"])
def test_one_record_changed_by_one_per_cent_is_noticed(made, name, tmp_path):
    _, pdf, root = made
    record = records.load(root / f"notebooks/runs/{name}.json")
    for epoch in record.epochs:
        epoch.seconds *= 1.01
    reported.keep(reported.course(tmp_path), reported.study() | {name: record})
    with pytest.raises(AssertionError):
        printed_as_measured(pdf, tmp_path)


def test_every_number_of_the_tables_stands_in_the_json(made):
    made, pdf, _ = made
    text = made.json.read_text()
    known = set(re.findall(r"\d+(?:\.\d+)?", text))
    numbers = [
        n for table in pdf.tables() for row in table for _, cell in row for n in re.findall(r"\d+(?:\.\d+)?", cell)
    ]
    assert len(numbers) > 300
    assert [n for n in numbers if n not in known] == []


def test_the_json_follows_its_schema_and_says_the_same_as_the_report(made):
    made, _, _ = made
    read = form.Report.model_validate_json(made.json.read_text())
    assert read == made.report and read.version == 1
    values = [cell for task in read.tasks for table in task.tables for row in table.rows for cell in row if cell.value]
    assert values and all(cell.text.startswith(f"{cell.value:.4g}"[:3]) for cell in values)
    with zipfile.ZipFile(made.zip) as archive:
        schema = json.loads(archive.read("report.schema.json"))
    assert schema == form.schema() and schema["properties"]["version"]["const"] == 1
    with pytest.raises(ValueError, match="version"):
        form.Report.model_validate(json.loads(made.json.read_text()) | {"version": 2})


def test_the_first_page_says_the_main_result_with_its_interval_and_its_figure(made, tmp_path):
    made, pdf, root = made
    row = next(row for row in rows(root) if row["workers"] == 2)
    said = "speedup {:.3g} [{:.3g}, {:.3g}]".format(row["speedup"], *row["speedup_interval"])
    assert [line for line in made.report.main.sentences if said in line and "measured, 6 rounds" in line]
    text = " ".join(" ".join(tag.text for tag in pdf.tags).split())
    assert text.index("Main result") < text.index(said) < text.index("Figure 1") < text.index("Contents")
    without = reported.course(tmp_path)
    assert report.gather_report(report.course.look(without))[0].main is None


def test_the_main_result_compares_two_networks_where_both_were_measured(tmp_path):
    runs = reported.study() | reported.study(network="ResNet152V2", name="ResNet152V2")
    for name, run in reported.study(1, name="ResNet50_horovod").items():  # as of notebook 08: first by its name
        runs[name] = reported.changed(run, configuration={"strategy": "horovod"})
    root = reported.keep(reported.course(tmp_path), runs, log=False)
    made = report.gather_report(report.course.look(root))[0]
    shown = next(each for task in made.tasks for each in task.figures if each.name == made.main.figure)
    assert len(shown.runs) == 4, "its figure is the one of both networks"
    second = reported.study(2, network="ResNet152V2", name="ResNet152V2_horovod")
    more = {name: reported.changed(run, configuration={"strategy": "horovod"}) for name, run in second.items()}
    again = report.gather_report(report.course.look(reported.keep(root, more, log=False)))[0]
    assert again.main.figure == made.main.figure, "of equal ones, the one that its first sentence is about"
    main = made.main
    assert main.task == "T10"
    assert any(line.startswith("Efficiency of ResNet152V2 divided by that of ResNet50V2") for line in main.sentences)


def test_predictions_stand_beside_what_was_measured(made):
    made, pdf, root = made
    item = next(item for item in made.report.items if item.id == "resnet50.1")
    assert item.answer == "1.6" and item.outcome.value == pytest.approx(rows(root)[1]["speedup"])
    row = next(row for table in pdf.tables() for row in table if row[0][1] == "resnet50.1")
    assert [text for _, text in row][2:] == ["1.6", item.outcome.text]
    told = {item.id: item.outcome and item.outcome.text for item in made.report.items}
    assert told["networks.5"] == "can't tell" and float(told["resnet50.7"]) > 0 and told["resnet152.1"] is None
    assert told["horovod.10"] == "1.43 [1.26, 1.62]" and told["horovod.21"] == "0.005, 0.02"
    said = {item.id: item.answer for item in made.report.items}
    assert (said["horovod.21"], said["averages.5"]) == ("0.005, 0.005", "no")
    check = next(item for item in made.report.items if item.id == "resnet50.4")
    assert (check.state, check.points, check.attempts) == ("right", 2, 3)


# ---- reproducible, and without anything else ---------------------------------------------------------------


def test_the_same_work_gives_the_same_bytes(made, tmp_path):
    first, _, root = made
    second = report.make(tmp_path, start=root / "notebooks", name="Student 7", machine="my laptop")
    for one, other in ((first.pdf, second.pdf), (first.json, second.json), (first.zip, second.zip)):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_no_tensorflow_no_network_no_display(tmp_path):
    program = """
import socket, sys
def refused(*arguments, **options):
    raise AssertionError("the report uses the network")
socket.socket.connect = socket.getaddrinfo = refused
from labs import cli
code = cli.main(["report", ".", "--out", "out", "--name", "me"])
print(code, [name for name in sys.modules if name in ("tensorflow", "keras", "matplotlib.pyplot", "tkinter")])
"""
    root = course(tmp_path / "course")
    environment = clean_environment(
        PYTHONPATH=str(ROOT), https_proxy="http://127.0.0.1:9", http_proxy="http://127.0.0.1:9"
    )
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    assert done.stdout.endswith("\n0 []\n"), done.stdout + done.stderr
    assert "Hand in submission.zip" in done.stdout and "- T2: no answer is written." in done.stdout
    assert {path.name for path in (root / "out").iterdir()} == {"report.pdf", "report.json", "submission.zip"}


def test_an_untouched_course_gives_a_report_that_says_what_is_missing(tmp_path):
    root = reported.course(tmp_path / "course")
    made = report.make(tmp_path / "out", start=root, appendix=ROOT / "docs/students/standstill.md")
    pdf = Pdf(made.pdf)
    assert "Appendix" in pdf.text and "the launcher names a signal" in " ".join(pdf.text.split())
    written = [task for task in made.report.tasks if task.holds or task.answer]
    assert written == [] and "No run is on record." in pdf.text
    missing = [f"{task.id}: no answer is written." for task in made.report.tasks if task.points and task.id[0] == "T"]
    assert {"T1: no answer is written.", "T5: none of its runs is on record."} <= set(made.report.missing)
    assert set(made.report.missing) & set(missing) and all(line in pdf.text for line in made.report.missing[:3])


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_an_appendix_that_cannot_be_read_is_one_line(tmp_path, content):
    (tmp_path / "notes.md").write_bytes(content) if content else None
    with pytest.raises(report.ReportError, match=r"^The appendix \S+notes.md cannot be read: [^\n]*\. The rep"):
        report.make(tmp_path / "out", appendix=tmp_path / "notes.md")


def test_what_a_good_answer_holds_is_shown_beside_a_written_answer_only(made):
    made, _, _ = made
    by_id = {task.id: task for task in made.report.tasks}
    assert len(by_id["T5"].holds) == by_id["T5"].points and by_id["T2"].holds == []


def test_missing_programs_are_said_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(report.ReportError, match=r"needs pandoc and Typst, and one of them is missing .*`make setup`"):
        report.make(tmp_path / "out", start=reported.course(tmp_path / "course"))
    assert not (tmp_path / "out").exists()
