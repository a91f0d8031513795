"""What a batch script would start, by reading it: found, and nothing of it run."""

import os
import subprocess
from pathlib import Path

import pytest

from labs.slurm import check
from labs.slurm.check import starts
from labs.slurm.check.words import UNKNOWN


def read(text, root, **options):
    return starts.read("#!/bin/bash\n" + text, root, **options)


def words(text, root, **options):
    return [one.words for one in read(text, root, **options).commands]


def test_variables_loops_functions_and_arrays_are_followed(course):
    text = """#SBATCH -N2 --ntasks-per-node=2
set -euo pipefail
python=(singularity exec "${IMAGE:?set it}" python)
run() { local n=$1; shift; srun -n "$n" "${python[@]}" \\
    notebooks/scripts/ResNet50.py "$@" &> all.txt; }
for n in 1 2; do run "$n" --batch_size=$((64 * n)) --n_gpus "$n" "" > /nowhere/x; done
A=1 B="x y" time mpiexec -n "$SLURM_NTASKS" python notebooks/scripts/ResNet50.py --flag --run "a b" | cat
(cd notebooks; python scripts/ResNet50.py)
exec python last.py
echo not reached; python never.py
"""
    found = [one for one in read(text, course).commands if one.words[0] != "cat"]
    assert [one.launcher for one in found] == ["srun", "srun", "mpiexec", None, None]
    assert [one.tasks for one in found] == [1, 2, 4, 1, 1]
    assert [str(one.script) for one in found] == ["notebooks/scripts/ResNet50.py"] * 4 + ["last.py"]
    assert found[1].options == {"batch_size": "128", "n_gpus": "2"} and found[1].words[-1] == ""
    assert found[2].options == {"flag": "", "run": "a b"}
    assert [one.line_number for one in found] == [5, 5, 8, 9, 10]


# a script, the words behind `python` in what it starts; U: not known
FOLLOWED = {
    "for i in {1..3}; do python $i; done": "1|2|3",
    "for i in $(seq 2 2 6); do python $i; done": "2|4|6",
    "for ((i = 1; i <= 4; i *= 2)); do python $i; done": "1|2|4",
    "n=1; while ((n < 5)); do python $n; n=$((n * 2)); done": "1|2|4",
    "n=4; until [ $n -lt 2 ]; do python $n; let n=n/2; done": "4|2",
    'a=(1 "2 3"); a+=(4); python "${a[@]}" ${#a[@]} "${a[-1]}" "${a[@]:1:1}"': "1,2 3,4,3,4,2 3",
    'declare -A m=([x]=7 ["y"]=8); m[z]=9; python ${m[x]} ${m[z]}': "7,9",
    'f=a/b.tar.gz; python ${f##*/} ${f%%.*} ${f%.gz} ${f/a/c} "${f^^}" ${#f} ${f:2:1}': (
        "b.tar.gz,a/b,a/b.tar,c/b.tar.gz,A/B.TAR.GZ,10,b"
    ),
    'python ${none:-a b} "${none-c d}" ${none+x} "${none:+y}" "$@" ""': "a,b,c d,,",
    "python {a,b}{1,2} {x} a{,b} '{c,d}'": "a1,a2,b1,b2,{x},a,ab,{c,d}",
    "x='a b'; python $x \"$x\" \\$x '$x' $'q\\tr'": "a,b,a b,$x,$x,q\tr",
    "python $((2 ** 3 + 7 / 2 - 1 % 4)) $((1 ? 5 : 6)) $((-3 / 2)) $((0x10 | 1)) $((3 > 2 && !0))": "10,5,-1,17,1",
    "if [[ 1 -eq 1 && x == x* ]]; then n=1; else n=2; fi; python $n": "1",
    "if nvidia-smi; then n=1; k=3; else n=2; k=3; fi; python $n $k": "U,3",
    "case ab in a*) python 1 ;; *) python 2 ;; esac": "1",
    'case "$1" in a) python 1 ;; *) python 2 ;; esac': "1|2",
    '[ -z "$1" ] && exit 1; python 1': "1",
    "test -d x || exit 1; python 1": "1",
    "n=$(nvidia-smi -L | wc -l); python $n $((n * 2))": "U,U",
    "n=$(echo 3); python $n `echo 4` $(basename x)": "3,4,U",
    "cat <<END | python 1\nx\nEND\npython 2 <<'END'\ny\nEND": "1|2",
    'bash -c \'python "$1" $0\' zero one; srun -n2 bash -lc "cd x && python 2"': "one,U|2",
    "srun bash <<'END'\npython 3\nEND": "3",
    "f() { local x=2; g; python $x; }; g() { x=3; }; x=1; f; python $x": "3|1",
    "f() { [ $1 = 0 ] && return; python $1; f $(($1 - 1)); }; f 2": "2|1",
    "set -- a b; shift; python $1 $#": "b,1",
    'eval "python $((1 + 1))"': "2",
    "export A=$B:${C:-d}/e; python $A": "U:d/e",
    "(x=2; exit 3); python ${x:-1}": "1",
    "read -r x < f; python $x": "U",
    "for i in 1 2 3; do [ $i = 2 ] && continue; [ $i = 3 ] && break; python $i; done": "1",
    "cat > s/x.sh <<'END'\npython $1 $n\nEND\nexport n=5; cd s; bash -e x.sh 4; srun ./x.sh 6; cat x.sh": "4,5|6,5",
    'declare -A m=([x]=7 [y]=8); for k in "${!m[@]}"; do python $k ${m[$k]}; done': "x,7|y,8",
    "n=3; python $((n == 3 ? n++ : 0)) $n $(((n + 1) * 2)) $((n & 1)) $((n & 1 == 1))": "3,4,10,0,U",
    "python 1 &\nwait; { python 2; } 2>&1 | tee log": "1|2",
}


@pytest.mark.parametrize("text", FOLLOWED)
def test_bash_is_followed_as_far_as_it_is_known(text, course):
    found = [one[one.index("python") + 1 :] for one in words(text, course, env={}) if "python" in one]
    assert "|".join(",".join(one).replace(UNKNOWN, "U") for one in found) == FOLLOWED[text]


def test_slurm_variables_are_known_only_as_slurm_sets_them(course):
    text = "echo\npython x.py --a ${SLURM_NTASKS:-none} --b $SLURM_NNODES --c ${SLURM_CPUS_PER_TASK:-none}"
    assert words(text, course) == [["python", "x.py", "--a", "none", "--b", "1", "--c", "none"]]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course)
    assert found[3::2] == ["6", "2", "3"]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course, scale=2)
    assert found[3::2] == ["12", "4", "3"]


def test_what_cannot_be_told_is_named(course, capsys):
    assert words("if true; then", course) == []
    text = (
        "#!/bin/bash\nset -e\nn=$(nvidia-smi -L | wc -l)\nsrun -n $n python notebooks/scripts/ResNet50.py --n_gpus $n\n"
    )
    found = starts.read(text, course).commands[-1]
    assert found.tasks is None and found.options["n_gpus"] == UNKNOWN
    path = course / "x.sh"
    path.write_text(text)
    check.report(path, "local")
    said = capsys.readouterr().out
    assert "Not to be told without running it: line 4: --n_gpus, the number of tasks." in said
    assert "The script was read; nothing of it was run." in said and UNKNOWN not in said


# Scripts that got out of a restricted bash, or would take all of a machine; SAFE: a folder that is to stay as it is.
HOSTILE = {
    "word seen otherwise": "f() { :; }; alias :=kill; shopt -s expand_aliases\n: $$\n: -9 -1",
    "redefined shopt": "shopt() { touch SAFE/a; }; trap() { touch SAFE/b; }; shopt -s extdebug; set +r; touch SAFE/c",
    "words by the million": "a=({1..20000000}); b=({a..z}{a..z}{a..z}{a..z}{a..z}); x=${a[*]}",
    "words by the million, twice": 'a=({1..900}); for i in {1..900}; do a+=("${a[@]}"); done; python "${a[@]}"',
    "text that doubles": "x=aaaaaaaa; while :; do x=$x$x; done",
    "numbers that grow": "x=9; while ((1)); do x=$((x ** 64)); ((y = 1 << 100000000000)); done; n=$((9 ** 999999999))",
    "many processes": "f() { f | f & }; f; for i in {1..124}; do sleep 1000 & done; while :; do (touch SAFE/d) & done",
    "functions in functions": "f() { f; f; f; }; f",
    "loops in loops": "".join(f"for a{i} in {{1..900}}; do " for i in range(20)) + "touch SAFE/e; " + "done; " * 20,
    "deep": "(" * 3000 + "touch SAFE/f" + ")" * 3000,
    "deep words": "x=" + '"$(echo ' * 300 + "1" + ')"' * 300,
    "deep arithmetic": "x=$((" + "(" * 5000 + "1" + ")" * 5000 + "))",
    "deep values": "x=" + "${a:-" * 2000 + "}" * 2000,
    "long patterns": f"x={'a' * 900}; y=${{x%%{'*a' * 20}b}}; case $x in {'*a' * 50}b) ;; esac",
    "files into findings": 'cd "$(</etc/hostname)"; x=$(cat /etc/passwd); python "$x.py" $x; . /etc/passwd',
    "every way to start": """touch SAFE/a; /usr/bin/touch SAFE/a; x=$(touch SAFE/a) y=`touch SAFE/a`
cat <(touch SAFE/a); eval touch SAFE/a; bash -c 'touch SAFE/a'; exec 3> SAFE/a
> SAFE/a; { :; } > SAFE/a; coproc touch SAFE/a
trap 'touch SAFE/a' EXIT DEBUG; command -p touch SAFE/a; builtin eval 'touch SAFE/a'; enable -f /tmp/x.so x
PROMPT_COMMAND='touch SAFE/a' PS4='$(touch SAFE/a)'; set -x; ((a[$(touch SAFE/a)]=1)); [[ -v a[$(touch SAFE/a)] ]]
printf -v 'a[$(touch SAFE/a)]' x; x='$(touch SAFE/a)'; y=${x@P}; source <(echo touch SAFE/a); kill -9 $PPID $$
BASH_ENV=<(echo touch SAFE/a) bash; history -w SAFE/a; hash -p /usr/bin/touch q; q SAFE/a; rm -rf SAFE""",
}


@pytest.fixture
def nothing_starts(monkeypatch):
    """What a check starts: a list of commands, which are only noted but for `bash -n`, which reads."""
    started, popen = [], subprocess.Popen

    def note(command, *args, **options):
        started.append(command)
        if command == ["bash", "-n"]:
            return popen(command, *args, **options)
        raise OSError("nothing is started here")

    for name in ("fork", "posix_spawn", "posix_spawnp", "system", "execv", "execve"):
        monkeypatch.setattr(os, name, note)
    monkeypatch.setattr(subprocess, "Popen", note)
    return started


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_script_is_run(name, course, tmp_path, nothing_starts):
    safe = tmp_path / "safe"
    safe.mkdir()
    (safe / "kept").write_text("x")
    before = sorted(course.rglob("*"))
    text = "#!/bin/bash\n" + HOSTILE[name].replace("SAFE", str(safe)) + "\npython end.py\n"
    found = check.check(text, "local", root=course)
    assert set(map(tuple, nothing_starts)) <= {("bash", "-n"), ("sbatch", "--test-only")}
    assert sorted(course.rglob("*")) == before and (safe / "kept").read_text() == "x"
    assert found and max(len(one.text()) for one in found) < 2_000
    secret = Path("/etc/passwd").read_text().split("\n")[0]
    assert not any(secret in one.text() for one in found)


def test_a_reading_is_bounded(course):
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in HOSTILE:
        reading = read(HOSTILE[name], course)
        assert len(reading.commands) <= 20_000
        assert all(len(word) <= 20_000 for one in reading.commands for word in one.words), name
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB
