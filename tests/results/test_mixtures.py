"""`labs results` of files that do not all belong together: what is divided, by what, and why the rest is not."""

import json

import pytest

from labs import cli, results

CPU, GPU = {"cpu": "a CPU", "gpus": []}, {"cpu": "a CPU", "gpus": ["a GPU"]}


def write(folder, file, workers, seconds, rounds=0, **fields):
    """A record. rounds: it took turns for so many; else three repeats of a warm-up and a steady epoch."""
    path = folder / f"{file}.json"
    turns = [{"epoch": n, "round": n or None, "seconds": seconds * 1.01 ** (n % 2)} for n in range(rounds + 1)]
    alone = [{"repeat": r, "epoch": e, "seconds": seconds * 1.01**r} for r in range(3) for e in (0, 1)]
    epochs = [epoch | {"images": 512} for epoch in (turns if rounds else alone)]
    how = {"model": "M", "strategy": "mirrored", "workers": workers, "global_batch": 64 * workers, "dataset": "digits"}
    how |= {"image_size": 32} | {key: fields.pop(key) for key in ("model", "strategy", "global_batch") if key in fields}
    how |= {"image_size": fields.pop("image_size")} if "image_size" in fields else {}
    usual = {"kind": "measured", "state": "finished", "machine": CPU, "steps": 8 // workers, "configuration": how}
    path.write_text(json.dumps({"version": 2, "name": file, "epochs": epochs} | usual | fields))


def keras(folder, name, workers, seconds):
    lines = [f"Model M {workers} GPUs", f"Batch_size: {64 * workers}", "Images: 512"]
    lines += [f"Epoch {n}/3\n{8 // workers}/{8 // workers} - {seconds}s - loss: 2.0000" for n in (1, 2, 3)]
    (folder / f"{name}.out").write_text("\n".join(lines) + "\n")


def two_networks_of_which_one_lacks_a_baseline(folder):
    write(folder, "a1", 1, 60, 6, study="s", model="A")
    write(folder, "a2", 2, 40, 6, study="s", model="A")
    write(folder, "b2", 2, 30, 6, study="s", model="B")
    return {"a2": 1.5, "b2": "trained differently: model"}


def a_pair_and_the_larger_run_of_another_pair(folder):
    """The 1-worker run beside w4 was lost."""
    write(folder, "w1", 1, 60, 6, study="s")
    write(folder, "w2", 2, 40, 6, study="s")
    write(folder, "w4", 4, 20, 6, study="t")
    return {"w2": 1.5, "w4": "measured in another study"}


def a_study_of_this_machine_and_one_brought_from_a_cluster(folder):
    for place, machine, one, two in (("laptop", CPU, 60, 40), ("cluster", GPU, 6, 3)):
        write(folder, f"{place}_w1", 1, one, 6, study=place, machine=machine)
        write(folder, f"{place}_w2", 2, two, 6, study=place, machine=machine)
    return {"laptop_w2": 1.5, "cluster_w2": 2.0}


def one_study_with_gpus_for_one_of_the_two_only(folder):
    write(folder, "w1", 1, 60, 6, study="s")
    write(folder, "w2", 2, 3, 6, study="s", machine=GPU)
    return {"w2": "on other hardware"}


def runs_in_turns_beside_runs_one_after_the_other(folder):
    write(folder, "turns_w1", 1, 60, 6, study="s")
    write(folder, "turns_w2", 2, 40, 6, study="s")
    write(folder, "alone_w2", 2, 20)
    return {"turns_w2": 1.5, "alone_w2": "measured in another study"}


def two_jobs_of_one_batch_script(folder):
    for job, one, two in (("7", 60, 40), ("8", 30, 24)):
        (folder / f"ResNet50_{job}.err").write_text("")
        (folder / f"ResNet50_{job}.out").write_text(f"Job {job} on node1\n")
        write(folder, f"ResNet50_{job}_w1", 1, one, job_id=job)
        write(folder, f"ResNet50_{job}_w2", 2, two, job_id=job)
    return {"ResNet50_7_w2": 1.5, "ResNet50_8_w2": 1.25}


def runs_of_no_study(folder):
    write(folder, "monday_w1", 1, 60)
    write(folder, "tuesday_w1", 1, 30)
    write(folder, "tuesday_w2", 2, 20)
    return {"tuesday_w2": "in another file, and no study or job says that they belong together"}


def two_equal_baselines_of_one_job(folder):
    write(folder, "first_w1", 1, 60, job_id="7")
    write(folder, "second_w1", 1, 30, job_id="7")
    write(folder, "w2", 2, 20, job_id="7")
    return {"w2": "could both be its 1-worker run"}


def horovod_beside_mirrored_in_one_study(folder):
    write(folder, "mirrored_w1", 1, 60, study="s")
    write(folder, "horovod_w2", 2, 20, study="s", strategy="horovod")
    return {"horovod_w2": "trained differently: model, strategy"}


def another_size_of_image_and_another_batch(folder):
    write(folder, "small_w1", 1, 60, study="s")
    write(folder, "large_w2", 2, 90, study="s", image_size=64)
    write(folder, "odd_w2", 2, 40, study="s", global_batch=96)
    return {"large_w2": "trained differently", "odd_w2": "its batch is neither the local nor the global one"}


def the_records_of_a_study_and_a_log_from_elsewhere(folder):
    write(folder, "w1", 1, 60, 6, study="s")
    write(folder, "w2", 2, 40, 6, study="s")
    keras(folder, "a_friends", 2, 3)
    return {"w2": 1.5, "a_friends": "measured in another study"}


def a_study_that_was_stopped_after_two_rounds_and_its_second_attempt(folder):
    """The first attempt moved aside; where both are, the later one stands."""
    write(folder, "w1.1", 1, 60, 2, study="s", name="w1", state="stopped")
    write(folder, "w2.1", 2, 20, 2, study="s", name="w2", state="stopped")
    write(folder, "w1", 1, 60, 6, study="t")
    write(folder, "w2", 2, 40, 6, study="t")
    return {"w2": 1.5}


def a_baseline_that_never_came_to_a_steady_epoch(folder):
    write(folder, "w1", 1, 60, study="s", state="failed", epochs=[{"epoch": 0, "seconds": 60.0, "images": 512}])
    write(folder, "w2", 2, 40, 6, study="s")
    return {"w2": "without a steady epoch"}


MIXTURES = [
    two_networks_of_which_one_lacks_a_baseline,
    a_pair_and_the_larger_run_of_another_pair,
    a_study_of_this_machine_and_one_brought_from_a_cluster,
    one_study_with_gpus_for_one_of_the_two_only,
    runs_in_turns_beside_runs_one_after_the_other,
    two_jobs_of_one_batch_script,
    runs_of_no_study,
    two_equal_baselines_of_one_job,
    horovod_beside_mirrored_in_one_study,
    another_size_of_image_and_another_batch,
    the_records_of_a_study_and_a_log_from_elsewhere,
    a_study_that_was_stopped_after_two_rounds_and_its_second_attempt,
    a_baseline_that_never_came_to_a_steady_epoch,
]


@pytest.mark.parametrize("mixture", MIXTURES, ids=lambda mixture: mixture.__name__)
def test_only_what_belongs_together_is_divided_and_the_rest_says_why(tmp_path, mixture, capsys):
    wanted = mixture(tmp_path)
    found = {run.source.rpartition(".")[0]: run for run in results.load(tmp_path) if run.workers != 1}
    assert set(found) == set(wanted)
    for name, expected in wanted.items():
        run, notes = found[name], " ".join(found[name].notes)
        if isinstance(expected, str):
            assert run.speedup.value is None and run.efficiency.value is None and expected in notes
        else:
            assert run.speedup.value == pytest.approx(expected, rel=1e-6)
            assert ("not paired" in notes) == (not run.rounds)
    assert cli.main(["results", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(expected in said for expected in wanted.values() if isinstance(expected, str))
