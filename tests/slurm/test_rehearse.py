"""The rehearsal of batch scripts: it finds what they would start, and starts nothing."""

from labs.slurm.check import rehearse


def words(text, root, **options):
    return [one.words for one in rehearse.rehearse("#!/bin/bash\n" + text, root, **options)]


def test_rehearsal_fills_variables_loops_functions_and_arrays(course):
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
    found = [one for one in rehearse.rehearse("#!/bin/bash\n" + text, course) if one.words[0] != "cat"]
    assert [one.launcher for one in found] == ["srun", "srun", "mpiexec", None, None]
    assert [one.tasks for one in found] == [1, 2, 4, 1, 1]
    assert [str(one.script) for one in found] == ["notebooks/scripts/ResNet50.py"] * 4 + ["last.py"]
    assert found[1].options == {"batch_size": "128", "n_gpus": "2"} and found[1].words[-1] == ""
    assert found[2].options == {"flag": "", "run": "a b"}
    assert [one.line_number for one in found] == [5, 5, 8, 9, 10]


def test_rehearsal_starts_nothing_and_writes_nothing(course, tmp_path):
    safe = tmp_path / "safe"
    safe.mkdir()
    (safe / "kept").write_text("x")
    text = f"""
PATH=/usr/bin:/bin touch {safe}/a; export PATH=/usr/bin:/bin; touch {safe}/b; rm -rf {safe}; /bin/rm -rf {safe}
echo x > {safe}/c; {{ echo x; }} > {safe}/d; for i in 1; do echo; done >> {safe}/e; (echo) &> {safe}/f; > {safe}/g
if true; then echo; fi > {safe}/h 2>&1; f() {{ echo; }} > {safe}/i; f > {safe}/j; exec > {safe}/k; exec 3> {safe}/l
x=$(/usr/bin/touch {safe}/m; touch {safe}/n); echo "$(/usr/bin/touch {safe}/o)" `touch {safe}/p`
command -p touch {safe}/q; builtin trap - DEBUG; trap - DEBUG; trap '/bin/touch {safe}/r' EXIT; set +T
shopt -u extdebug; enable -n trap; hash -p /usr/bin/touch say; say {safe}/s; eval "/usr/bin/touch {safe}/t"
bash -c "touch {safe}/u"
. {safe}/kept; source /etc/profile; coproc touch {safe}/v; touch {safe}/w & wait; cat < /etc/passwd | tee {safe}/x
set +r; history -w {safe}/y; printf x >| {safe}/z; kill $$; echo <(/usr/bin/touch {safe}/aa) >(/usr/bin/tee {safe}/bb)
[ -e {safe} ] && rm -rf {safe} || /usr/bin/touch {safe}/cc; while read -r l; do rm "$l"; done < <(ls {safe})
declare -f x; unset -f __rehearse; unset PATH; __rehearse() {{ return 1; }}; touch notebooks/dd; echo > notebooks/ee
/usr/bin/touch {safe}/ff; python end.py
"""
    before = sorted(path for path in course.rglob("*"))
    found = words(text, course)
    assert sorted(path for path in course.rglob("*")) == before and (safe / "kept").read_text() == "x"
    assert ["touch", f"{safe}/b"] in found and ["rm", "-rf", str(safe)] in found
    assert ["python", "end.py"] in found  # it went on to the end


def test_rehearsal_knows_slurm_variables_only_as_slurm_sets_them(course):
    text = "echo\npython x.py --a ${SLURM_NTASKS:-none} --b $SLURM_NNODES --c ${SLURM_CPUS_PER_TASK:-none}"
    assert words(text, course) == [["python", "x.py", "--a", "none", "--b", "1", "--c", "none"]]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course)
    assert found[3::2] == ["6", "2", "3"]
    (found,) = words("#SBATCH -N2 -n6 -c3\n" + text, course, scale=2)
    assert found[3::2] == ["12", "4", "3"]


def test_rehearsal_of_what_cannot_be_told(course):
    assert words("if true; then", course) == []
    assert words("while true; do python x.py; done", course)[0] == ["python", "x.py"]
    text = "#!/bin/bash\nn=$(nvidia-smi -L | wc -l)\nsrun -n $n python x.py --n_gpus $n"
    (found,) = rehearse.rehearse(text, course)[2:]
    assert found.tasks is None or found.options["n_gpus"] == ""


def test_rehearsal_ends_in_time(course, monkeypatch):
    monkeypatch.setattr(rehearse, "LIMIT", 1)
    text = "#!/bin/bash\npython x.py\nwhile :; do while :; do :; done; done"
    assert rehearse.rehearse(text, course)[0].words == ["python", "x.py"]
