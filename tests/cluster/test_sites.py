"""Every rendered script of every site, on a cluster that is configured like that site."""

import pytest

from labs.results.failures import failure
from labs.slurm import sites
from setup.cluster.practice import ROOT, Cluster

from .submitted import Job

SITES = sorted(path.parent.name for path in ROOT.glob("solutions/slurm/*/ResNet50.sh"))
NAMED = {"SBATCH_ACCOUNT": "course", "SBATCH_QOS": "training"}  # as a student's environment names them


@pytest.fixture(scope="module")
def at(request, needs_slurm):
    """(site, its cluster)"""
    site = sites.load(request.param, ROOT)
    running = Cluster.start(site)
    yield site, running
    running.stop()


def scripts(id):
    """{name: complete script} of a site."""
    return {path.name: path for path in (ROOT / "solutions/slurm" / id).glob("*.sh")}


def test_every_site_has_the_same_scripts():
    names = "ResNet50 ResNet152V2 maxbatch ResNet50_horovod ResNet50_horovod_nodes study".split()
    assert SITES == sites.names(ROOT)
    assert {frozenset(scripts(id)) for id in SITES} == {frozenset(f"{name}.sh" for name in names)}


@pytest.mark.parametrize("at", SITES, indirect=True)
def test_a_site_takes_complete_scripts_and_keeps_its_rules(at, tmp_path):
    site, cluster = at

    def probe(*command, **environment):
        done = cluster.run("sbatch", "--test-only", *command, cwd=ROOT, env=NAMED | environment)
        return done.returncode, done.stderr

    for name, path in scripts(site.id).items():
        code, said = probe(path)
        assert code == 0 and "to start at" in said, f"{site.id}/{name}: {said}"
        code, said = probe(ROOT / "slurm" / site.id / name)
        assert code and '"..." is not a valid' in said, f"{site.id}/{name}: {said}"
    for gpus in range(1, site.gpus + 1):
        least, most = site.cpus_for(gpus)
        for cpus in {least - 1, least, most, most + 1} - {0, site.cpus + 1}:
            code, said = probe("--wrap=true", f"--gres=gpu:{gpus}", f"--cpus-per-task={cpus}")
            assert code == (not least <= cpus <= most), said
            rule = f"{gpus} GPU(s) per node need {least}..{most} CPUs per node, this job asks {cpus}"
            assert code == 0 or rule in said
    for rule, words in (("account", "needs an account"), ("qos", "needs a QOS")):
        code, said = probe(scripts(site.id)["ResNet50.sh"], **{f"SBATCH_{rule.upper()}": ""})
        assert code == getattr(site, rule) and (code == 0 or words in said), said
    if site.modules:
        job = Job(cluster, scripts(site.id)["ResNet50.sh"], runs=tmp_path, **NAMED)
        assert job.end() == "FAILED" and failure(job.err)["kind"] == "missing module"
        assert job.left() == [] and job.out.read_text() == "" and job.records == []
