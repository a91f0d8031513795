"""What a training script in Python is, and what its argparse takes."""

from labs.slurm.check.program import PythonScript

KINDS = [
    ("import horovod.keras as hvd", "horovod"),
    ("from labs import hvd", "horovod"),
    ("s = MirroredStrategy()", "mirrored"),
    ("print(1)", None),
    ("not python at all", None),
]
HEAD = "parser = argparse.ArgumentParser()\n"
ADDED = HEAD + "parser.add_argument('--batch_size', type=int)\nparser.add_argument('--fast', action='store_true')\n"
TAKEN = [  # the script, its command line: options, what is left, the error
    (ADDED, "--batch 4 --fast", {"batch_size": "4"}, [], None),
    (ADDED, "--fast 4 --slow", {}, ["4", "--slow"], None),
    (ADDED, "--batch_size", {}, [], "argument --batch_size: expected one argument"),
    (HEAD + "training.arguments(parser)\n", "--seed=3 --run x", {"seed": "3", "run": "x"}, [], None),
    (HEAD + "parser.add_argument('file')\n", "a b", {"file": "a"}, ["b"], None),
]
UNKNOWN = [ADDED + "parser.parse_known_args()", ADDED + "add_more(parser)", HEAD + "parser.add_argument(name)"]


def test_kind_of_a_program(tmp_path):
    path = tmp_path / "x.py"
    for code, kind in KINDS:
        path.write_text(code)
        assert PythonScript(path).kind == kind, code


def test_what_a_program_takes(tmp_path):
    path = tmp_path / "x.py"
    for code, words, *expected in TAKEN:
        path.write_text(code)
        assert PythonScript(path).known and [*PythonScript(path).take(words.split())] == expected, words
    for code in UNKNOWN:
        path.write_text(code)
        program = PythonScript(path)
        assert not program.known and program.take(["--n_gpus", "2", "--other"])[0] == {"n_gpus": "2"}, code
