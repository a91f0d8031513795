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
# **Time: 50 minutes, including 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (next: `08_resnet152_scaling`), *everything*; *an afternoon* leaves it out.
#
# In notebook 05 you completed `scripts/ResNet50.py` and measured it on this machine. Here you read a log from a cluster,
# critically, and write a **batch script** that runs the same training there as a job. You need your `ResNet50.py` from notebook
# 05. At the end you hand in task **T5**, with your runs from notebook 05.

# %%
from labs import blanks, jobs, recorded
from labs.checks import answered, check
from labs.results import collect
from labs.show import tables
from labs.slurm import sites

# %% [markdown]
# ## A log from a cluster
#
# You know this log from notebook 01: CTE-POWER, one node with 4 V100 GPUs, CIFAR-10 resized to 128x128, 256 images per GPU, the
# same program. It is **recorded**: you can compute with it, but the machine is not yours. After 5 epochs:

# %%
cluster = collect.rows([recorded.CTE_POWER], images=50_000)
headers = {
    "workers": "GPUs",
    "epoch_seconds": "s per epoch",
    "steps": "updates per epoch",
    "final_accuracy": "accuracy (recorded)",
}
tables.show(cluster, list(headers), headers)

# %% [markdown]
# With 4 GPUs there are a quarter of the updates, and nearly the same accuracy. Nothing says how much another seed would change.
#
# The log gives whole seconds, 45 s and 12 s. So the speedup on 4 GPUs is anything from 3.56 to 3.96, as you found in notebook
# 01. The cure costs nothing: let the log give the seconds of **n epochs together**, again as a whole number. Suppose that these
# are n x 45 and n x 12. What is the smallest n with which both the lowest and the highest possible speedup differ from 45/12
# by less than 1 %?

# %% labs={"id": "05.13"}
### BEGIN SOLUTION
epochs_together = 1
while (45 * epochs_together + 0.5) / (12 * epochs_together - 0.5) > 1.01 * 45 / 12:
    epochs_together += 1
### END SOLUTION
check("05.13", epochs_together)

# %% [markdown]
# A longer time is read more precisely, but it is still one measurement: no interval tells how much the next one would differ.
# Your own record keeps every step to the microsecond, and several rounds.
#
# There is one more trap. These speedups compare GPUs with GPUs. "75 times faster than on the CPU" is *acceleration*: it compares
# other hardware. *Speedup* compares more of the same hardware with less. Never divide one by the other.
#
# ## Run it on the cluster
#
# On a cluster, nobody starts a training by hand. You write a **batch script**: a shell script whose `#SBATCH` lines say what the
# job needs. The command `sbatch` hands it to **SLURM**, the program that shares out the cluster. SLURM puts the job into a queue,
# starts it when enough GPUs are free, and ends it when its time is up. What you need to know about a site is in one file:

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
# Why is there such a rule? If a job takes one GPU and all cores, the other three GPUs are useless: there is no core left to feed
# them. On CTE-POWER (4 GPUs and 160 hardware threads per node) the rule was: 40 to 80 threads for 1 GPU, 80 for 2, 120 to 160
# for 3, and 160 for 4. Suppose that you asked there for 2 GPUs and 160 threads. What happens?
#
# - **a**: the job starts, and the spare threads make the input pipeline faster
# - **b**: the job is refused, or waits for ever: it breaks the rule
# - **c**: SLURM gives it 4 GPUs, to match the threads
# - **d**: SLURM cuts the threads to 80

# %% labs={"id": "05.14"}
### BEGIN SOLUTION
too_many_cores = "b"
### END SOLUTION
check("05.14", too_many_cores)

# %% [markdown]
# ### How to write it for SLURM and for bash
#
# A batch script is read twice. `sbatch` reads the `#SBATCH` lines at the top, up to the first command. Then bash runs the script
# on a node; for bash, the `#SBATCH` lines are comments.
#
# | line | asks for |
# |---|---|
# | `#SBATCH --nodes=1` | machines |
# | `#SBATCH --ntasks=3` | processes in all: MirroredStrategy needs one, Horovod one for each GPU |
# | `#SBATCH --ntasks-per-node=3` | processes on each node |
# | `#SBATCH --gres=gpu:3` | GPUs on each node: the kind of resource, a colon, the number |
# | `#SBATCH --cpus-per-task=10` | cores for each task, not for the whole job (hardware threads, where a site counts those) |
# | `#SBATCH --time=00:30:00` | hours:minutes:seconds. `00:30` means minutes:seconds, so it is 30 seconds |
#
# Bash calculates with whole numbers only, and only inside `$(( ))`:
#
# | line | does |
# |---|---|
# | `images=100` | sets a variable. Write no space around the `=`: with one, bash takes `images` for a program |
# | `echo "$images"` | `$` reads the variable; the quotes keep its value one word |
# | `half=$((images / 2))` | calculates; inside `$(( ))` names need no `$` |
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
# Open `slurm/local/ResNet50.sh` (or the one in the folder of your site) in the course's top folder. It is one job that trains on
# 1, 2 and more workers, up to the number of GPUs of a node, one training after the other. The blanks are yours:
#
# 1. how many **nodes**, **tasks**, **GPUs** and **cores** the job asks for: enough for its largest training, and within the rule,
# 2. the global **batch** of each training. (The learning rate follows from it in your `ResNet50.py`.)

# %%
batch_script = sites.script("ResNet50.sh")
print(batch_script.read_text())

# %% [markdown]
# `sbatch` finds few mistakes. It does not notice `# SBATCH` with a space (a comment!), lines that come too late, a folder for the
# log that does not exist, or a batch that does not grow with the workers. The check below notices them. In a terminal you get it
# with `uv run labs slurm check slurm/local/ResNet50.sh`.

# %% labs={"id": "05.15"}
check("05.15", batch_script)

# %% [markdown]
# One of these mistakes is worth a closer look. Suppose that the line `#SBATCH --gres=gpu:4` stands below `module load` in a batch
# script, at a site where a job gets only the GPUs that it asks for. How many GPUs does this job get?

# %% labs={"id": "05.16"}
### BEGIN SOLUTION
gpus_of_the_late_line = 0
### END SOLUTION
check("05.16", gpus_of_the_late_line)

# %% [markdown]
# Submit your job. The call is the same as for a Python script. Where there is no SLURM, bash runs the script on this machine and
# says so. On the practice site the training is a short one.

# %%
short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
batch_job = None
if blanks.blanks("scripts/ResNet50.py"):
    print("ResNet50.py still has blanks. Finish it in notebook 05, then run this cell again.")
elif answered("05.15"):
    batch_job = jobs.run(batch_script, *short, name="ResNet50", site=site.id)

# %% [markdown]
# The job left one `.out`, one `.err`, and a record for each training. At the beginning of the log, the script names the job, its
# node and the versions.

# %%
if batch_job:
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(collect.rows(batch_job.records))

# %% [markdown]
# By hand you would type, in the course's top folder: `sbatch slurm/local/ResNet50.sh` to submit it, `squeue` to see whether it
# waits, and why, `scancel` and its number to stop it, and `labs results notebooks/runs` when it is done. On a Linux machine where
# you are root, `make cluster` starts a small SLURM to practise on.
#
# ## T5
#
# Hand in: your `ResNet50.py` and `ResNet50.sh`, the relevant lines of `.out` and `.err` for each number of workers, and a short
# account: what you ran on which machine, epoch time and speedup with their intervals, the accuracy beside them, and what limits
# the speedup. The tables and figures of notebook 05 have the numbers.

# %% [markdown] labs={"id": "T5", "kind": "answer"}
# ### T5: your answer
# ### BEGIN SOLUTION
# The scripts are scripts/ResNet50.py and slurm/local/ResNet50.sh. I ran them on 1 and 2 workers, in turns and for several rounds, with a fixed
# batch per worker. One worker is one CPU core, or one GPU where there are GPUs. The files are runs/ResNet50_w1 and _w2 with .out, .err and
# .json. In the .out, the header names model, workers and global batch. I averaged the lines `N/N - ..s - ..ms/step - accuracy: .. - loss: ..` after
# the first epoch of each run. The .err files hold no error. Speedup and efficiency with their 95 % intervals are in the table of notebook 05,
# beside epoch time and images/second in these minutes. With 2 workers an epoch has half as many updates, so after the same few
# epochs the loss is not the same; the learning rate was doubled to make up for it. The speedup stays below 2: at each step the
# replicas wait for the slowest one and sum 94 MB of gradients, and they share the memory of one machine. The table of the parts of a
# step in notebook 05 says how many ms each of these takes here. The run on 4 workers is
# oversubscribed where there are fewer than 4 cores, and says nothing about speed.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Whole seconds hide more than they show. Time several epochs together, and measure more than once.
# - A batch script says what a job needs, within the rule of the site.
# - SLURM accepts most mistakes without a word: check the script before you submit it.
#
# Next: `06_horovod_sharding`.
