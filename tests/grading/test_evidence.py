"""Evidence: honest runs of any speed and noise give no finding; each thing that cannot be gives one, for a person."""

import copy
import random
import zlib

import made_class
import numpy as np
import pytest

from labs import recorded
from labs.report import course
from labs.results import log as logs
from labs.results import metrics
from labs.results import run as records
from teaching.grading import copies, evidence, handed, numbers
from teaching.grading.finding import HONEST, SEVERITIES


@pytest.fixture
def looked_at(tmp_path):
    """looked_at(runs, files) -> findings about a submission with these runs, {name: Run}."""

    def looked_at(runs, logs_of=None, **more):
        contents = made_class.written(runs)
        contents |= {name: text for name, text in made_class.written(logs_of or runs).items() if name.endswith(".out")}
        contents["notebooks/scripts/ResNet50.py"] = made_class.script().encode()
        return evidence.findings(handed.Submission("001", contents | more, tmp_path / str(random.random())))

    return looked_at


def changed(runs, change):
    """A copy of some runs, each changed by a function."""
    runs = copy.deepcopy(runs)
    for record in runs.values():
        change(record)
    return runs


@pytest.mark.parametrize("smooth", [0.002, 0.01, 0.06, 0.2])
@pytest.mark.parametrize("speed", [0.2, 1.0, 5.0])
def test_honest_runs_give_no_finding(looked_at, smooth, speed):
    for seed in range(5):
        found = looked_at(made_class.study(seed, speed=speed, smooth=smooth))
        assert [each for each in found if each.severity != "note"] == []


def test_the_kits_own_recorded_runs_give_none_but_that_they_are_recorded(looked_at):
    runs = {path.stem: records.load(path) for path in recorded.laptop_two_networks()}
    logs = {f"{made_class.RUNS}{path.stem}.out": path.with_suffix(".out").read_bytes() for path in recorded.laptop()}
    found = looked_at(runs, **logs)
    assert {each.kind for each in found} <= {"not measured by you"}


def test_validation_within_the_epochs_is_no_gap(looked_at):
    runs = made_class.study(15)
    for record in runs.values():
        for epoch in record.epochs:
            epoch.seconds, epoch.metrics = 2 * epoch.seconds, {**epoch.metrics, "val_loss": 1.0}
        record.started = "2026-01-01T00:00:00+00:00"
    assert [each for each in looked_at(runs) if each.severity != "note"] == []


def test_a_study_over_many_nodes_is_possible(looked_at):
    runs = made_class.study(16)
    record = runs["ResNet50_w2"]
    for each in runs.values():
        each.machine = {**each.machine, "cores": 64, "memory": 256 << 30}
        each.configuration.strategy, each.configuration.image_size = "horovod", 224
        for epoch in each.epochs:  # 2 images/s and core: 42 Gflop/s
            epoch.seconds, epoch.step_seconds = 40 * epoch.seconds, [40 * s for s in epoch.step_seconds]
    record.configuration.workers, record.configuration.nodes = 1024, 16
    record.configuration.local_batch, record.configuration.global_batch = 8, 8192
    record.dataset_images = 8192 * record.steps
    for epoch in record.epochs:
        epoch.images = record.dataset_images
        factor = epoch.images / 1024 / 2 / epoch.seconds
        epoch.seconds, epoch.step_seconds = epoch.seconds * factor, [s * factor for s in epoch.step_seconds]
    found = {(each.kind, each.where) for each in looked_at(runs) if each.severity == "serious"}
    assert ("possible", "ResNet50_w2") not in found, found


def steps_longer(record):
    record.epochs[3].step_seconds = [s * 1.2 for s in record.epochs[3].step_seconds]


def epochs_longer(record):
    record.finished = record.started


def more_images(record):
    record.epochs[2].images = 900


def fewer_images(record):
    record.epochs[2].images = 300


def typed(record):
    for epoch in record.epochs:
        epoch.step_seconds = [round(s, 3) for s in epoch.step_seconds]
        epoch.seconds = sum(epoch.step_seconds)


def on_a_line(record):
    for epoch in record.epochs:
        epoch.step_seconds = [epoch.seconds / len(epoch.step_seconds)] * len(epoch.step_seconds)


def on_a_slope(record):
    steps = sum(len(epoch.step_seconds) for epoch in record.epochs)
    times = iter([record.epochs[0].step_seconds[0] * (1 + 0.1 * n / steps) for n in range(steps)])
    for epoch in record.epochs:
        epoch.step_seconds = [next(times) for _ in epoch.step_seconds]
        epoch.seconds = sum(epoch.step_seconds)


def another_script(record):
    record.script_sha256 = "0" * 64


def small_memory(record):
    record.machine = {**record.machine, "memory": 1 << 24}


def better(record):
    record.epochs[-1].metrics["accuracy"] = 0.999


def faster(record):
    for epoch in record.epochs:
        epoch.seconds, epoch.step_seconds = epoch.seconds * 0.8, [s * 0.8 for s in epoch.step_seconds]


def shorter(record):
    record.epochs = record.epochs[:4]


# {change of the records: (kind, severity)}; the logs stay those of the unchanged runs, but for the last ones
PLANTED = {
    steps_longer: ("clock", "serious"),
    epochs_longer: ("clock", "serious"),
    more_images: ("images", "serious"),
    fewer_images: ("images", "look"),
    typed: ("spread", "look"),
    on_a_line: ("spread", "serious"),
    another_script: ("script", "look"),
    small_memory: ("possible", "serious"),
    better: ("log", "serious"),
    faster: ("log", "serious"),
    shorter: ("log", "look"),
}


@pytest.mark.parametrize("change", PLANTED, ids=lambda change: change.__name__)
def test_what_cannot_be_is_found_in_both_runs(looked_at, change):
    runs = made_class.study(7)
    found = [each for each in looked_at(changed(runs, change), logs_of=runs) if each.severity != "note"]
    kind, severity = PLANTED[change]
    assert {(each.kind, each.severity) for each in found} == {(kind, severity)}
    assert {each.where for each in found} == set(runs)
    assert all(each.kind in HONEST and each.severity in SEVERITIES for each in found)


def test_steps_that_grow_evenly_were_typed(looked_at):
    found = looked_at(changed(made_class.study(7), on_a_slope))
    assert {each.where for each in found if (each.kind, each.severity) == ("spread", "serious")} == {
        "ResNet50_w1",
        "ResNet50_w2",
    }


def test_a_study_on_two_environments_is_told(looked_at):
    runs = made_class.study(8)
    runs["ResNet50_w2"].versions = {**runs["ResNet50_w2"].versions, "keras": "3.3.3"}
    assert [(each.kind, each.severity) for each in looked_at(runs)] == [("versions", "look")]


def test_more_speedup_than_workers_is_told(looked_at):
    runs = made_class.study(9)
    runs["ResNet50_w2"] = made_class.study(9, speed=3.0)["ResNet50_w2"]
    assert ("superlinear", "look") in {(each.kind, each.severity) for each in looked_at(runs)}


@pytest.mark.parametrize("text", [b"{", b'{"version": 2, "epochs": 3}', b'{"version": 9, "epochs": []}'])
def test_a_record_that_cannot_be_read_is_told(looked_at, text):
    found = looked_at(made_class.study(10), **{f"{made_class.RUNS}mine.json": text})
    assert [(each.kind, each.where) for each in found if each.severity != "note"] == [("record", "mine")]
    assert "/tmp" not in found[0].seen


def test_a_record_that_stops_one_look_hides_nothing_from_the_others(looked_at):
    runs = changed(made_class.study(14), on_a_line)
    runs["ResNet50_w1"].machine = {**runs["ResNet50_w1"].machine, "cores": [""]}
    runs["ResNet50_w2"].command = ["\0"]
    found = looked_at(runs)
    assert {each.where for each in found if (each.kind, each.severity) == ("spread", "serious")} == set(runs)
    assert any(each.kind == "stopped" for each in found)


def pdf(text):
    """A PDF of one page with this content."""
    stream = zlib.compress(text, 9)
    parts = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    objects = b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, part) for n, part in enumerate(parts, 1))
    return b"%PDF-1.7\n" + objects + b"trailer<</Root 1 0 R>>\n%%EOF"


def test_a_pdf_that_takes_all_memory_is_told_and_stops_nobody():
    tables = {("T5", "Speedup"): [["workers", "speedup"], ["2", "1.57"]]}
    row = b"BT /F 9 Tf (2 1.57) Tj "
    assert list(numbers._pdf(pdf(row + b"ET"), tables)) == []
    (missing,) = numbers._pdf(pdf(b"BT /F 9 Tf (2 1.9) Tj ET"), tables)
    (bomb,) = numbers._pdf(pdf(row + b"(aaaa) Tj " * (6 << 20) + b"ET"), tables)
    assert (missing.severity, bomb.severity) == ("serious", "look") and "memory" in bomb.seen
    (broken,) = numbers._pdf(b"%PDF-1.7", tables)
    assert "it cannot be read (" in broken.seen


# ---- across students ------------------------------------------------------------------------------------


def series(owner, runs):
    return list(copies.series(owner, runs))


def jittered(runs):
    draw = random.Random(1)

    def change(record):
        for epoch in record.epochs:
            epoch.step_seconds = [s * (1 + draw.uniform(-5e-4, 5e-4)) for s in epoch.step_seconds]

    return changed(runs, change)


def in_another_order(runs):
    draw = random.Random(1)

    def change(record):
        steps = [s for epoch in record.epochs[1:] for s in epoch.step_seconds]
        draw.shuffle(steps)
        for epoch in record.epochs[1:]:
            epoch.step_seconds = [steps.pop() for _ in epoch.step_seconds]

    return changed(made_class.scaled(runs, 1.07), change)


def test_two_runs_by_a_coarse_clock_are_no_copies():
    ticks = np.log([0.01, 0.011] * 10), np.log([0.011, 0.01] * 10)
    assert copies.alike(*ticks) is None


COPIES = {
    "as it is": lambda runs: runs,
    "scaled": lambda runs: made_class.scaled(runs, 0.73),
    "scaled, in another order": in_another_order,
    "with a little noise": jittered,
    "a part": lambda runs: changed(runs, shorter),
    "renamed": lambda runs: {f"my_{name}": record for name, record in runs.items()},
}


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_found_at_both_and_the_earlier_one_is_a_note(how):
    runs = made_class.study(11)
    for record in runs.values():
        record.started = "2026-01-01T00:00:00+00:00"
    theirs = changed(COPIES[how](runs), lambda record: setattr(record, "started", "2026-01-02T00:00:00+00:00"))
    found = copies.findings(series("001", runs) + series("002", theirs) + series("003", made_class.study(12)))
    longest = {name for name, record in theirs.items() if len(record.epochs) * record.steps >= 20}
    assert {each.where for each in found["002"]} >= longest and longest
    assert {each.severity for each in found["002"]} == {"serious"}
    assert {each.severity for each in found["001"]} == {"note"} and "003" not in found


def test_the_kits_recorded_runs_are_known_also_when_scaled():
    runs = made_class.recorded_as_own()
    for factor in (1.0, 0.9):
        found = copies.findings(series("001", made_class.scaled(runs, factor)))
        assert {(each.kind, each.severity) for each in found["001"]} == {("recorded", "serious")}
    said = changed(runs, lambda record: setattr(record, "kind", "recorded"))
    assert copies.findings(series("001", said)) == {}


def test_no_pair_that_is_alike_is_passed_over_among_many():
    draw = np.random.default_rng(0)
    steps = [np.log(draw.normal(1, 0.06, draw.integers(12, 40))) for _ in range(30)]
    steps += [np.log(1.07) + draw.permutation(each) for each in steps[::5]]
    steps += [each[:-2] + draw.normal(0.3, 0.001, len(each) - 2) for each in steps[:30:4]]
    runs = [copies.Series(str(n), "run", "measured", None, each) for n, each in enumerate(steps)]
    pairs = [(one, other) for other in range(len(runs)) for one in range(other)]
    alike = {pair for pair in pairs if copies.alike(*(steps[place] for place in pair)) is not None}
    assert len(alike) >= 14 and alike == {pair[:2] for pair in copies._copies(runs)}
    assert {int(owner) for owner in copies.findings(runs)} == {place for pair in alike for place in pair}


def test_a_run_that_stands_twice_is_told_once():
    runs = made_class.study(13)
    found = copies.findings(series("001", runs | {"again": runs["ResNet50_w1"]}))
    assert [(each.kind, each.where) for each in found["001"]] == [("repeated", "ResNet50_w1")]


@pytest.mark.parametrize("smooth", [1e-4, 0.002, 0.06])
def test_no_two_honest_runs_are_copies(smooth):
    runs = [each for seed in range(60) for each in series(str(seed), made_class.study(seed, smooth=smooth))]
    assert len(runs) == 120 and copies.findings(runs) == {}


def test_equal_files_and_answers_are_told_and_equal_scripts_are_not():
    class Course:
        answers = {"T5": "The speedup is 1.6. " * 20}

    class Work:
        course = Course()
        contents = made_class.written(made_class.study(1)) | {"notebooks/scripts/ResNet50.py": b"x" * 999}

    found = copies.equal_files({number: copies.prints(Work) for number in ("001", "002")})
    assert {each.where for each in found["001"]} == {"the answer to T5"} == {each.where for each in found["002"]}
    Work.contents = made_class.written(made_class.study(1), with_records=False)
    found = copies.equal_files({number: copies.prints(Work) for number in ("001", "002")})
    names = {"ResNet50_w1.out", "ResNet50_w2.out", "the answer to T5"}
    assert {each.where for each in found["001"]} == names and all("002" in each.seen for each in found["001"])


# ---- thousands of records -------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """counted(owner, name): how often that function was called, as a list of one number."""

    def counted(owner, name):
        calls, real = [0], getattr(owner, name)

        def count(*args, **options):
            calls[0] += 1
            return real(*args, **options)

        monkeypatch.setattr(owner, name, count)
        return calls

    return counted


def many(count, copied=False):
    """A study of many runs on 2 workers, {name: Run}: each with noise of its own, or all of them copies."""
    draw, (one, two) = random.Random(3), made_class.study(3).values()
    runs = {"ResNet50_w1": one}
    for number in range(2, count + 1):
        runs[f"ResNet50_w{number}"] = record = two.model_copy(deep=True, update={"name": f"ResNet50_w{number}"})
        for epoch in record.epochs if not copied else ():
            epoch.step_seconds = [s * draw.uniform(0.9, 1.1) for s in epoch.step_seconds]
            epoch.seconds = sum(epoch.step_seconds) + 0.001
    return runs


def test_the_work_grows_with_the_number_of_records_and_not_with_its_square(counted, tmp_path):
    compared, read = counted(metrics, "_measured"), counted(records, "load")
    log, digests = counted(logs, "read"), counted(course, "digest")
    contents = made_class.written(many(120)) | {"notebooks/scripts/ResNet50.py": made_class.script().encode()}
    submission = handed.Submission("001", contents, tmp_path)
    found = evidence.findings(submission)
    assert [each for each in found if each.severity == "serious"] == [] and submission.tables
    assert (compared[0], read[0], log[0], digests[0]) == (120, 120, 120, 1)


def test_many_copies_of_one_run_are_compared_with_the_first_one_and_told_in_one_finding(counted, looked_at):
    compared = counted(copies, "alike")
    found = copies.findings(series("001", many(60, copied=True)))["001"]
    assert [(each.kind, each.where) for each in found] == [("repeated", "ResNet50_w2")]
    assert "and 50 more" in found[0].seen and compared[0] < 120
    twice = [each for each in looked_at(many(60, copied=True)) if each.kind == "counted twice"]
    assert len(twice) == 1 and "55 more hold the same times to the last digit: all but one are copies." in twice[0].seen
