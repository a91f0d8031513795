# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A batch script for a cluster
#
# **Time: 22 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `07_horovod_sharding`), *everything*; *an afternoon* leaves this notebook out.
#
# You read a log from a cluster with a critical eye, and write a **batch script** that runs your `ResNet50.py` from
# notebook 05 as a job. At the end, you write task **T5**, about your runs from notebook 05.
#
# ## A log from a cluster
#
# You know this **recorded** log from notebook 01: the same program ran on one node of CTE-POWER with 4 V100 GPUs, on
# CIFAR-10 resized to 128x128, with 256 images per GPU. Here are the results after 5 epochs:

# %%
from labs import recorded, results
from labs.checks import check
from labs.show import tables

tables.show(
    [
        {
            "GPUs": run.workers,
            "s per epoch": run.epoch_seconds.value,
            "updates per epoch": run.steps,
            "accuracy (recorded)": run.final_accuracy.value,
        }
        for run in results.load(recorded.CTE_POWER)
    ]
)

# %% [markdown]
# With 4 GPUs and a quarter of the updates, the accuracy is nearly the same. The log does not tell you how much another
# seed would change it.
#
# The log gives whole seconds: 45 s and 12 s. So the speedup on 4 GPUs could be anything from 3.56 to 3.96 (notebook
# 01). Suppose that the log gave the total time of **n epochs**, again in whole seconds: n x 45 s and n x 12 s. What is
# the smallest n for which both the lowest and the highest possible speedup differ from 45/12 by less than 1 %?

# %% labs={"id": "slurm.1"}
### BEGIN SOLUTION
epochs_together = 1
while (45 * epochs_together + 0.5) / (12 * epochs_together - 0.5) > 1.01 * 45 / 12:
    epochs_together += 1
### END SOLUTION
check("slurm.1", epochs_together)

# %% [markdown]
# A longer time can be read more precisely, but it is still a single measurement, without an interval.
#
# ## Run it on the cluster
#
# On a cluster, you do not start a training run yourself. You write a **batch script**: a shell script whose `#SBATCH`
# lines state what the job needs. The command `sbatch` hands it to **SLURM**, which puts the job into a queue, starts it
# when enough GPUs are free, and ends it when its time is up. Each computing centre (**site**) has a rule for the cores
# of a job. Here is yours. (A site that is for practice need not look like your machine: write for the site.)

# %%
from labs.slurm import sites

site = sites.load()
print(f"{site.name}, in slurm/sites/{site.id}.toml: {site.about}")
print(f"A node has {site.gpus} GPUs and {site.cpus} cores.")
rule = [(n, *site.cpus_for(n)) for n in range(1, site.gpus + 1)]
tables.show([{"GPUs of a job on a node": n, "fewest cores": least, "most cores": most} for n, least, most in rule])

# %% [markdown]
# Why is there such a rule? If a job takes one of a node's four GPUs and all the cores, then no cores are left to feed
# the other three. A job that breaks the rule may be refused, wait forever, or get other numbers of cores than it asked
# for: this depends on the site.
#
# ### How to write it for SLURM and for bash
#
# A batch script is read twice. `sbatch` reads the `#SBATCH` lines at the top, up to the first command. Then bash runs
# the script on a node; to bash, the `#SBATCH` lines are comments.
#
# | line | asks for |
# |---|---|
# | `#SBATCH --nodes=1` | machines |
# | `#SBATCH --ntasks=3` | processes in total: MirroredStrategy needs one; Horovod needs one for each GPU |
# | `#SBATCH --ntasks-per-node=3` | processes on each node |
# | `#SBATCH --gres=gpu:3` | GPUs on each node: the kind of resource, a colon, the number |
# | `#SBATCH --cpus-per-task=10` | cores for each task, not for the whole job (some sites count hardware threads) |
# | `#SBATCH --time=00:30:00` | hours:minutes:seconds. `00:30` would be 30 seconds |
#
# Bash can do arithmetic only on whole numbers, and only inside `$(( ))`:
#
# | line | does |
# |---|---|
# | `images=100` | sets a variable. Put no spaces around the `=` |
# | `echo "$images"` | `$` reads the variable; the quotes keep its value one word |
# | `half=$((images / 2))` | calculates; inside `$(( ))`, names need no `$` |
#
# Try it:

# %%
import subprocess

for line in (
    'images=100; half=$((images / 2)); echo "$half"',
    'images=100; half=images/2; echo "$half"',
    'images = 100; echo "$images"',
    'for n in 1 2; do echo "n=$n, 3 more are $((n + 3))"; done',
):
    bash = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    print(f"$ {line}\n{bash.stderr}{bash.stdout}")

# %% [markdown]
# In the course's top folder, open `slurm/local/ResNet50.sh` (or the one in your site's folder). It is a single job that
# trains on 1 worker, then on more, up to the number of GPUs in a node. Fill in the blanks:
#
# 1. how many **nodes**, **tasks**, **GPUs** and **cores** the job asks for: enough for its largest run, and no more
#    than the rule allows,
# 2. the global **batch** of each run. (Your `ResNet50.py` sets the learning rate itself.)
#
# `sbatch` catches few mistakes. It does not notice `# SBATCH` with a space (a comment!), lines that come too late, a
# log folder that does not exist, or a batch that does not grow with the number of workers. The check finds all of
# these; in a terminal, it is `uv run labs slurm check slurm/local/ResNet50.sh`.

# %% labs={"id": "slurm.2"}
batch_script = sites.script("ResNet50.sh")
check("slurm.2", batch_script)

# %% [markdown]
# Look closer at one of these mistakes. The line `#SBATCH --gres=gpu:4` comes after `module load` in a batch script, at
# a site where a job gets only the GPUs that it asks for. How many GPUs does the job get?

# %% labs={"id": "slurm.3"}
### BEGIN SOLUTION
gpus_of_the_late_line = 0
### END SOLUTION
check("slurm.3", gpus_of_the_late_line)

# %% [markdown]
# Submit your job. Where there is no SLURM, bash runs the script on this machine, and a message tells you so. On the
# site `local`, which is for practice, the training runs are short.

# %%
from labs import blanks, jobs
from labs.checks import answered

short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if blanks.blanks("scripts/ResNet50.py"):
    print("ResNet50.py still has blanks. Finish it in notebook 05, then run this cell again.")
elif answered("slurm.2"):
    batch_job = jobs.run(batch_script, *short, name="ResNet50", site=site.id)

# %% [markdown]
# The job left behind one `.out` file, one `.err` file, and a record for each training run. The log begins with the
# job's number and its node (or says that there is no SLURM), and the software versions. In the `.err`, TensorFlow's
# lines on oneDNN are not errors.

# %%
if batch_job:
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(results.load(batch_job.records))

# %% [markdown]
# For T5, the speedup from notebook 05 counts: those runs took turns, over several rounds. These came one after the
# other, once each.
#
# In a terminal, you would type these commands in the course's top folder:
#
# ```
# sbatch slurm/local/ResNet50.sh        # submit the job
# squeue                                # is it waiting, and why?
# scancel 1234                          # stop job 1234
# uv run labs results notebooks/runs    # the results
# ```
#
# ## T5
#
# Describe your runs in 4 to 7 sentences. (The report shows the evidence beside them.) Say:
#
# - which scripts you completed (`ResNet50.py` and `ResNet50.sh`), for which numbers of workers and batch sizes, and
#   whether both used the same batch sizes
# - the name of the `.out` file of each run of notebook 05, and one line from it that confirms a number in the table
# - the speedup with its interval, and beside it the accuracy and the number of updates in an epoch
# - what a worker is, what limits the speedup, and which run, if any, is oversubscribed (more workers than cores), so
#   that its speedup says nothing
#
# The numbers are in notebook 05. Open the `.out` files, such as `runs/ResNet50_w2.out`, in the file browser.

# %% [markdown] labs={"id": "T5", "kind": "answer"}
# ### T5: your answer
# ### BEGIN SOLUTION
# I completed scripts/ResNet50.py and slurm/local/ResNet50.sh, and ran them on 1 worker with a global batch of 64
# images, and on 2 workers with 128, the same in both. In runs/ResNet50_w2.out, the line `Batch_size: 128` confirms the
# global batch in the table; in runs/ResNet50_w1.out, `8/8 - ..` at the beginning of an epoch's line confirms its 8
# updates per epoch. The table in notebook 05 gives the speedup with its 95 % interval, without the first epoch, and the
# accuracy of each run: with 2 workers, an epoch has 4 updates, half as many, at twice the learning rate, and after 7
# epochs the accuracy is equal to within a percentage point. One worker is one core of the same machine: the speedup
# stays below 2 because the two workers share its memory, sum 94 MB of gradients in each step and wait for the slower
# one; a run on 4 workers would be oversubscribed and say nothing about it.
# ### END SOLUTION

# %% [markdown]
# Next: `07_horovod_sharding`.
