"""Every rendered script of every site, on a cluster that is configured like that site."""

import pytest

from labs.slurm import sites
from setup.cluster.practice import ROOT, Cluster

from .submitted import Job

FORMS = {path.relative_to(ROOT / "solutions/slurm"): path for path in sorted(ROOT.glob("solutions/slurm/*/*.sh"))}
SITES = sorted({str(name.parent) for name in FORMS})
EVERY = pytest.mark.parametrize("at", SITES, indirect=True)


@pytest.fixture(scope="module")
def at(request, needs_slurm):
    """(site, its cluster)"""
    site = sites.load(request.param, ROOT)
    running = Cluster.start(site)
    yield site, running
    running.stop()


def scripts(site):
    """{name: complete script} of a site."""
    return {name.name: path for name, path in FORMS.items() if str(name.parent) == site.id}


def test_every_site_has_the_same_scripts():
    assert SITES == sites.names(ROOT)
    assert {frozenset(scripts(sites.load(id, ROOT))) for id in SITES} == {
        frozenset(
            f"{name}.sh"
            for name in "ResNet50 ResNet152V2 maxbatch ResNet50_horovod ResNet50_horovod_nodes study".split()
        )
    }


def probe(at, *command, **environment):
    """`sbatch --test-only` with an account and a QOS, as a student's environment names them."""
    named = {"SBATCH_ACCOUNT": "course", "SBATCH_QOS": "training"} | environment
    done = at[1].run("sbatch", "--test-only", *command, cwd=ROOT, env=named)
    return done.returncode, done.stderr


@EVERY
def test_complete_scripts_are_accepted(at):
    for name, path in scripts(at[0]).items():
        code, said = probe(at, path)
        assert code == 0 and "to start at" in said, f"{at[0].id}/{name}: {said}"


@EVERY
def test_scripts_with_blanks_are_refused(at):
    for name in scripts(at[0]):
        code, said = probe(at, ROOT / "slurm" / at[0].id / name)
        assert code and '"..." is not a valid' in said, f"{at[0].id}/{name}: {said}"


@EVERY
def test_cluster_keeps_the_rule_of_the_site(at):
    site, _ = at
    for gpus in range(1, site.gpus + 1):
        least, most = site.cpus_for(gpus)
        for cpus in {least - 1, least, most, most + 1} - {0, site.cpus + 1}:
            code, said = probe(at, "--wrap=true", f"--gres=gpu:{gpus}", f"--cpus-per-task={cpus}")
            assert code == (not least <= cpus <= most), said
            if code:
                assert f"{gpus} GPU(s) per node need {least}..{most} CPUs per node, this job asks {cpus}" in said


@EVERY
@pytest.mark.parametrize("variable, rule", [("SBATCH_ACCOUNT", "account"), ("SBATCH_QOS", "qos")])
def test_sites_that_demand_an_account_or_a_qos_refuse_without(at, variable, rule):
    site, _ = at
    code, said = probe(at, scripts(site)["ResNet50.sh"], **{variable: ""})
    assert code == getattr(site, rule), said
    assert code == 0 or f"needs a{'n account' if rule == 'account' else ' QOS'}" in said


@pytest.mark.parametrize("at", [id for id in SITES if sites.load(id, ROOT).modules], indirect=True)
def test_missing_module_ends_the_script_with_its_name(at, tmp_path):
    from labs.results.failures import failure

    site, cluster = at
    # What `module` says where it is installed but lacks the module (environment-modules).
    says = f"ERROR: Unable to locate a modulefile for '{site.modules[0]}'"
    module = f'() {{ [ "$1" = purge ] || {{ echo "{says}" >&2; return 1; }}; }}'
    named = {"SBATCH_ACCOUNT": "course", "SBATCH_QOS": "training"}
    for environment, words in (({}, "module: command not found"), ({"BASH_FUNC_module%%": module}, says)):
        job = Job(cluster, scripts(site)["ResNet50.sh"], runs=tmp_path, **named, **environment)
        assert job.end() == "FAILED"
        found = failure(job.err)
        assert words in found["line"] and found["kind"].startswith("missing"), found
        assert job.left() == [] and job.out.read_text() == "" and job.records == []
