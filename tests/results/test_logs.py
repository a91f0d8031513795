"""Logs of Keras 2 and 3 in their true formats; keras3*.out were printed by Keras 3.15, the others follow theirs."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from labs import recorded
from labs.results import failures, log, text

DATA = Path(__file__).parents[1] / "data" / "logs"
RECORDED = recorded.CTE_POWER
HEADER = "Model ResNet50V2 2 GPUs\nBatch_size: 512\nN_replicas: 2\n"


def epochs(*rows, planned=None):
    """Lines of TensorFlow 2 for rows of (steps, seconds, loss, accuracy)."""
    return "".join(
        f"Epoch {n}/{planned or len(rows)}\n{s}/{s} - {t}s - loss: {loss:.4f} - accuracy: {a:.4f}\n"
        for n, (s, t, loss, a) in enumerate(rows, 1)
    )


TWO = epochs((98, 26, 2.0, 0.25), (98, 24, 1.7, 0.36))


def read(text, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_bytes(text.encode())
        return log.read(path, **options)


def times(run, repeat=0):
    return [epoch.seconds for epoch in run.repeats[repeat]]


def test_recorded_log_holds_the_three_runs_of_cte_power():
    runs = log.read(RECORDED)
    assert [(r.model, r.workers, r.configuration.global_batch, r.configuration.local_batch, r.steps) for r in runs] == [
        ("ResNet50V2", 1, 256, 256, 196),
        ("ResNet50V2", 2, 512, 256, 98),
        ("ResNet50V2", 4, 1024, 256, 49),
    ]
    assert [times(r) for r in runs] == [[49, 45, 45, 45, 45], [26, 24, 24, 24, 24], [14, 12, 12, 12, 12]]
    assert [e.metrics["loss"] for e in runs[2].repeats[0]] == [2.0557, 1.7348, 1.5696, 1.4609, 1.3689]
    assert [e.metrics["accuracy"] for e in runs[1].repeats[0]] == [0.2498, 0.3641, 0.4207, 0.4686, 0.5049]
    assert {e.resolution for r in runs for e in r.repeats[0]} == {1.0}
    assert [(r.kind, r.dataset_images, r.truncated, r.failure) for r in runs] == [("recorded", None, False, None)] * 3
    assert [r.index for r in runs] == [1, 2, 3]


def test_keras2_with_step_times_commands_headers_and_evaluate():
    one, two = log.read(DATA / "keras2.out")
    assert (one.model, one.workers, one.configuration.global_batch, one.steps) == ("ResNet50", 1, 256, 196)
    assert (two.model, two.workers, two.configuration.global_batch, two.steps) == ("ResNet50", 2, 512, 98)
    assert times(one) == pytest.approx([196 * 0.251, 196 * 0.229, 196 * 0.230])
    assert two.repeats[0][1].resolution == pytest.approx(98e-3)
    assert len(two.repeats[0]) == 3, "the line of evaluate is no epoch"
    assert one.notes == two.notes == []


def test_keras3_repeats_of_one_run():
    (run,) = log.read(DATA / "keras3.out")
    assert (
        run.model,
        run.configuration.strategy,
        run.workers,
        run.dataset_images,
        run.configuration.learning_rate,
    ) == ("SmallCNN", "mirrored", 2, 1000, 0.02)
    assert [len(repeat) for repeat in run.repeats] == [3, 3]
    assert times(run)[0] == pytest.approx(8 * 0.049)
    assert run.repeats[1][2].metrics == {"accuracy": 0.0940, "loss": 2.3262}


@pytest.mark.parametrize("name, seconds", [("keras2_bars", [53, 45, 45]), ("keras3_bars", [1, 0])])
def test_progress_bars_give_whole_seconds(name, seconds):
    """With verbose=1, Keras' ms/step leaves out the first step: it is not the epoch's time."""
    (run,) = log.read(DATA / f"{name}.out")
    assert times(run) == seconds
    assert any("whole seconds only" in note for note in run.notes)
    assert run.steps == {"keras2_bars": 196, "keras3_bars": 10}[name]


@pytest.mark.parametrize("name", ["horovod", "horovod_times", "mpirun_tagged", "srun_label", "mpiexec_prepend"])
def test_rank_prefixes_interleaved_give_rank_0(name):
    (run,) = log.read(DATA / f"{name}.out")
    assert [epoch.metrics["accuracy"] for epoch in run.repeats[0]] == [0.15, 0.30, 0.40]
    assert times(run) == pytest.approx([14 * 0.640, 14 * 0.301, 14 * 0.299])
    assert (run.workers, run.strategy) == (2, "horovod")


def test_lowest_rank_with_epochs_and_workers_are_not_guessed_from_prefixes():
    text = "".join(f"[{rank}]<stdout>:{line}\n" for line in TWO.splitlines() for rank in (3, 2))
    (run,) = read("[0]<stdout>:starting\n" + text)
    assert len(run.repeats[0]) == 2
    assert run.workers is None


def test_ranks_without_prefix_are_refused():
    text = "".join(line + "\n" + line + "\n" for line in TWO.splitlines())
    with pytest.raises(log.LogError, match="begins twice: several ranks"):
        read(text)


def test_headers_printed_by_every_rank_are_one_run():
    (run,) = read(HEADER * 2 + TWO)
    assert run.workers == 2 and run.notes == []


def test_counter_that_starts_again_is_another_run_of_which_nothing_is_known():
    first, second = read(HEADER + TWO + TWO)
    assert (first.workers, second.workers, second.model, second.configuration.global_batch) == (2, None, None, None)
    assert "counter began again" in second.notes[0]


def test_repeats_and_missing_repeats():
    (run,) = read(HEADER + TWO + "Learning_rate: 0.02\nRepeat 2 of 3\n" + TWO)
    assert [len(repeat) for repeat in run.repeats] == [2, 2]
    assert run.truncated, "the third repeat is missing"
    (run,) = read(HEADER + TWO + "Repeat 2 of 2\n" + TWO)
    assert not run.truncated


def test_learning_rate_lines_between_epochs_do_not_split_a_run():
    (run,) = read(HEADER + TWO.replace("Epoch 2/2", "Learning_rate: 0.005\nEpoch 2/2"))
    assert len(run.repeats[0]) == 2 and run.workers == 2


@pytest.mark.parametrize(
    "end, seconds, resolution",
    [
        ("196/196 - 45s - loss: 1.7626 - accuracy: 0.3536", 45.0, 1.0),
        ("196/196 - 45s - 229ms/step - accuracy: 0.3536 - loss: 1.7626", 44.884, 0.196),
        ("196/196 - 45s - loss: 1.7626 - accuracy: 0.3536 - 45s/epoch - 229ms/step", 44.884, 0.196),
        ("196/196 - 392s - 2s/step - accuracy: 0.3536 - loss: 1.7626", 392.0, 1.0),
        ("196/196 - 0s - 950us/step - accuracy: 0.3536 - loss: 1.7626", 0.1862, 0.000196),
        ("268/268 - 1s - loss: 0.5686 - accuracy: 0.7198 - 514ms/epoch - 2ms/step", 0.514, 0.001),
        ("2000/2000 - 45s - 23ms/step - accuracy: 0.3536 - loss: 1.7626", 45.0, 1.0),  # ms/step is coarser
        ("196/196 - 45s - 150ms/step - accuracy: 0.3536 - loss: 1.7626", 45.0, 1.0),  # they disagree
        ("196/196 - 45s 229ms/step - loss: 1.7626 - accuracy: 0.3536", 44.884, 0.196),
    ],
)
def test_finest_consistent_time(end, seconds, resolution):
    epoch = read(f"Epoch 1/1\n{end}\n")[0].repeats[0][0]
    assert (epoch.seconds, epoch.resolution) == (pytest.approx(seconds), pytest.approx(resolution))
    assert epoch.metrics["accuracy"] > 0


def test_disagreeing_times_are_noted():
    (run,) = read("Epoch 1/1\n196/196 - 45s - 150ms/step - loss: 1.7626\n")
    assert any("disagree" in note for note in run.notes)


def test_not_a_number_carriage_returns_and_foreign_bytes():
    (run,) = log.read(DATA / "crlf_latin1.out")
    losses = [epoch.metrics["loss"] for epoch in run.repeats[0]]
    assert losses[0] == 2.0408 and losses[1] != losses[1]
    assert (run.workers, run.configuration.global_batch, len(losses)) == (1, 256, 3)


def test_utf16_of_powershell(tmp_path):
    path = tmp_path / "a.out"
    path.write_bytes((HEADER + TWO).encode("utf-16"))
    assert log.read(path)[0].workers == 2


def test_truncated_in_the_middle_of_a_line():
    (run,) = log.read(DATA / "truncated.out")
    assert run.truncated and len(run.repeats[0]) == 2
    assert "not finished" in run.notes[0]


def test_cut_anywhere_never_invents_a_number():
    """Whatever is left of the log, each epoch that is read is one of the whole log's."""
    whole = HEADER + TWO
    known = [(e.seconds, e.metrics) for e in read(whole)[0].repeats[0]]
    for cut in range(1, 57):
        (run,) = read(whole[:-cut])
        found = [(e.seconds, e.metrics) for e in run.repeats[0]]
        assert found == known[: len(found)] and len(found) >= 1, cut
        assert run.truncated == (len(found) < 2), cut


def test_a_last_line_without_its_break_counts_only_where_nothing_can_be_missing():
    (run,) = read((HEADER + TWO)[:-1])
    assert len(run.repeats[0]) == 1 and run.truncated, "digits, an exponent or val_loss may be missing"
    whole = TWO.replace("\n", " - 24s/epoch - 250ms/step\n").replace("/2 - 24s/epoch - 250ms/step", "/2")
    (run,) = read((HEADER + whole)[:-1])
    assert len(run.repeats[0]) == 2 and not run.truncated


def test_early_stopping_is_not_truncated():
    assert read(epochs((98, 26, 2, 0.2), planned=5))[0].truncated
    assert not read(epochs((98, 26, 2, 0.2), planned=5) + "Epoch 1: early stopping\n")[0].truncated


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Model ResNet50 2 GPUs", {"model": "ResNet50", "workers": 2}),
        ("Model ResNet50V2 1 worker", {"model": "ResNet50V2", "workers": 1}),
        ("Batch_size: 512", {"global_batch": 512}),
        ("Local_batch: 64", {"local_batch": 64}),
        ("N_replicas: 4", {"workers": 4}),
        ("Strategy: mirrored", {"strategy": "mirrored"}),
        ("Learning_rate: 0.02", {"learning_rate": 0.02}),
    ],
)
def test_headers(text, expected):
    assert log.header(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        'Model: "functional"',
        "Model on 4 GPUs",
        "Model: sequential",
        "Batch size: 32",
        "Batch_size: auto",
        "Batch_size: 0",
        "N_replicas: -2",
        "Total params: 25,583,592",
        "Reading train.py",
        "I use python and batch_size 4",
        "Loss: 0.5686, Accuracy: 0.7",
    ],
)
def test_lines_that_say_nothing_certain(text):
    assert log.header(text) == {}


def test_contradictions_are_not_resolved_by_guessing():
    (run,) = read("Model ResNet50V2 2 GPUs\nN_replicas: 4\nBatch_size: 512\n" + TWO)
    assert run.workers is None and run.configuration.local_batch is None
    assert any("workers as 2 and as 4" in note for note in run.notes)


def test_options_fill_gaps_and_the_file_wins():
    (run,) = read(HEADER + TWO, workers=4, images=50000, model="ResNet50V2")
    assert (run.workers, run.dataset_images) == (2, 50000)
    assert run.notes == ["workers is 2 in the file, 4 in the option: the file is used"]
    (run,) = read(TWO)
    assert (run.model, run.workers, run.configuration.global_batch, run.dataset_images) == (None, None, None, None)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "empty"),
        ("\n \n", "empty"),
        ("hello\nworld\n", "no line that the kit knows in its 2 lines"),
        (HEADER + "Epoch 1/5\n", "epoch 1 is not finished"),
        ("Traceback (most recent call last):\n  File x\nModuleNotFoundError: No module 'keras'\n", "import error"),
        ("10/10 - 1s - 100ms/step\n", "no line that the kit knows"),  # predict
    ],
)
def test_log_without_an_epoch_says_what_is_there(tmp_path, text, message):
    (tmp_path / "a.out").write_text(text)
    with pytest.raises(log.LogError, match=message) as error:
        log.read(tmp_path / "a.out")
    assert "a.out" in str(error.value) and "\n" not in str(error.value)


def test_missing_log_and_folder(tmp_path):
    for path in (tmp_path / "no.out", tmp_path):
        with pytest.raises(log.LogError, match="cannot be read"):
            log.read(path)


def test_out_of_memory_is_named_with_its_line():
    with pytest.raises(log.LogError, match=r"out of memory \(oom.err, line 4: .*Halve the batch"):
        log.read(DATA / "oom.out")
    found = failures.failure(DATA / "oom.err")
    assert (found["kind"], found["line_number"]) == ("out of memory", 4)
    assert "OOM when allocating tensor with shape[512,256,32,32]" in found["line"]
    assert failures.failure(DATA / "oom.err") == found


def test_failure_belongs_to_the_run_that_did_not_end(tmp_path):
    (tmp_path / "a.out").write_text(HEADER.replace("2", "1", 1) + TWO + "Model ResNet50V2 4 GPUs\nEpoch 1/2\n")
    (tmp_path / "a.err").write_text((DATA / "oom.err").read_text())
    first, second = log.read(tmp_path / "a.out")
    assert first.failure is None
    assert second.failure["kind"] == "out of memory" and second.failure["file"] == "a.err"
    assert (second.workers, second.repeats, second.truncated) == (4, [], True)


FAILURES = {
    "OOM when allocating tensor with shape[256,64]": "out of memory",
    "ResourceExhaustedError: Graph execution error:": "out of memory",
    "E cuda_driver.cc:806] failed to allocate 15.75G: CUDA_ERROR_OUT_OF_MEMORY: out of memory": "out of memory",
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 50574351.batch cgroup. Some of": "out of memory",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks": "out of memory",
    "srun: error: n1: task 0: Out Of Memory": "out of memory",
    "MemoryError": "out of memory",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9.1 GiB for an array": "out of memory",
    "terminate called after throwing an instance of 'std::bad_alloc'": "out of memory",
    "ModuleNotFoundError: No module named 'tensorflow'": "import error",
    "ImportError: libcudart.so.10.1: cannot open shared object file: No such file or directory": "import error",
    "python: can't open file 'ResNet50.py': [Errno 2] No such file or directory": "missing file",
    "FileNotFoundError: [Errno 2] No such file or directory: 'data'": "missing file",
    "slurm_script: line 9: python: command not found": "missing file",
    "Traceback (most recent call last):\n  File x\nValueError: bad shape": "python error",
    "Traceback (most recent call last):\n  File x\nKeyboardInterrupt": "cancelled",
    "Traceback (most recent call last):\n  File x\nSystemExit: 143": "cancelled",
    "Traceback (most recent call last):\n  File x\nSystemExit: 14": "python error",
    "slurm_script: line 33: 430069 Killed                  python ResNet50.py": "killed",
    "=   KILLED BY SIGNAL: 9 (Killed)": "killed",
    "slurmstepd: error: *** JOB 10711368 ON c0617 CANCELLED AT 2024-09-30T16:00:24 ***": "cancelled",
    "slurmstepd: error: *** JOB 1 ON c0617 CANCELLED AT 2024-09-30T16:00:24 DUE TO TIME LIMIT ***": "time limit",
    "srun: error: Unable to allocate resources: Invalid account": "job error",
}


@pytest.mark.parametrize("text, kind", FAILURES.items())
def test_failures(text, kind):
    for prefix in ("", "[1]<stderr>:", "[1,0]<stderr>:", "0: "):
        lines = [prefix + line for line in ["starting", *text.split("\n"), "done"]]
        found = failures.failure("\n".join(lines))
        assert found["kind"] == kind, prefix
        assert found["line"] == lines[found["line_number"] - 1] and found["advice"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all is well",
        "W bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2GiB with freed_by_count=0."
        " The caller indicates that this is not a failure, but",
        "dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory",
        "I local_rendezvous.cc:405] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence",
        "Note: Killed processes are listed below\n",
    ],
)
def test_no_failure(text):
    assert failures.failure(text) is None


def test_failure_of_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError):
        failures.failure(Path("no/such.err"))


def test_root_cause_is_not_the_echo_of_other_ranks():
    text = """[1]<stderr>:Traceback (most recent call last):
[0]<stderr>:Traceback (most recent call last):
[1]<stderr>:  File "t.py", line 3
[0]<stderr>:  File "t.py", line 9
[1]<stderr>:ValueError: bad shard
[0]<stderr>:horovod.common.exceptions.HorovodInternalError: peer died
srun: error: n1: task 1: Exited with exit code 1"""
    assert failures.failure(text)["line"] == "[1]<stderr>:ValueError: bad shard"


@pytest.mark.parametrize(
    "file, kind, line",
    [
        ("horovodrun_exception.err", "python error", "[1]<stderr>:KeyError: 'a bug of rank 1'"),
        ("mpiexec_exception.err", "python error", "KeyError: 'a bug of rank 1'"),
        ("horovodrun_kill.err", "killed", "[1]<stderr>:Killed"),
        ("mpiexec_kill.out", "killed", "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"),
    ],
)
def test_rank_that_failed_first_is_named_and_not_the_launcher(file, kind, line):
    """Logs of two ranks, of which the second raised an exception or was killed; the launcher adds its own words."""
    found = failures.failure(DATA / file)
    assert (found["kind"], found["line"]) == (kind, line)
    assert (DATA / file).read_text().splitlines()[found["line_number"] - 1] == line


def test_without_another_word_the_echo_is_the_failure():
    text = "".join(
        f"[0]<stderr>:{line}\n"
        for line in (
            "Traceback (most recent call last):",
            '  File "t.py", line 9',
            "errors_impl.UnknownError: Graph execution error:",
            "",
            "Horovod has been shut down. This was caused by an exception on one of the ranks",
        )
    )
    found = failures.failure(text)
    assert found["kind"] == "job error" and found["line_number"] == 5 and ".out" in found["advice"]


def test_last_exception_of_the_rank_that_failed_first():
    text = """[1]<stderr>:Traceback (most recent call last):
[1]<stderr>:KeyError: 'x'
[1]<stderr>:During handling of the above exception, another exception occurred:
[1]<stderr>:Traceback (most recent call last):
[1]<stderr>:ValueError: no x
[0]<stderr>:Traceback (most recent call last):
[0]<stderr>:OSError: closed
Traceback (most recent call last):
RuntimeError: Horovod detected that one or more processes exited with non-zero status"""
    assert failures.failure(text)["line"] == "[1]<stderr>:ValueError: no x"


def test_refused_allocation_of_a_run_that_went_on_is_no_failure(tmp_path):
    (tmp_path / "a.out").write_text(HEADER + TWO)
    (tmp_path / "a.err").write_text("E failed to allocate 15.75G: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n")
    assert log.read(tmp_path / "a.out")[0].failure is None


def test_line_of_predict_and_bars_in_progress_are_no_results():
    for said in ("10/10 - 1s - 100ms/step", "  5/196 [>....] - ETA: 44s - loss: 2.0", "5/196 - 2s - loss: 2.0000"):
        assert log.result(said.strip()) is None


FILLERS = {
    "numbers": "0.125\n",
    "bars": "10/28 [===>....] - ETA: 3s - loss: 1.2345\n",
    "predict": "28/28 [========] - 0s 20ms/step\n",
    "one line": "=" * 5000 + "\b\r",
}


@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
def test_a_large_log_holds_the_same_runs_as_without_what_stands_between(tmp_path, monkeypatch, filler):
    monkeypatch.setattr(text, "PIECE", 2**12)
    second = HEADER.replace("2 GPUs", "4 GPUs").replace("512", "1024").replace("N_replicas: 2", "N_replicas: 4")
    begun, ended = TWO.split("Epoch 2")
    parts = [HEADER + begun, "Epoch 2" + ended, second + begun, "Epoch 2" + ended, ""]
    much = filler * (2**15 // len(filler)) + "\n"
    (tmp_path / "plain.out").write_text("".join(parts))
    (tmp_path / "large.out").write_text(much.join(parts))
    plain, large = (log.read(tmp_path / f"{name}.out") for name in ("plain", "large"))
    assert [run.repeats for run in large] == [run.repeats for run in plain]
    assert [run.configuration for run in large] == [run.configuration for run in plain]
    assert [run.configuration.global_batch for run in large] == [512, 1024]


@pytest.mark.slow
def test_a_large_log_is_not_held_in_memory(tmp_path):
    with (tmp_path / "a.out").open("w") as file:
        file.write(TWO.split("Epoch 2")[0])
        for _ in range(40):
            file.write(FILLERS["numbers"] * (2**20 // 6))
        file.write("Epoch 2" + TWO.split("Epoch 2")[1])
    code = (  # getrusage would count what the process that started it held
        "import re, sys; from labs import cli; code = cli.main(['results', '--json', sys.argv[1]])\n"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1]) // 1024); sys.exit(code)"
    )
    words = [sys.executable, "-c", code, tmp_path / "a.out"]
    *said, memory = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads("".join(said))["runs"][0]["final_loss"] == 1.7 and int(memory) < 300


def test_a_log_without_any_run_beside_a_record_is_no_crash(tmp_path):
    (record,) = recorded.laptop_two_networks()[:1]
    (tmp_path / "silent.json").write_bytes(record.read_bytes())
    (tmp_path / "silent.out").write_text("nothing about a run\n")
    with pytest.raises(log.LogError, match=r"silent\.out: no line that the kit knows in its 1 line"):
        log.read(tmp_path / "silent.out")
