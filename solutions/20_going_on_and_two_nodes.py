# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Horovod: one training run in several jobs, on several nodes
#
# **Time: 40 minutes, including 4 minutes of computing on 2 cores.**
#
# **Paths:** only *everything* contains this notebook.
#
# In notebook 08 you trained one network on several ranks of one machine. A real training run may take longer than a
# single job is allowed to run, and may need more GPUs than a single machine has. First you find four mistakes in a
# script and see what happens when a rank fails. Then you write a checkpoint from which the next job continues. At the
# end you start a job on several nodes, and see in a timeline what the ranks wait for. For both you need your
# `scripts/ResNet50_horovod.py` from notebook 08.

# %%
from labs import blanks, devices, jobs, presets, recorded, results
from labs.checks import answered, check, outcome, predict
from labs.show import tables
from labs.slurm import sites

plan = presets.choose()
quick = plan.name == "test"
small, few = ("-m", "lessons.horovod_training.experiment"), ["--images", 256, "--epochs", 3]
cores = {"launcher": "mpiexec", "env": {"CUDA_VISIBLE_DEVICES": ""}}  # small experiments need no GPU

# %% [markdown]
# ## Four mistakes
#
# `scripts/four_mistakes.py` trains a small network on any number of ranks. It was written in a hurry and breaks four
# rules that you know from the six steps. Run it:

# %%
hasty = "scripts/four_mistakes.py"
if devices.has("horovod"):
    job = jobs.run(hasty, "--images", 512, "--epochs", 2, name="four_mistakes", ranks=2, **cores)

# %% [markdown]
# Repair it, and run the cell above again after each change. The kit rejects two of the mistakes, one after the other.
# With the other two, training runs without an error and ends with identical weights. Which field of the record would
# have revealed one of them? And what would you have to count to notice the other?

# %% labs={"id": "nodes.1"}
check("nodes.1", hasty)

# %%
if answered("nodes.1") and devices.has("horovod") and job.state == "finished":
    run = results.load(job.record)[0]
    print("ranks:", run.workers, "  rate:", run.configuration.learning_rate)
    print("weights identical:", run.weights["identical"])

# %% [markdown]
# With the original rate, the record shows 0.01 on 2 ranks, which is not the right rate for this batch size. No field
# shows that each rank shuffles with its own seed. Each rank still reads half of the samples, but the two halves
# overlap: some samples are read twice, and others never. To notice this, count how often each sample number occurs, or
# let `ranks.check_shards` do it, as `ResNet50_horovod.py` does.
#
# ## When a rank dies
#
# In this run, one of the two ranks fails at the beginning of its second epoch. The other one then waits in an
# all-reduce for a rank that never arrives.

# %%
if devices.has("horovod"):
    job = jobs.run(*small, *few, "--accident", name="dies", ranks=2, env=cores["env"])

# %%
if devices.has("horovod"):
    print("state of the job:   ", job.state)
    print("state of its record:", results.load(job.record)[0].state)
    complaints = [
        line.rstrip().replace("<stderr>:", " ") for line in open(job.err) if "Traceback" in line or "Error: " in line
    ]
    print("", *complaints, sep="\n")

# %% [markdown]
# When one rank fails, the launcher terminates all the others. The `.err` file contains several error messages, but they
# have only one cause. Which rank brought the job down: 0 or 1?

# %% labs={"id": "nodes.2"}
### BEGIN SOLUTION
died = 1
### END SOLUTION
check("nodes.2", died)

# %% [markdown]
# Without a launcher that terminates them, the other ranks would wait until somebody stopped them, and the job would
# hold its nodes until its time limit. In notebook 07 you saw what happens when ranks have different numbers of batches:
# those ranks, too, may wait for ever, or they may compute wrong averages without any error. That is why `labs.hvd`
# compares the number of steps on all ranks before the first step.
#
# ## One hour for a job, three hours of training
#
# A job ends at its time limit, whether or not training has finished. So a long training run is divided into several
# jobs, and each job continues where the previous one stopped. To make this possible, a **checkpoint** is written after
# every epoch: a single file with everything that the next job needs.
#
# Here, SGD with momentum trains a small network: for each weight, it keeps a velocity that accumulates the gradients.
# The next job should continue as if training had never stopped. **Predict** the size of a checkpoint that makes this
# possible, divided by the size of the network's weights.

# %% labs={"id": "nodes.3"}
### BEGIN SOLUTION
times_the_weights = 2
### END SOLUTION
predict("nodes.3", times_the_weights)

# %% [markdown]
# Open `scripts/goes_on.py`. `write` saves arrays to a file and `read` loads them again; `save`, `resume` and two places
# in `train` are blank. Before you fill them in, ask yourself:
#
# - All ranks hold the same state. Which rank writes the file, which one reads it, and how do its contents reach the
#   others?
# - Besides the weights, what does a step change?
# - What does the next job find if this one is terminated while it is writing?
# - Which epoch does the next job start with, and in what order does it read the samples?
#
# The check runs your functions on 2 simulated ranks. Each rank has its own disk, as if the two were on different nodes.

# %% labs={"id": "nodes.4"}
several = "scripts/goes_on.py"
check("nodes.4", several)

# %% [markdown]
# Now train on 2 ranks in two ways: 4 epochs in one job, and 4 epochs split over two jobs, the first of which stops
# after 2 epochs.

# %%
one_go, halves = ["--checkpoint", "one_go.npz"], ["--checkpoint", "halves.npz"]
ways = {"one_go": one_go, "first_half": [*halves, "--stop_after", 2], "second_half": halves}
if answered("nodes.4") and devices.has("horovod"):
    for file in ("one_go.npz", "halves.npz"):
        (jobs.folder() / file).unlink(missing_ok=True)  # left by an earlier try: the training would go on from them
    for name, options in ways.items():
        job = jobs.run(several, "--images", 640, "--epochs", 4, *options, name=name, ranks=2, **cores)
        print(job.out.read_text())

# %%
if answered("nodes.4") and devices.has("horovod"):
    said = {name: (jobs.folder() / f"{name}.out").read_text() for name in ways}
    rows = [{"job": name, "sha": text.partition("SHA-256 ")[2].split()[0]} for name, text in said.items()]
    tables.show(rows, ("job", "sha"), {"sha": "SHA-256 of the weights at its end"})
    print("one job and two jobs train the same network:", rows[0]["sha"] == rows[2]["sha"])
    outcome("nodes.3", float(said["one_go"].partition(" bytes, ")[2].split()[0]))

# %% [markdown]
# The two networks are identical to the last bit, and the accuracies are the same in every epoch. If you had forgotten
# the momentum, or had read the samples in the order of the first epoch again, the second job would still have trained
# without an error. But it would have trained a different network, and only a comparison like this one shows that.
#
# The order of the samples does not have to be in the file, since it follows from the seed and the epoch number. Other
# random numbers, such as those for dropout, must also be either saved or derived from saved numbers. And each rank must
# draw its own: with one seed for all ranks, dropout leaves out the same units on each of them. `ranks.own_seed(seed)`
# makes a different seed for each rank.
#
# On GPUs, the order in which the terms of a sum are added may change from run to run, so compare losses there instead
# of bits. And whatever is not yet in a checkpoint is lost: if a job is terminated in the middle of an epoch, the next
# job has to repeat this epoch.
#
# With `fit`, you use the same building blocks. Rank 0 loads the model. `BroadcastGlobalVariablesCallback` sends its
# weights and momentum to all ranks. `hvd.broadcast` sends the number of finished epochs, which becomes `fit`'s
# `initial_epoch`. A callback saves the checkpoint, on rank 0 only.
#
# ## MPI, Gloo, NCCL: who carries what?
#
# Three libraries can connect the ranks, and each of them does part of the work:
#
# | | starts processes | negotiates which tensors are ready | carries tensors |
# |---|---|---|---|
# | **MPI** | `mpiexec`, `srun` | yes | between CPUs, on one node or several; between GPUs, if both MPI and Horovod are built for it |
# | **Gloo** | `horovodrun --gloo` | yes | between CPUs, over TCP; does not need MPI |
# | **NCCL** | no | no | between GPUs: NVLink within a node, the fast network between nodes |
#
# Suppose that Horovod is built with NCCL. What carries the gradients between the 4 GPUs of one node?
#
# - **a**: NCCL
# - **b**: Gloo
# - **c**: MPI
# - **d**: horovodrun

# %% labs={"id": "nodes.5"}
### BEGIN SOLUTION
carrier = "a"
### END SOLUTION
check("nodes.5", carrier)

# %% [markdown]
# ## Over several nodes
#
# So far, all ranks have run on one machine. On a cluster, SLURM starts them on all nodes of the job: `srun` takes the
# place of `horovodrun`, and your training script stays as it is. A job requests its resources in three different units:
#
# - `--nodes` counts the nodes of the job,
# - `--ntasks-per-node` and `--gres=gpu:` count ranks and GPUs **per node**,
# - `--cpus-per-task` counts cores **per rank**.
#
# On CTE-POWER, a job that uses all 4 GPUs of a node also gets all 160 of its hardware threads, and SLURM counts these
# threads as cores. What value of `--cpus-per-task` does a Horovod job need there?

# %% labs={"id": "nodes.6"}
### BEGIN SOLUTION
cpus_per_task = 160 // 4
### END SOLUTION
check("nodes.6", cpus_per_task)

# %% [markdown]
# In the course's top folder, open `slurm/local/ResNet50_horovod_nodes.sh` (or the one in your site's folder). It starts
# one training run on 2 nodes, with one rank per GPU. Fill in its five blanks. SLURM puts the number of ranks into the
# variable `SLURM_NTASKS`, so `sbatch --nodes=64` runs the same script on 64 nodes.

# %%
site = sites.load()
batch_script = sites.script("ResNet50_horovod_nodes.sh")
print(batch_script.read_text())

# %% labs={"id": "nodes.7"}
check("nodes.7", batch_script)

# %% [markdown]
# Submit it. Without SLURM, bash runs the script, and all ranks share the cores of this machine.

# %%
short = ["--images", 256, "--epochs", 1, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if blanks.blanks("scripts/ResNet50_horovod.py"):
    print("ResNet50_horovod.py still has blanks. Finish it in notebook 08, then run this cell again.")
elif answered("nodes.7") and not quick:
    batch_job = jobs.run(batch_script, *short, name="ResNet50_horovod_nodes", site=site.id)

# %%
if batch_job and batch_job.records:
    text = batch_job.printed
    print(*[line for line in text.split("\n") if "Rank " in line], sep="\n")
    run = results.load(batch_job.records[0])[0]
    print("ranks:", run.workers, "nodes:", run.configuration.nodes, "weights identical:", run.weights["identical"])
    print("oversubscribed:", run.oversubscribed)

# %% [markdown]
# Each rank is a SLURM task, each task has one GPU, and `hvd.local_rank()` starts again at 0 on each node. That is why
# step 2 pins the GPU by local rank. If the launcher belonged to a different MPI from the one that Horovod uses, each
# process would be alone: the script would run n times with size 1, and SLURM would report no error. The kit's
# `hvd.init()` checks for this.

# %% [markdown]
# ## An average that is not there
#
# Both `labs.hvd` and Horovod itself have a `DistributedOptimizer` for Keras. The module `lessons.horovod_training.experiment`
# trains a small dense network. With the options below, it uses Horovod's own class. All ranks begin with identical
# weights. **Predict:** will the weights still be identical after 3 epochs? (`True` or `False`)

# %% labs={"id": "nodes.8"}
### BEGIN SOLUTION
identical_after = False
### END SOLUTION
predict("nodes.8", identical_after)

# %%
wrong = [*few, "--optimizer", "horovods_own"]
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, "--unchecked", name="silent", ranks=2, **cores)
    print(job.out.read_text())
    outcome("nodes.8", "True after" in job.out.read_text())

# %% [markdown]
# Horovod's class was written for Keras 2, and Keras 3 never calls the method that does the averaging. There is no error
# and no warning. The loss falls on each rank, and each rank trains a network of its own on its own half of the data.
# How many different networks would 4 ranks train in this way?

# %% labs={"id": "nodes.9"}
### BEGIN SOLUTION
networks = 4
### END SOLUTION
check("nodes.9", networks)

# %% [markdown]
# If rank 0 then saved its network, you would have one that has seen only a quarter of the data, but report the speedup
# of all 4 ranks. So `labs.hvd` checks the optimizer before the first step. Here is the same run with the callbacks of
# step 5:

# %%
if devices.has("horovod"):
    job = jobs.run(*small, *wrong, name="refused", ranks=2, **cores)

# %% [markdown]
# ## What do the ranks wait for?
#
# A gradient can be averaged only when *all* ranks have computed it. In each step, Horovod averages one tensor for each
# trainable variable. Together, these tensors are the gradient, as counted in notebook 09:

# %%
from lessons import counts

facts = counts.of("ResNet50V2", image_size=32, classes=10)
print(f"gradient of ResNet50V2: {facts.tensors} tensors, {facts.gradient_bytes:,} bytes")

# %% [markdown]
# Horovod can record when each rank announced each tensor, and when the tensor was averaged: set `HOROVOD_TIMELINE` to a
# file name. (Horovod remembers which tensors were announced in earlier steps, and then no longer records which rank
# announced them. With `HOROVOD_CACHE_CAPACITY=0`, it asks again in every step.)


# %%
def watch(name):
    """Environment of a job that writes its timeline; the file."""
    file = (jobs.folder() / f"{name}_timeline.json").resolve()
    file.unlink(missing_ok=True)
    return {"HOROVOD_TIMELINE": str(file), "HOROVOD_CACHE_CAPACITY": "0"}, file


trace, kind, script = recorded.horovod_timeline(), "recorded", "scripts/ResNet50_horovod.py"
if devices.has("horovod") and not blanks.blanks(script) and not quick:
    env, trace = watch("ResNet50")
    options = ["--batch_size", 2 * plan.local_batch, *plan.arguments(), "--epochs", 1, "--repeats", 1]
    job = jobs.run(script, *options, name="ResNet50_watched", ranks=2, env=env)
    kind = "measured"

# %%
from labs.show import plots
from lessons import timeline, timelines

events = timeline.read(trace)
plots.show(timelines.figure(events, kind=kind))

# %% [markdown]
# The upper curves rise while the backward pass works its way from the last layer to the first. Where one rank's curve
# is higher, that rank has announced more gradients than the other. The curve of averaged gradients can only follow the
# slower rank. In the lower part, each block is one message; the title counts them.
#
# Does the title count fewer tensors than were printed above? Where a block adds the outputs of two convolutions, the
# biases of both have the same gradient. TensorFlow notices this, so Horovod averages each such pair only once.
#
# Every message has a start-up cost. So Horovod **fuses** tensors that are ready at the same time into one buffer, and
# sends the buffer as one message: there are fewer messages than tensors.
#
# Now one rank is slow: rank 1 pauses for 50 ms in each step of a small network.

# %%
if devices.has("horovod"):
    env, trace = watch("slow")
    options = ["--model", "SmallCNN", "--images", 128, "--epochs", 1, "--slow", 1, 50]
    job = jobs.run(*small, *options, name="slow", ranks=2, launcher="mpiexec", env=env | cores["env"])
    slow = timeline.read(trace)
    plots.show(timelines.figure(slow))

# %% [markdown]
# Which rank waits in each step: 0 or 1? The curves tell you.

# %% labs={"id": "nodes.10"}
### BEGIN SOLUTION
waiting_rank = 0
### END SOLUTION
check("nodes.10", waiting_rank)

# %%
if devices.has("horovod"):
    rows = timeline.summary(slow)[2:]  # without the first steps, in which TensorFlow traces and ranks are apart
    for row in rows:
        row |= {"wait": 1000 * max(row["waited"].values()), "reduce": 1000 * row["allreduce_seconds"]}
    columns = {"step": "step", "last": "last rank", "wait": "wait for it (ms)", "reduce": "all-reduce (ms)"}
    tables.show(rows, tuple(columns), columns)

# %% [markdown]
# The all-reduce itself is short, but when one rank pauses, every rank pays for it: the slowest rank sets the pace. On a
# cluster, the cause may be a slow disk, a busy core or a larger shard.

# %% [markdown]
# ## Summary
#
# - When one rank dies, all the others wait for it. The launcher terminates them, and the first traceback names the
#   cause.
# - A checkpoint contains the weights, the momentum and the number of finished epochs. One rank writes it, either
#   completely or not at all. One rank reads it, then sends the contents to all the others.
# - A rank is a SLURM task. Tasks and GPUs are counted per node, cores per rank.
# - Without the average, every rank trains a network of its own, and no error says so.
# - All ranks wait for the slowest one, and a timeline shows which one that is.
#
# Next: `21_standing_still`.
