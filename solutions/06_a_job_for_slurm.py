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
# **Time: 45 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `07_horovod_sharding`), *everything*; *an afternoon* leaves this notebook out.
#
# In notebook 05 you completed `scripts/ResNet50.py` and measured it on this machine. Here you read a log from a cluster
# with a critical eye, and write a **batch script** that runs the same training there as a job. You need your
# `ResNet50.py` from notebook 05. At the end, you write task **T5**, about your runs from notebook 05.

# %%
from labs import blanks, jobs, recorded, results
from labs.checks import answered, check
from labs.show import tables
from labs.slurm import sites

# %% [markdown]
# ## A log from a cluster
#
# You know this log from notebook 01: it comes from the same program, run on one node of CTE-POWER with 4 V100 GPUs, on
# CIFAR-10 resized to 128x128, with 256 images per GPU. It is **recorded**: you can compute with it, but the machine is
# not yours. Here are the results after 5 epochs:

# %%
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
# With 4 GPUs, there are a quarter as many updates, and the accuracy is nearly the same. The log does not tell you how
# much another seed would change it.
#
# The log gives whole seconds: 45 s and 12 s. So the speedup on 4 GPUs could be anything from 3.56 to 3.96, as you found
# in notebook 01. The cure costs nothing: have the log give the total time of **n epochs**, again in whole seconds.
# Suppose that these times are n x 45 s and n x 12 s. What is the smallest n for which both the lowest and the highest
# possible speedup differ from 45/12 by less than 1 %?

# %% labs={"id": "slurm.1"}
### BEGIN SOLUTION
epochs_together = 1
while (45 * epochs_together + 0.5) / (12 * epochs_together - 0.5) > 1.01 * 45 / 12:
    epochs_together += 1
### END SOLUTION
check("slurm.1", epochs_together)

# %% [markdown]
# You can read a longer time more precisely, but it is still a single measurement: no interval tells you how much the
# next one would differ. Your own record keeps the time of every step to the microsecond, over several rounds.
#
# ## Run it on the cluster
#
# On a cluster, you do not start a training run yourself. You write a **batch script**: a shell script whose `#SBATCH`
# lines state what the job needs. The command `sbatch` hands it to **SLURM**, the program that allocates the cluster's
# resources. SLURM puts the job into a queue, starts it when enough GPUs are free, and ends it when its time is up.
# Everything that you need to know about a site is in one file. Here is your site's rule for the cores of a job:

# %%
site = sites.load()
print(f"{site.name}, in slurm/sites/{site.id}.toml: {site.about}\n")
print(f"A node has {site.gpus} GPUs and {site.cpus} cores. The site's rule:")
tables.show(
    [{"gpus": n, "least": site.cpus_for(n)[0], "most": site.cpus_for(n)[1]} for n in range(1, site.gpus + 1)],
    ("gpus", "least", "most"),
    {"gpus": "GPUs of a job on a node", "least": "least cores", "most": "most cores"},
)

# %% [markdown]
# Why is there such a rule? Suppose that a job takes one of a node's four GPUs and all the cores. Then the other three
# GPUs are useless: no cores are left to feed them. What happens to a job that breaks the rule depends on the site: it
# may be refused, wait forever, or be given other numbers of cores than it asked for.
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
# | `#SBATCH --cpus-per-task=10` | cores for each task, not for the whole job (or hardware threads, at sites that count those) |
# | `#SBATCH --time=00:30:00` | hours:minutes:seconds. `00:30` is read as minutes:seconds, so it means 30 seconds |
#
# Bash can do arithmetic only on whole numbers, and only inside `$(( ))`:
#
# | line | does |
# |---|---|
# | `images=100` | sets a variable. Put no spaces around the `=`: otherwise, bash takes `images` for a program |
# | `echo "$images"` | `$` reads the variable; the quotes keep its value together as one word |
# | `half=$((images / 2))` | calculates; inside `$(( ))`, names need no `$` |
# | `half=images/2` | does not calculate: `half` is the text `images/2` |
# | `for n in 1 2; do ... done` | runs the part between `do` and `done` with n=1, then with n=2 |
#
# Try it. (`bash -c` runs one line of bash.)

# %%
import subprocess

for line in (
    'images=100; half=$((images / 2)); echo "$half"',
    'images=100; half=images/2; echo "$half"',
    'images = 100; echo "$images"',
    'for n in 1 2; do echo "n=$n, 3 more are $((n + 3))"; done',
):
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    print(
        f"{line}\n    {done.stdout.strip() or done.stderr.strip()}".replace("\n", "\n    ").replace("    " * 2, "    ")
    )

# %% [markdown]
# In the course's top folder, open `slurm/local/ResNet50.sh` (or the one in your site's folder). It is a single job that
# trains on 1 worker, then on 2, and so on up to the number of GPUs in a node, one run after another. You fill in the
# blanks:
#
# 1. how many **nodes**, **tasks**, **GPUs** and **cores** the job asks for: enough for its largest run, and no more
#    than the rule allows,
# 2. the global **batch** of each run. (Your `ResNet50.py` sets the learning rate itself.)

# `sbatch` catches few mistakes. It does not notice `# SBATCH` with a space (a comment!), lines that come too late, a
# log folder that does not exist, or a batch that does not grow with the number of workers. The check below finds all of
# these. In a terminal, you can run this check with `uv run labs slurm check slurm/local/ResNet50.sh`.

# %% labs={"id": "slurm.2"}
batch_script = sites.script("ResNet50.sh")
check("slurm.2", batch_script)

# %% [markdown]
# One of these mistakes is worth a closer look. Suppose that the line `#SBATCH --gres=gpu:4` comes after `module load`
# in a batch script, at a site where a job gets only the GPUs that it asks for. How many GPUs does the job get?

# %% labs={"id": "slurm.3"}
### BEGIN SOLUTION
gpus_of_the_late_line = 0
### END SOLUTION
check("slurm.3", gpus_of_the_late_line)

# %% [markdown]
# Submit your job. Where there is no SLURM, bash runs the script on this machine, and a message tells you so. On the
# practice site, the training runs are short.

# %%
short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if blanks.blanks("scripts/ResNet50.py"):
    print("ResNet50.py still has blanks. Finish it in notebook 05, then run this cell again.")
elif answered("slurm.2"):
    batch_job = jobs.run(batch_script, *short, name="ResNet50", site=site.id)

# %% [markdown]
# The job left behind one `.out` file, one `.err` file, and a record for each training run. At the beginning of the log,
# the script prints the number of the job and its node (or that there is no SLURM), and the software versions.

# %%
if batch_job:
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(results.load(batch_job.records))

# %% [markdown]
# For T5, the speedup from notebook 05 counts: those runs took turns, over several rounds. These came one after the other,
# once each.
#
# To do this by hand, you would type these commands in the course's top folder: `sbatch slurm/local/ResNet50.sh` to
# submit the job, `squeue` to see whether it is waiting, and why, `scancel` with the job number to stop it, and
# `labs results notebooks/runs` to see the results when it is done. On a Linux machine where you are root,
# `make cluster` starts a small SLURM cluster to practise on.
#
# ## T5
#
# T5 is an account of your runs, in 4 to 7 sentences that cover the points below. The report shows your scripts, logs,
# tables and figures beside it, so you need not include whole files. Your account says:
#
# - which scripts you completed (`ResNet50.py` and `ResNet50.sh`), for which numbers of workers and batch sizes, and
#   whether these were the same in both
# - the name of the `.out` file of each run of notebook 05, and one line from it that confirms a number in the table
# - the speedup with its interval, and beside it the accuracy and the number of updates in an epoch
# - what a worker is, what limits the speedup, and which run, if any, is oversubscribed (has more workers than cores)
#   and so says nothing about it
#
# You will find the numbers in the tables and figures of notebook 05. The `.out` files, such as `runs/ResNet50_w2.out`,
# are in the folder `runs`: open them in the file browser.

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
# one; the run on 4 workers is oversubscribed and says nothing about it.
# ### END SOLUTION

# %% [markdown]
# ## Summary
#
# - Whole seconds hide more than they show. Time several epochs together, and measure more than once.
# - A batch script states what a job needs, and follows the site's rule.
# - SLURM accepts most mistakes without complaint: check the script before you submit it.
#
# Next: `07_horovod_sharding`.
