"""Input: a node's host feeds its workers. Where it is known, where it is not, and what runs say of it."""

import json
from unittest import mock

import pytest
from simulated_study import Truth, facts

from labs import cli
from labs.costs import CostError, Parameter, command, fit, load_machine, predict_from_fit, predict_from_machine
from labs.costs.observe import Observation, input_seconds
from labs.models import counts

NET = facts("Unmeasured", image_size=224)
SMALL = facts("Small", 25_000_000, 4e9)


def ask(workers, machine="cte-power", network=NET, **options):
    with mock.patch.object(counts, "of", lambda *_: network):
        return predict_from_machine(network.model, network, load_machine(machine), workers, 64, **options)


def fitted(observations):
    return fit(observations, lambda *_: SMALL)


def truth_of(host_in_steps_of_4, **options):
    """A machine whose host needs so many steps of one worker for the images of four."""
    return Truth(host=host_in_steps_of_4 * Truth().computation(SMALL, 64) / 256, **options)


def test_a_step_is_as_long_as_the_longer_of_its_workers_and_its_host():
    free = ask(4)
    seconds = free.step_seconds.value / 256
    for share in (0.5, 0.99, 1.0, 1.5, 4.0):
        found = ask(4, input=share * seconds)
        parts = found.breakdown
        assert found.step_seconds.value == pytest.approx(max(1, share) * free.step_seconds.value)
        assert parts.input_whole == pytest.approx(share * free.step_seconds.value)
        assert parts.input == pytest.approx(max(0, share - 1) * free.step_seconds.value)
        assert parts.step == pytest.approx(parts.computation + parts.stragglers + parts.exposed + parts.input)


def test_the_workers_of_a_node_share_its_host_and_nodes_do_not():
    """Bound from 2 workers on: 4 of a node are as fast as 2, 8 on two nodes twice as fast."""
    seconds = ask(1).step_seconds.value / 64 / 2
    rates = {workers: ask(workers, input=seconds).images_per_second.value for workers in (1, 2, 4, 8)}
    assert rates[4] == pytest.approx(1 / seconds) == pytest.approx(rates[2], rel=0.1)
    assert rates[8] == pytest.approx(2 * rates[4]) and rates[1] == pytest.approx(rates[4] / 2)


def test_a_host_that_one_worker_waits_for_gives_no_speedup_in_a_node():
    seconds = 2 * ask(1).step_seconds.value / 64
    found = ask(4, input=seconds)
    assert found.speedup.value == pytest.approx(1) and found.efficiency.value == pytest.approx(0.25)
    assert ask(4, input=seconds, accumulation=3).efficiency.value == pytest.approx(0.25)


def test_two_networks_of_one_host_scale_differently():
    heavy, seconds = facts("Heavy", multiply_adds=12e9, activation_bytes=160e6, image_size=224), None
    seconds = 0.6 * ask(1).step_seconds.value / 64
    light = ask(4, input=seconds).efficiency.value
    other = ask(4, network=heavy, input=seconds)
    assert light < 0.45 and other.efficiency.value > light + 0.3


def test_input_that_is_not_known_is_said_in_text_and_json():
    found = ask(4)
    told = found.as_dict()["input"]
    assert told["known"] == "no" and told["fed_images_per_second"] is None
    assert told["needed_images_per_second"] == pytest.approx(found.images_per_second.value)
    assert found.notes[0].startswith("assumption: input is left out") and "--input" in found.notes[0]
    text = command.text(found)
    assert "Note: assumption: input is left out" in text and "interval], if the host feeds a node" in text
    # of a node, not of all
    assert ask(8).as_dict()["input"]["needed_images_per_second"] == pytest.approx(ask(8).images_per_second.value / 2)


def test_input_that_is_known_is_told_where_it_limits():
    slow, fast = (ask(4, input=seconds) for seconds in (1.0, 1e-9))
    assert slow.as_dict()["input"]["known"] == fast.as_dict()["input"]["known"] == "yes"
    assert slow.notes[0].startswith("input limits the step: the host feeds a node 1 images/s")
    assert not any("input" in note for note in fast.notes)
    assert "waiting for input" in command.text(slow) and "Predicted [95 % interval]:" in command.text(slow)


def test_a_machines_file_may_know_its_input(tmp_path):
    text = """
        [device]
        base = "V100"
        [node]
        devices = 4
        bandwidth = "50 GB/s"
        input = { value = "5 ms", range = ["4 ms", "6 ms"], source = "timed" }
    """
    (tmp_path / "mine.toml").write_text(text)
    found = ask(4, machine=tmp_path / "mine.toml")
    assert found.images_per_second.value == pytest.approx(200)
    low, high = found.images_per_second.interval
    assert low <= 1 / 0.006 and 240 < high < 300
    assert found.as_dict()["parameters"]["input"]["source"] == "timed"
    (tmp_path / "mine.toml").write_text(text.replace('"5 ms"', '"5 GB"'))
    with pytest.raises(CostError, match="node.input is '5 GB': it must be"):
        load_machine(tmp_path / "mine.toml")


# The command


@pytest.fixture
def predicted(monkeypatch, capsys):
    monkeypatch.setattr(counts, "of", lambda name, image_size=224, classes=1000: facts(name, image_size=image_size))

    def run(*words):
        asked = [
            "predict",
            "--model",
            "ResNet50",
            "--workers",
            "4",
            "--machine",
            "cte-power",
            "--json",
            *map(str, words),
        ]
        command.run(cli.LABS.parser().parse_args(asked))
        return json.loads(capsys.readouterr().out)

    return run


def test_the_command_takes_seconds_or_a_breakdown(predicted, tmp_path):
    file = tmp_path / "a.breakdown.json"
    file.write_text(json.dumps({"ranks": 2, "local_batch": 50, "pipeline_seconds": [0.4, 0.6]}))
    by_number, by_file = predicted("--input", 0.005), predicted("--input", file)
    assert by_number["images_per_second"] == pytest.approx(200) == by_file["images_per_second"]
    assert by_number["breakdown_seconds"]["input"] > 0 and by_number["input"]["known"] == "yes"
    assert by_file["parameters"]["input"]["interval"] == pytest.approx([0.004, 0.006])


def test_input_that_is_none(predicted, tmp_path):
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "unread.json").write_text('{"ranks": 2, "local_batch": 50, "pipeline_seconds": []}')
    wrong = {"x.json": "neither a number of seconds", -1: "input is -1", "nan": "nan"}
    wrong |= {tmp_path / name: "No reading of batches" for name in ("list.json", "unread.json")}
    for given, says in wrong.items():
        with pytest.raises(Exception, match=says) as caught:
            predicted(f"--input={given}")
        assert caught.value.code == 2 and "\n" not in str(caught.value)


# From runs


def test_runs_show_what_a_host_feeds_at_least():
    truth = Truth(noise=0.0)
    found = fitted([truth.observe(SMALL, k, 64) for k in (1, 2)]).networks["Small"].input
    assert found.value == 0 and found.interval == (0.0, pytest.approx(truth.step(SMALL, 2, 64) / 128))


def test_beyond_the_runs_the_interval_holds_a_host_that_feeds_no_more():
    truth = Truth(noise=0.0)
    found = fitted([truth.observe(SMALL, k, 64) for k in (1, 2)])
    inside, beyond = (predict_from_fit(found, "Small", k, 64) for k in (2, 4))
    assert inside.as_dict()["input"]["known"] == "at least" and not any("host" in note for note in inside.notes)
    assert beyond.notes[0].startswith("assumption: the host feeds a node")
    assert beyond.step_seconds.interval[1] >= 2 * truth.step(SMALL, 2, 64)
    low, high = beyond.as_dict()["input"]["intervals_if_fed"]["step_seconds"]
    assert low < beyond.step_seconds.value < high < 1.5 * beyond.step_seconds.value
    known = predict_from_fit(found, "Small", 4, 64, input=1e-9)
    assert known.step_seconds.interval[1] == pytest.approx(high, rel=1e-6)
    there = predict_from_fit(found, "Small", 4, 64, machine=load_machine("cte-power"))
    assert there.as_dict()["input"]["known"] == "no"


def test_runs_that_the_host_limits_say_nothing_of_communication():
    truth = truth_of(3.0)
    rows = [truth.seen(SMALL, k, 64, [truth.run(SMALL, k, 64)] * 2, input=(truth.host,) * 3) for k in (1, 2, 4)]
    network = fitted(rows).networks["Small"]
    assert network.input.value == pytest.approx(truth.host)
    assert sum("says nothing of communication" in note for note in network.notes) == 2 and network.exposed is None


def test_steps_from_memory_show_no_host():
    row = Truth().observe(SMALL, 1, 64)
    memory = Observation(**{**vars(row), "fed": False})
    assert fitted([memory]).networks["Small"].input is None


def test_nodes_have_a_host_each():
    row = Truth(noise=0.0).observe(SMALL, 8, 64)
    assert row.node_images == 512 and Observation(**{**vars(row), "nodes": 2}).node_images == 256


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("host", [0.0, 1.25, 2.2, 5.0])
def test_one_run_each_on_1_and_2_workers_predicts_4(host, known):
    """Logs in whole seconds, one run each, of nodes whose host limits nothing, 4 workers, 2, or 1: 95 % intervals hold
    the run on 4 workers, its noise and its rounding."""
    hits, seeds = 0, 60
    for seed in range(seeds):
        truth = truth_of(host, noise=0.04, seed=seed)
        found = fitted([truth.logged(SMALL, k, 64) for k in (1, 2)])
        given = Parameter(truth.host, "s/image", (0.95 * truth.host, 1.05 * truth.host)) if known else None
        told = predict_from_fit(found, "Small", 4, 64, input=given)
        low, high = told.step_seconds.interval
        hits += low <= truth.logged(SMALL, 4, 64).seconds[0] <= high
        real = truth.step(SMALL, 1, 64) / truth.step(SMALL, 4, 64)
        hits += told.efficiency.interval[0] <= real <= told.efficiency.interval[1]
    print(f"host {host}, known {known}: {hits / 2 / seeds:.0%}")
    assert hits / 2 / seeds > 0.9


def test_a_breakdown_says_what_its_host_needs():
    assert input_seconds({"ranks": 2, "local_batch": 10, "pipeline_seconds": [0.2, 0.4]}) == pytest.approx((0.01, 0.02))
