"""What scripts do when they are tried out is recorded by the code of today."""

import json

import facts
import pytest

WHAT = "facts.json was made by another try-out: scripts are tried out one by one until you run `make facts`"


def test_facts_were_recorded_with_the_try_out_of_today():
    told = json.loads(facts.FILE.read_text())
    assert told["made_by"] == facts.made_by(), WHAT
    assert len(told["facts"]) > 100 and all(told["facts"].values())


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """asked(mode) -> (function that tries a script out, how often the try-out itself was asked)."""
    monkeypatch.setattr(facts, "FILE", tmp_path / "facts.json")
    script, lives, others = tmp_path / "train.py", [], []
    script.write_text("print(1)\n")

    def live(request):
        lives.append(request)
        return [{"log": "1 s", "record": None, "stopped": "stop" in script.read_text(), "error": {"says": str(script)}}]

    def asked(mode, **plays):
        recorded = facts.Facts(live, tmp_path / "new.jsonl", mode)
        found = recorded.ask({"script": str(script), "plays": [plays], "folder": "/tmp/x"})
        others.extend(recorded.others)
        return found, len(lives)

    return asked, script, tmp_path / "new.jsonl", others


def test_what_was_recorded_is_told_again_for_the_same_script_only(asked):
    ask, script, new, others = asked
    first, count = ask("record", size=4)
    assert count == 1
    facts.keep(new)
    assert ask(None, size=4) == (first, 1)
    assert ask(None, size=2)[1] == 2  # played in another way
    script.write_text("print(2)\n")
    assert ask(None, size=4)[1] == 3
    (script.parent / "beside.py").write_text("")
    script.write_text("print(1)\n")
    assert ask(None, size=4)[1] == 4  # it might import what stands beside it


def test_nothing_that_another_try_out_recorded_counts(asked, monkeypatch):
    ask, script, new, others = asked
    ask("record")
    facts.keep(new)
    monkeypatch.setattr(facts, "made_by", lambda: "another")
    assert ask(None)[1] == 2


def test_a_script_that_was_stopped_is_recorded_but_not_compared(asked):
    """Where it was, is another line each time."""
    ask, script, new, others = asked
    script.write_text("stop\n")
    ask("record")
    facts.keep(new)
    told = json.loads(facts.FILE.read_text())
    (kept,) = told["facts"].values()
    kept[0]["error"] = "another line"
    facts.FILE.write_text(json.dumps(told))
    ask("live")
    assert others == []


def test_live_facts_are_compared_with_the_recorded_ones(asked):
    ask, script, new, others = asked
    ask("record")
    facts.keep(new)
    ask("live")
    assert others == []
    told = json.loads(facts.FILE.read_text())
    (kept,) = told["facts"].values()
    kept[0]["error"] = None
    facts.FILE.write_text(json.dumps(told))
    ask("live")
    assert others == [str(script)]


def test_facts_of_another_processor_are_the_same():
    one = [{"cases": [{"weights": [0.8551995, -0.30604946, 1e-9], "step": 3}], "error": None}]
    assert facts.alike(one, [{"cases": [{"weights": [0.8551997, -0.30632805, 0.0], "step": 3}], "error": None}])
    for other in ([0.87, -0.30604946, 1e-9], [0.8551995, 0.30604946, 1e-9], [0.8551995, -0.30604946]):
        assert not facts.alike(one, [{"cases": [{"weights": other, "step": 3}], "error": None}])
    assert not facts.alike(one, [{"cases": [{"weights": [0.8551995, -0.30604946, 1e-9], "step": 4}], "error": None}])
    assert not facts.alike(one, [{"cases": [{"weights": [0.8551995, -0.30604946, 1e-9], "step": 3}]}])
