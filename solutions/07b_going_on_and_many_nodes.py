# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Horovod: a training that goes on, and many nodes
#
# **Time: 55 minutes, of which 2 minutes on 2 cores are computing.**
#
# In notebook 07 you trained one network on several ranks of one machine. A real training takes longer than one job may, and needs
# more GPUs than one machine has. So you first see what happens when a rank fails. Then you write a checkpoint from which the next job
# goes on, and start a job on several nodes.
#
# From notebook 07 you need your `scripts/ResNet50_horovod.py`, for the last section only.

# %%
from labs import blanks, devices, jobs, presets
from labs.checks import answered, check, outcome, predict
from labs.results import record as run_record
from labs.show import tables
from labs.slurm import sites

plan = presets.choose()
quick = plan.name == "test"
small, few = ("-m", "labs.lessons.nb07.experiment"), ["--images", 256, "--epochs", 3]
cores = {"launcher": "mpiexec", "env": {"CUDA_VISIBLE_DEVICES": ""}}  # small experiments need no GPU

# %% [markdown]
# ## When a rank dies
#
# In this run one of the two ranks fails at the beginning of its second epoch. The other one then waits in an all-reduce for a
# rank that never comes.

# %%
if devices.has("horovod"):
    job = jobs.run(*small, *few, "--accident", name="dies", ranks=2, env=cores["env"])

# %%
if devices.has("horovod"):
    print("state of the job:   ", job.state)
    print("state of its record:", run_record.load(job.record).state)
    complaints = [line.rstrip() for line in open(job.err) if "Traceback" in line or "Error: " in line]
    print("", *complaints, sep="\n")

# %% [markdown]
# The launcher ends all ranks when one has failed. Its `.err` holds several complaints, and only one cause.
# Which rank brought the job down?

# %% labs={"id": "07.21"}
### BEGIN SOLUTION
died = 1
### END SOLUTION
check("07.21", died)

# %% [markdown]
# If no launcher ended them, the others would wait until somebody does, and the job would hold its nodes until its time is up. What
# ranks with different numbers of batches do, you caused in notebook 06: it may stand still, too, or average wrongly without a word.
# That is why `labs.hvd` compares the steps of all ranks before the first one.

# %% [markdown]
# ## A job has an hour, the training needs three
#
# A job ends at its time limit, whether its training is done or not. So a long training is several jobs, and each goes on where the
# one before it ended: after every epoch a **checkpoint** is kept, one file with all that the next job needs.
#
# Here SGD trains a small network with momentum: for each weight it keeps a velocity, to which every gradient adds. **Predict:** how
# many times as large as the network's weights is a checkpoint from which the training goes on as if it had never been stopped?

# %% labs={"id": "07.29"}
### BEGIN SOLUTION
times_the_weights = 2
### END SOLUTION
predict("07.29", times_the_weights)

# %% [markdown]
# Open `scripts/goes_on.py`. `write` and `read` put arrays into a file and take them out; `save`, `resume` and two places in `train`
# are blank. Before you fill them, ask yourself:
#
# - All ranks hold the same state. Who writes, who reads, and how do all others get what was read?
# - What does a step change, besides the weights?
# - What does the next job find if this one is ended while it writes?
# - With which epoch does the next job begin, and with which order of the samples?
#
# The check plays your functions on 2 ranks. Each has a disk of its own there, as if they were on two nodes.

# %% labs={"id": "07.28"}
several = "scripts/goes_on.py"
check("07.28", several)

# %% [markdown]
# Now both ways on 2 ranks: 4 epochs in one job; and a job that stops after 2 of them, with another one behind it.

# %%
one_go, halves = ["--checkpoint", "one_go.npz"], ["--checkpoint", "halves.npz"]
ways = {"one_go": one_go, "first_half": [*halves, "--stop_after", 2], "second_half": halves}
if answered("07.28") and devices.has("horovod"):
    for file in ("one_go.npz", "halves.npz"):
        (jobs.folder() / file).unlink(missing_ok=True)  # of an earlier try: it would go on with that
    for name, options in ways.items():
        job = jobs.run(several, "--images", 640, "--epochs", 4, *options, name=name, ranks=2, **cores)
        print(job.out.read_text())

# %%
if answered("07.28") and devices.has("horovod"):
    said = {name: (jobs.folder() / f"{name}.out").read_text() for name in ways}
    rows = [{"job": name, "sha": text.partition("SHA-256 ")[2].split()[0]} for name, text in said.items()]
    tables.show(rows, ("job", "sha"), {"sha": "SHA-256 of the weights at its end"})
    print("one job and two jobs train the same network:", rows[0]["sha"] == rows[2]["sha"])
    outcome("07.29", float(said["one_go"].partition(" bytes, ")[2].split()[0]))

# %% [markdown]
# To the last bit the same network, and the accuracies are the same, epoch by epoch. Without the momentum, or with the samples of the
# first epoch again, the second job would train without a complaint as well: another network, and only such a comparison tells.
#
# The order of the samples needs no place in the file: it follows from the seed and the epoch's number. What else a training draws at
# random, as dropout does, must be kept or follow from such a number. And each rank must draw for itself: with one seed on all
# ranks, dropout leaves out the same units on each of them. `ranks.own_seed(seed)` makes a seed for each rank.
#
# On GPUs sums may be added up in another order each time; there, compare losses instead of bits. And what is in no checkpoint yet
# is lost: an epoch that was ended in its middle is trained again.
#
# With `fit` the same parts have names: rank 0 loads the model, `BroadcastGlobalVariablesCallback` gives its weights and its
# momentum to all, `hvd.broadcast` the number of epochs, which is `fit`'s `initial_epoch`; and a callback saves, on rank 0 only.

# %% [markdown]
# ## MPI, Gloo, NCCL: who carries what?
#
# | | starts processes | negotiates which tensor is ready | carries tensors |
# |---|---|---|---|
# | **MPI** | `mpiexec`, `srun` | yes | between CPUs, on one node or many; between GPUs, if both MPI and Horovod are built for it |
# | **Gloo** | `horovodrun --gloo` | yes | between CPUs, over TCP; needs no MPI |
# | **NCCL** | no | no | between GPUs: NVLink within a node, the fast network between nodes |
#
# Horovod is built with NCCL. Who carries the gradients between 4 GPUs of one node? **a**: NCCL, **b**: Gloo, **c**: MPI,
# **d**: horovodrun

# %% labs={"id": "07.13"}
### BEGIN SOLUTION
carrier = "a"
### END SOLUTION
check("07.13", carrier)

# %% [markdown]
# ## Over several nodes
#
# So far all ranks ran on one machine. On a cluster SLURM starts them, on all nodes of the job: `srun` takes the place of
# `horovodrun`, and your training script stays as it is. What the job asks for is counted in three ways:
#
# - `--nodes`: nodes of the job,
# - `--ntasks-per-node` and `--gres=gpu:`: ranks and GPUs **for each node**,
# - `--cpus-per-task`: cores **for each rank**.
#
# On CTE-POWER a job with all 4 GPUs of a node takes its 160 hardware threads. Which `--cpus-per-task` does a Horovod job need there?

# %% labs={"id": "07.22"}
### BEGIN SOLUTION
cpus_per_task = 160 // 4
### END SOLUTION
check("07.22", cpus_per_task)

# %% [markdown]
# Open `slurm/local/ResNet50_horovod_nodes.sh` (or the folder of your site) in the course's top folder: one training on 2 nodes, with a
# rank for each GPU. Fill its five blanks. How many ranks there will be, SLURM tells the script in `SLURM_NTASKS`: so the same script
# runs on 64 nodes with `sbatch --nodes=64`.

# %%
site = sites.load()
batch_script = sites.script("ResNet50_horovod_nodes.sh")
print(batch_script.read_text())

# %% labs={"id": "07.23"}
check("07.23", batch_script)

# %% [markdown]
# Submit it. Without SLURM, bash runs the script on this machine: then all ranks are here, and share its cores.

# %%
short = ["--images", 256, "--epochs", 1, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if blanks.blanks("scripts/ResNet50_horovod.py"):
    print("ResNet50_horovod.py still has blanks. Finish it in notebook 07, then run this cell again.")
elif answered("07.23") and not quick:
    batch_job = jobs.run(batch_script, *short, name="ResNet50_horovod_nodes", site=site.id)

# %%
if batch_job and batch_job.records:
    print(*[line for line in batch_job.out.read_text().split("\n") if "Rank " in line], sep="\n")
    record = run_record.load(batch_job.records[0])
    has = record.configuration
    print(has.workers, "ranks on", has.nodes, "node(s); weights identical:", record.weights["identical"])
    print("oversubscribed:", record.oversubscribed)

# %% [markdown]
# A rank is a task, a task has a GPU, and `hvd.local_rank()` counts anew on each node: that is why step 2 pins by the local
# rank. With a launcher of another MPI than Horovod's, each process would be alone: size 1, n times, and no error from
# SLURM. `hvd.init()` of the kit looks for that.

# %% [markdown]
# ## What you take along
#
# - When one rank dies, all others wait for it. The launcher ends them, and the first traceback names the cause.
# - A checkpoint holds weights, momentum and the number of epochs. One rank writes it, all or nothing; one rank reads it, and sends
#   what it has read to all.
# - A rank is a task of SLURM. Nodes, tasks and GPUs are counted for the job or for each node, cores for each rank.
#
# Next: `08_resnet152_scaling`.
