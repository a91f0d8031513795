"""The puzzles of notebooks 31 to 34: bars and bounds, the picture, the table of one's best, and real processes."""

import inspect
import json
import linecache
import random
import re

import pytest
from answers import harder_schedules, pipeline_schedules, write_the_schedule, zero_schedules
from tree import ROOT

from labs import checks
from labs.checks import tasks
from labs.simulate.schedule import Case, play
from lessons.write_the_schedule import game, pictures, programs, real
from lessons.write_the_schedule.programs import gradient, program
from lessons.write_the_schedule.puzzles import BAR, PUZZLES, bars, changed, measured, sizes, updated_in_buckets

ANSWERS = write_the_schedule.ANSWERS | zero_schedules.ANSWERS | harder_schedules.ANSWERS | pipeline_schedules.ANSWERS
each_puzzle = pytest.mark.parametrize("id", PUZZLES)
PLAIN = {"schedule.3": 1} | dict.fromkeys(PUZZLES, 0)  # number of the wrong answer that is right, but plain


def solved(id, case, program=None):
    (program,) = (program,) if program else ANSWERS[id]["right"][0]
    return play(case, game.recorded(program, case))


def cases(id):
    return [PUZZLES[id].case] + PUZZLES[id].drawn(random.Random(id))


@each_puzzle
def test_every_right_answer_meets_the_bars_of_all_cases_and_none_passes_a_bound(id):
    for case in cases(id):
        best = PUZZLES[id].best(case)
        for (right,) in ANSWERS[id]["right"]:
            found = solved(id, case, right)
            assert found.problem is None
            for measure, value in measured(found).items():
                if measure in best:
                    known, bound = best[measure]
                    assert value <= BAR * known * (1 + 1e-9), (case, measure)
                    assert bound is None or bound <= known * (1 + 1e-9) and value >= bound * (1 - 1e-9), (case, measure)


@each_puzzle
def test_a_reference_is_the_best_known_and_the_plain_program_misses_a_bar_by_15_per_cent(id):
    for case in cases(id):
        best, found = PUZZLES[id].best(case), measured(solved(id, case))
        assert all(found[measure] <= 1.03 * known for measure, (known, _) in best.items())
    case, (plain,) = PUZZLES[id].case, ANSWERS[id]["wrong"][PLAIN[id]]
    found, best = solved(id, case, plain), PUZZLES[id].best(case)
    assert found.problem is None
    assert max(measured(found)[measure] / known for measure, (known, _) in best.items()) >= 1.15


@each_puzzle
def test_what_is_drawn_differs_in_size_and_time_from_the_example(id):
    example, drawn = PUZZLES[id].case, cases(id)[1:]
    assert len({(case.ranks, case.layers, case.batches) for case in drawn}) >= 2
    assert all((c.ranks, c.layers) != (example.ranks, example.layers) for c in drawn) or example.layers > 1
    assert all(case.message(1.0) != example.message(1.0) for case in drawn)


@pytest.mark.parametrize("update", [0.0, 0.05, 0.7])
def test_the_best_buckets_are_those_of_all_choices(update):
    case = PUZZLES["schedule.2"].case
    case = Case(4, 7, 4, forward=0.5, inputs=0.5, weights=0.5, latency=0.15, parameters=case.parameters, update=update)

    @program
    def in_buckets(cuts, K, L, M):
        rank, started = 0, []
        write_the_schedule.forwards(L, rank)
        for layer in reversed(range(L)):
            programs.backward(layer, rank)
            if layer == 0 or cuts >> (layer - 1) & 1:
                upper = started[-1][0] if started else L
                names = [gradient(each) for each in range(layer, upper)]
                started.append((layer, upper, programs.all_reduce(*names, wait=False)))
        for layer, upper, exchange in started:
            programs.wait(exchange)
            for each in range(layer, upper):
                programs.update(each)

    def time(cuts):
        operations = in_buckets(cuts, 4, 7, 4)
        ranks = [[(w, _of(rank, w, a), line) for w, a, line in operations] for rank in range(4)]
        found = play(case, ranks)
        assert found.problem is None
        return found.time

    def _of(rank, word, arguments):
        if word == "load":
            return (rank,)
        return (arguments[0], rank, *arguments[2:]) if word in ("forward", "backward") else arguments

    best = min(map(time, range(2**6)))
    assert best == pytest.approx(case.layers * case.forward + updated_in_buckets(case))


def test_a_check_is_kept_and_the_best_schedule_of_the_example_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    slow, fast = ANSWERS["schedule.1"]["wrong"][0][0], ANSWERS["schedule.1"]["right"][0][0]
    assert not checks.check("schedule.1", slow) and game.kept() == {}
    assert (
        "schedule.1: not yet. With K = 4, L = 6, M = 4, the sums are right, but the step takes 38.6 ms"
        in capsys.readouterr().out
    )
    game.show("schedule.1", slow)
    assert game.kept()["schedule.1"]["time"] == pytest.approx(38.6)
    game.show("schedule.1", fast, ranks=2, batches=2)  # a game of one's own
    assert game.kept()["schedule.1"]["time"] == pytest.approx(38.6)
    game.show("schedule.1", fast)
    game.show("schedule.1", slow)
    assert game.kept()["schedule.1"]["time"] == pytest.approx(29.6)
    assert checks.check("schedule.1", fast) and checks.progress()[-1]
    capsys.readouterr()
    game.best()
    told = capsys.readouterr().out
    assert (
        re.search(r"schedule\.1 Plain data parallelism +time \(ms\) +29\.6 +31\.08", told) and "not solved yet" in told
    )
    (tmp_path / "schedules.json").write_text('{"schedule.1": {"time": "x"}, "schedule.2": 5, ')
    game.show("schedule.1", fast)
    assert game.kept()["schedule.1"]["time"] == pytest.approx(29.6)


def test_the_case_in_which_a_check_found_something_can_be_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    state, hint = checks.judge("schedule.1", write_the_schedule.typed)
    assert state == "wrong" and "K = 4" not in hint
    game.show("schedule.1", write_the_schedule.typed, last=True)
    assert re.search(r"With (K = \d, L = \d, M = \d)", hint)[1] in capsys.readouterr().out
    (right,) = ANSWERS["schedule.1"]["right"][0]
    assert checks.check("schedule.1", right)
    game.show("schedule.1", right, last=True)
    assert "There is no case from a check to show: this is the example." in capsys.readouterr().out


SAID = (  # puzzle, wrong program, what the verdict says
    (
        "schedule.1",
        write_the_schedule.exchanging(lambda layers: [gradient(0)]),
        r"`all_reduce\(what\(L\)\)`: `all_reduce` got a list: write `",
    ),
    (
        "schedule.1",
        write_the_schedule.exchanging(lambda layers: gradient),
        r"got `gradient` without its layer: write `gradient\(layer\)`\.$",
    ),
    (
        "schedule.1",
        (write_the_schedule.without_layers,),
        r"A program takes \(rank, K, L, M\): `def without_layers\(rank, K, L, M\):`\.$",
    ),
    ("schedule.1", write_the_schedule.plain(exchanged=write_the_schedule.nothing), r"lacks micro-batch"),
    ("schedule.1", (write_the_schedule.by_hand,), r"must be solved without `receive`"),
    (
        "schedule.3",
        write_the_schedule.accumulation("none", mine=lambda rank, K, M: range(M)),
        r"every rank computes every micro-batch: how m",
    ),
    (
        "schedule.2",
        (write_the_schedule.in_thirds,),
        r"L = 24, M = 8 \(a drawn case: see it with `last=True`\), the sums are right.* in buckets of 8: 3 exch",
    ),
    (
        "schedule.2",
        write_the_schedule.buckets(1),
        r" in buckets of 1: 12 exchanges pay 72 latencies, 10\.8 ms in all\. From 7\.2 ms on, the",
    ),
    (
        "schedule.2",
        write_the_schedule.buckets(6),
        r" 1\.8 ms in all\. The links start only at 12\.2 ms, and 5\.4 ms of exchange follow the",
    ),
    (
        "schedule.2",
        write_the_schedule.buckets(99),
        r": 1 exchange pays 6 latencies, 0\.9 ms in all\. The links start only at 18\.2 ms, and",
    ),
    (
        "schedule.2",
        (write_the_schedule.waits_at_once,),
        r"Before its last backward pass, a rank waits 9\.45 ms for its exchanges\.$",
    ),
    (
        "zero.1",
        (zero_schedules.everything_everywhere,),
        r"every rank computes every micro-batch: how many are its own\?$",
    ),
    (
        "zero.2",
        (zero_schedules.forward_again,),
        r"M = 4: `forward\(0, 0\)` is computed 6 times, on rank 0\. In this puzzle, each pass",
    ),
    (
        "zero.2",
        (zero_schedules.one_layer_late,),
        r"^With K = 4, L = 7, M = 4, the sums are right, but a rank holds up to 116 MB;",
    ),
    (
        "zero.3",
        zero_schedules.zero_3(prefetch=False),
        r"Between its first and its last pass, rank 0 waits 14 ms; .* 1\.7 ms in `all_ga",
    ),
    (
        "zero.3",
        zero_schedules.zero_3(keep=False),
        r"rank 0 does not have weights\(4\), which was freed in operation \d+, line \d+: ",
    ),
    ("harder.1", (harder_schedules.waits_for_a_list,), r"`wait` takes one exchange; call it for each in the list\.$"),
    (
        "harder.2",
        harder_schedules.halves(same=True),
        r" Rank 0 is sending parts 2 and 3 of gradient\(0\) to rank 2, and nobody is receiving it\.$",
    ),
    (
        "harder.3",
        (harder_schedules.gathers_weights,),
        r"4\.73 ms\. You gather weights: split the layers instead\. Also, a .* 9\.45 MB\.$",
    ),
    (
        "harder.3",
        harder_schedules.tensor((None, None), out=None),
        r"parts 1, 2 and 3 of weights\(0\)\. Without `split=`, a rank comp",
    ),
    (
        "pipeline.1",
        (pipeline_schedules.weights_are_sent_round,),
        r"rank 0 computes `forward\(1, 0\)`, but may compute only the layers t",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: 99),
        r"although they could .* Also, a rank holds up to 66 MB; the bar is",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(),
        r"Every backward pass is whole: which of its two results does another rank wait for\?$",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: 0),
        r"6\.02 ms for errors .* after up to 7 of its second halves: ",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: 1),
        r"5\.99 ms for errors .* after up to 6 of its second halves: ",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: K - 1),
        r"ranks wait 6\.28 ms although they could compute a second h",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: K - 1 - rank),
        r" 12 ms for errors that another rank computes after",
    ),
    (
        "pipeline.3",
        pipeline_schedules.pipeline(halves=lambda rank, K: rank, after=True),
        r"On rank 3, does a forward pass come before a sec",
    ),
    ("pipeline.3", pipeline_schedules.pipeline(halves=lambda rank, K: rank + 2), r"Whose second half waits too long\?"),
)


@pytest.mark.parametrize(("id", "program", "said"), SAID)
def test_a_verdict_names_the_cause(id, program, said, tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    state, hint = checks.judge(id, *program)
    assert state == "wrong" and re.search(said, hint), hint


BY_THE_RULES = pytest.mark.parametrize(
    ("id", "program"),
    [
        ("zero.1", zero_schedules.everything_everywhere),
        ("zero.2", zero_schedules.forward_again),
        ("pipeline.1", pipeline_schedules.weights_are_sent_round),
    ],
)


@BY_THE_RULES
def test_a_program_that_passes_a_bound_breaks_a_rule(id, program, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    case = PUZZLES[id].case
    played = solved(id, case, program)
    assert played.problem is None
    bounds = {measure: bound for measure, (_, bound) in PUZZLES[id].best(case).items()}
    assert any(value < 0.99 * bounds[measure] for measure, value in measured(played).items() if measure in bounds)
    assert game.show(id, program) is not None and game.kept() == {}
    assert f"{PUZZLES[id].title}: {sizes(case)}. Not right: " in capsys.readouterr().out
    with pytest.raises(real.RealError, match="is not right: "):
        real.run(id, program, case.ranks)
    (tmp_path / "schedules.json").write_text(json.dumps({id: {"programs": game.recorded(program, case)}}))
    assert list(game.pictured()) == []


def test_one_rank_alone_may_compute_everything_and_others_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    game.show("schedule.1", zero_schedules.everything_everywhere, ranks=1, batches=2)
    assert "M = 2. The sums are right." in capsys.readouterr().out


def test_a_schedule_that_meets_all_bars_is_better_than_one_that_does_not(tmp_path, monkeypatch):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    (slow,), (meets,) = pipeline_schedules.pipeline(halves=lambda rank, K: 0), ANSWERS["pipeline.3"]["right"][0]
    known = {measure: best for measure, (best, _) in PUZZLES["pipeline.3"].best(PUZZLES["pipeline.3"].case).items()}

    def ratios():
        return sum(game.kept()["pipeline.3"][measure] / best for measure, best in known.items())

    game.show("pipeline.3", slow)
    nearer = ratios()
    game.show("pipeline.3", meets)
    assert ratios() > nearer and game.kept()["pipeline.3"]["time"] == pytest.approx(27.35)
    game.show("pipeline.3", slow)
    assert game.kept()["pipeline.3"]["time"] == pytest.approx(27.35)


def written(line):
    """What is said of a program that has this line in a cell of its own."""
    source = f"@program\ndef f(rank, K, L, M):\n    grads = [gradient(0)]\n    {line}\n"
    name = f"<cell {line}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    there = vars(programs).copy()
    exec(compile(source, name, "exec"), there)
    with pytest.raises(programs.ProgramError) as raised:
        there["f"](0, 2, 2, 2)
    return str(raised.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("h = all_reduce(grads, wait=False)", "`all_reduce(*grads)`"),
        ("all_reduce([gradient(n) for n in range(L)])", "`all_reduce(*[gradient(n) for n in range(L)])`"),
        ("free(weights(0), grads, keep=rank)", "`free(*grads)`"),
        ("all_reduce(gradient(n) for n in range(L))", "`all_reduce(*(gradient(n) for n in range(L)))`"),
        ("all_reduce(grads) ; all_reduce(grads)", "`all_reduce(*tensors)`"),
    ],
)
def test_what_is_to_be_written_has_the_students_own_name(line, says):
    assert written(line).endswith(f"got a list: write {says}.")


def test_where_nothing_is_split_no_part_is_named():
    (without,) = write_the_schedule.plain(exchanged=write_the_schedule.nothing)
    assert "micro-batch" in solved("schedule.1", PUZZLES["schedule.1"].case, without).problem
    (forgets,) = write_the_schedule.plain(updated=lambda layers: layers - 1)
    assert solved("schedule.1", PUZZLES["schedule.1"].case, forgets).problem == (
        "At the end, weights(5) on rank 0 has not been updated."
    )
    (whole,) = zero_schedules.zero_1(gathers=False)
    assert "part 1 of weights(0) on rank 0" in solved("zero.1", PUZZLES["zero.1"].case, whole).problem


def test_a_game_of_ones_own_grows_with_its_ranks(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    for id, said in (("schedule.1", "L = 6, M = 8"), ("harder.3", "L = 4, M = 1"), ("pipeline.2", "L = 8, M = 24")):
        game.show(id, ANSWERS[id]["right"][0][0], ranks=8)
        assert f"K = 8, {said}. The sums are right." in capsys.readouterr().out
    assert game.kept() == {}


def test_programs_without_an_end_are_told_and_not_drawn(tmp_path, monkeypatch, capsys):
    @program
    def turns(rank, K, L, M):
        while True:
            pass

    monkeypatch.setattr(game.student_code, "SECONDS", 0.2)
    assert game.show("schedule.1", turns) is None and game.show("schedule.1", write_the_schedule.endless) is None
    told = capsys.readouterr().out
    assert "stopped after 0.2 s without an end" in told and "goes on (line" in told
    state, hint = checks.judge("schedule.1", turns)
    assert state == "wrong" and hint.endswith("Does this loop end?")


def test_every_puzzle_says_what_it_is_played_with(capsys):
    for id in PUZZLES:
        game.puzzle(id)
        said = capsys.readouterr().out
        assert said.count("Bar: ") == len(bars(PUZZLES[id], PUZZLES[id].case)) and "At the start" in said
        assert tasks.task(id).title == PUZZLES[id].title
        assert ("an activation 2 MB, 8 MB for even layers.\n" in said) == (id == "harder.3")


def test_each_word_of_the_programs_has_its_description():
    words = [value for name, value in vars(programs).items() if inspect.isfunction(value) and name[0] != "_"]
    assert len(words) == 19 and all(word.__doc__ for word in words)


# The picture


def test_the_picture_moves_and_says_what_each_rank_does_and_holds():
    found = solved("pipeline.3", PUZZLES["pipeline.3"].case)
    draw, moments = pictures.moving(found, "Zero bubble")
    first, last = draw(0.0).alt, draw(moments[-1]).alt
    assert "K = 4, L = 4, M = 8: 27.35 ms, idle 12%" in first and "rank 3 50 MB" in first
    assert "At 0 ms: rank 0 load(0); holds 26 MB: weights 0, optimizer 0, micro-batch 0; rank 1 waits in rec" in first
    assert "rank 1 has ended; holds 24 MB" in last and draw(5.0).png() != draw(6.0).png()
    (ranks, memory) = draw(5.0).axes
    assert memory.get_xlabel() == "time (ms)" and memory.get_ylabel() == "memory (MB)"
    legend = [text.get_text() for text in ranks.get_legend().texts]
    assert legend == ["forward", "backward: inputs", "backward: weights", "update", "load", "idle", "message"]
    patterns = {part.get_hatch() for part in ranks.collections if part.get_label() in legend}
    assert len(patterns) == 6  # each kind has its own
    key = memory.get_legend()
    assert [text.get_text() for text in key.texts] == [f"rank {rank}" for rank in range(4)]


def test_each_memory_line_of_nine_ranks_has_its_look_and_the_peak_is_told_whole():
    case = changed(PUZZLES["zero.3"].case, ranks=9)
    draw, _ = pictures.moving(solved("zero.3", case), "ZeRO-3")
    figure = draw()
    lines = figure.axes[1].get_legend().legend_handles
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 9
    (told,) = (text.get_text() for text in figure.texts if text.get_text().startswith("at "))
    assert "activation\n       (0-3, 0), error (3-4, 0)\nrank 1 " in told and told.count("\N{HORIZONTAL ELLIPSIS}") == 8


def test_what_arrives_is_told_beside_what_is_there():
    found = solved("harder.1", PUZZLES["harder.1"].case)
    assert pictures.told_of(found, 0, 0.0).endswith("holds 10 MB: gradient 0 and 2 MB that arrive")


def test_a_picture_of_messages_alone_tells_the_use_of_the_links_and_the_parts():
    case = PUZZLES["harder.2"].case
    draw, _ = pictures.moving(solved("harder.2", case), "By halves")
    figure = draw()
    assert figure.axes[0].get_title() == "By halves: 2.3 ms, links in use 100%" and "links in use 100%" in figure.alt
    parts = [text.get_text() for text in figure.axes[0].texts]
    assert parts.count("2, 3") == parts.count("0, 1") == 4 and parts.count("3") == 2 and len(parts) == 16
    slow = solved("harder.1", PUZZLES["harder.1"].case, harder_schedules.once_round)
    assert pictures.use(slow) == "links in use 25%"
    draw, _ = pictures.moving(solved("harder.1", changed(PUZZLES["harder.1"].case, ranks=24)), "A ring")
    assert not draw().axes[0].texts  # no room


def test_the_picture_of_a_deadlock_shows_its_cycle():
    found = solved("harder.1", PUZZLES["harder.1"].case, ANSWERS["harder.1"]["wrong"][1][0])
    draw, _ = pictures.moving(found, "A ring")
    figure = draw()
    assert figure.axes[0].get_title() == "A ring: deadlock, stopped at 0 ms" and len(figure.axes[0].texts) == 4
    assert "rank 3 waits in `send(gradient(0, 3), to=0)`" in figure.alt and figure.png()[:4] == b"\x89PNG"


def test_the_picture_of_a_program_that_does_nothing():
    draw, moments = pictures.moving(play(Case(2, 2, 2), [[], []]), "Nothing")
    assert "has not been updated" in draw().alt and draw(moments[-1]).png()[:4] == b"\x89PNG"


# Real processes


def of_case(id, ranks):
    case = PUZZLES[id].case
    layers = ranks if case.start == "stages" else 4
    return Case(ranks, layers, ranks * case.batches // case.ranks, case.start)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("id", ["schedule.1", "schedule.2", "zero.3", "pipeline.1", "pipeline.2", "pipeline.3"])
def test_on_real_processes_the_weights_are_those_of_one_and_the_order_is_the_engines(id, ranks):
    case = of_case(id, ranks)
    (right,) = ANSWERS[id]["right"][0]
    found = real.measure(case, game.recorded(right, case))
    assert found["difference"] < 1e-12 and found["in order"] is True and found["moved"] > 1e-3


@pytest.mark.slow
def test_on_real_processes_a_missing_exchange_and_another_order_are_seen(monkeypatch):
    case = of_case("schedule.1", 2)
    operations = game.recorded(ANSWERS["schedule.1"]["right"][0][0], case)
    alone = [[each for each in rank if each[0] != "all_reduce"] for rank in operations]
    assert real.measure(case, alone)["difference"] > 1e-3
    rows = real._processes(case, operations)
    assert real._in_order(case, operations, rows)
    swapped = [each[:] for each in operations]
    forwards = [step for step, each in enumerate(swapped[0]) if each[0] == "update"]
    first, second = forwards[:2]
    swapped[0][first], swapped[0][second] = swapped[0][second], swapped[0][first]
    assert not real._in_order(case, swapped, rows)


@pytest.mark.slow
def test_a_student_runs_a_program_on_real_processes_in_a_job(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABS_RUNS", str(tmp_path))
    found = real.run("pipeline.2", ANSWERS["pipeline.2"]["right"][0][0], 2)
    assert found["in order"] and json.loads((tmp_path / "schedule_pipeline.2_on_2.result.json").read_text()) == found
    assert "2 processes, K = 2, L = 2, M = 6: the weights differ by at most" in capsys.readouterr().out
    with pytest.raises(real.RealError, match="is not right: Rank 0"):
        real.run("schedule.1", ANSWERS["schedule.1"]["wrong"][2][0], 2)


# The texts


def test_each_puzzle_has_three_hints_and_its_picture():
    puzzles = []
    for name in (each.notebook for each in tasks.lessons().values() if each.notebook > "30"):
        ids = [id for id, (lesson, item) in tasks.items().items() if lesson.notebook == name and item.kind == "check"]
        puzzles += ids
        text = (ROOT / f"solutions/{name}.py").read_text(encoding="utf-8")
        parts = re.split(r"^# ## Puzzle \d+: ", text, flags=re.MULTILINE)[1:]
        parts = [re.sub(r"\n# ?", " ", part) for part in parts]  # a line may break within "Hint 3"
        assert len(parts) == len(ids)
        for id, part in zip(ids, parts, strict=True):
            assert re.findall(r"<summary>(Hint \d)</summary>", part) == ["Hint 1", "Hint 2", "Hint 3"], id
            assert f'game.puzzle("{id}")' in part and f'game.show("{id}"' in part
            imported = text.partition("write_the_schedule.programs import")[2].partition(")")[0]
            assert set(PUZZLES[id].case.words) <= set(re.findall(r"\w+", imported)), id
    assert puzzles == list(PUZZLES)
