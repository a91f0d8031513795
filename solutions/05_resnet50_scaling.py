# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # How much faster do more workers train ResNet50V2?
#
# **Time: 90 minutes, of which 7 minutes on 2 cores are computing.**
#
# You train ResNet50V2 on 1 and 2 workers (and on more, if you have them), with a script that you complete yourself. From your
# own logs you compute epoch time, images per second, speedup and efficiency, with intervals that say how sure you can be. Then
# you read a log from a cluster, critically. You hand in tasks **T5** and **T6**.

# %%
from statistics import fmean, median

from labs import devices, jobs, presets, recorded
from labs.checks import answered, check, outcome, predict
from labs.lessons.asked import question
from labs.measure import breakdown
from labs.results import collect, log
from labs.results.run import load_record
from labs.show import plots, tables
from labs.slurm import sites

plan = presets.choose()
unit = "GPU" if devices.gpus() else "CPU core"
print(f"preset {plan.name}: {plan.images or 'all'} images of {plan.dataset}, {plan.local_batch} per worker and step,")
print(f"{plan.epochs} epochs, the first as warm-up. A worker is one {unit}; this machine has {devices.cores()} cores.")

# %% [markdown]
# ## Predict first
#
# Each worker gets the same number of images per step (**weak scaling**): with 2 workers a step takes twice the images, so an
# epoch has half the steps. How much faster is an epoch with 2 workers: 1 (no gain), 2 (ideal), or something between?

# %% labs={"id": "05.1"}
### BEGIN SOLUTION
speedup_expected = 1.6
### END SOLUTION
predict("05.1", speedup_expected)

# %% [markdown]
# And after the same number of epochs: will the accuracy be `"higher"`, `"equal"` (within one percentage point) or `"lower"` than
# with 1 worker?

# %% labs={"id": "05.2"}
### BEGIN SOLUTION
accuracy_expected = "lower"
### END SOLUTION
predict("05.2", accuracy_expected)

# %% [markdown]
# ## The script
#
# Open `scripts/ResNet50.py` (in the file browser on the left). It is the whole training in plain sight. Four blanks are yours:
#
# 1. the **strategy** over the given `workers`,
# 2. the **learning rate** by the linear rule (one worker: 0.01),
# 3. the **network**: `keras.applications.ResNet50V2` with its top layer, without pretrained weights, for
#    `len(dataset.classes)` classes and images of `args.image_size` pixels,
# 4. the **training**: `fit` with `epochs=args.epochs`, `shuffle=False`, `verbose=2` and `callbacks=[recorder]`.
#
# Save it, then run the check. It tries your script out, with 1 and with 4 workers: in a process of its own, on a few images
# and with a tiny network in the place of ResNet50V2, and looks at what happens.

# %% labs={"id": "05.3"}
script = "scripts/ResNet50.py"
ready = check("05.3", script)

# %% [markdown]
# ## Run it
#
# One job for each number of workers, and every one of them measured several times: one measurement is no measurement.
#
# The speed of a machine drifts: another program runs, a laptop gets warm. Measured one after the other, the jobs would differ
# for that reason alone. So they take **turns**: one trains for an epoch while the others are stopped, then the next. An epoch of
# each is a **round**, and what slows a whole round down is in all of them. The first epoch of each is warm-up.
#
# The line below shows where they are. *Kernel, Interrupt* stops them and keeps what was measured.
#
# As long as the script has blanks, this notebook goes on with *recorded* runs, made on a machine with 2 cores.

# %%
turns = jobs.Turns()
with turns:
    for workers in plan.workers if ready else ():
        batch = workers * plan.local_batch  # the global batch
        asked = ["--n_gpus", workers, "--batch_size", batch, *plan.arguments()]
        turns.start(script, *asked, name=f"ResNet50_w{workers}")

own = bool(turns.jobs) and turns.state == "finished"
if own:
    files = [jobs.folder() / f"ResNet50_w{workers}.out" for workers in plan.workers]
else:
    files = recorded.laptop()
    print("Your own runs are not done yet. From here on you see recorded ones:")
    print(*(file.name for file in files))

# %% [markdown]
# In a terminal this starts one training alone, without turns, on all images and for 5 epochs (`--help` names the options):
#
# ```
# uv run python scripts/ResNet50.py --n_gpus 2 --batch_size 128 > runs/my.out 2> runs/my.err
# ```
#
# ## Read the log
#
# This is the `.out` file of the first job, as Keras wrote it:

# %%
print(files[0].read_text())

# %% [markdown]
# Each epoch's line begins with its steps; then come the whole seconds of the epoch, then the time per step. Keras writes that in
# three ways: `12/12 - 9s - 760ms/step` where a step takes less than a second, `12/12 - 25s - 2s/step` where it takes longer, in
# whole seconds again, and `12/12 - 0s - 850us/step` in microseconds. Milliseconds are the finer number: 12 x 760 ms are 9.12 s,
# where 9 s may be anything from 8.5 s to 9.5 s. Of whole seconds for a step you learn less than from those of the epoch.
#
# **By hand:** how many seconds does a *steady* epoch take on 1 worker, in the mean? Think about which epochs count, and compute it
# from the lines above. (`first` is what the kit reads in the same log: the check compares.)

# %% labs={"id": "05.4"}
first = log.read(files[0])[0]
### BEGIN SOLUTION
epoch_1 = fmean(epoch.seconds for epoch in first.repeats[0][1:])
### END SOLUTION
check("05.4", epoch_1, first)

# %% [markdown]
# ## Three tools
#
# Images per second, speedup and efficiency you wrote in notebook 01; `labs` computes them below. Three more functions show what is
# behind a speedup. They are tried on numbers of another machine, then they read your runs.
#
# **The speedup of each round:** given are the seconds of the rounds on 1 worker and on p workers, two lists in the same order.


# %% labs={"id": "05.5"}
def round_speedups(seconds_1, seconds_p):
    """A list with the speedup within each round."""
    ### BEGIN SOLUTION
    return [one / p for one, p in zip(seconds_1, seconds_p)]
    ### END SOLUTION


check("05.5", round_speedups)

# %% [markdown]
# **The usual step:** given are the seconds of all steps, a list for each epoch. Return the *median* of the steps that count, all of
# them together. (Half of the steps are shorter than the median; a few very slow ones hardly move it.)


# %% labs={"id": "05.6"}
def usual_step(epochs):
    """Median of the seconds of the steady steps. epochs: a list of lists."""
    ### BEGIN SOLUTION
    return median(step for epoch in epochs[1:] for step in epoch)
    ### END SOLUTION


check("05.6", usual_step)

# %% [markdown]
# **The slower of two:** two workers each take one of these steps, any of them equally often, whatever the other one takes. Both are
# done when the slower one is. How long does that take in the mean, over all pairs? (Two workers may take the same step: 3 steps make
# 9 pairs.)


# %% labs={"id": "05.7"}
def slower_of_two(steps):
    """Mean seconds of the slower of two steps, over all pairs. steps: seconds of the steps of one worker."""
    ### BEGIN SOLUTION
    return fmean(max(one, other) for one in steps for other in steps)
    ### END SOLUTION


check("05.7", slower_of_two)

# %% [markdown]
# ## Your study
#
# `labs` takes the times from the run records, which hold every step, and gives intervals. (In a terminal, in the folder
# `notebooks`: `labs results runs`.) Its speedup is the geometric mean of those of the rounds, with a 95 % interval. Seconds and
# images per second have intervals *in these minutes*: in an hour the machine may be faster or slower, and they would not hold it.

# %%
rows = collect.rows([file.with_suffix(".json") for file in files])
tables.scaling(rows)
how = "measured" if own else "recorded"
on_1, on_2 = (next(row for row in rows if row["workers"] == n) for n in (1, 2))
outcome("05.1", on_2["speedup"], on_2["speedup_interval"], how=how)
print(question(on_2["speedup"], on_2["speedup_interval"]))

# %% [markdown]
# Which sentence may you write about *your own* runs: 2 workers are `"faster"`, they are `"slower"`, or you `"can't tell"`? What
# decides is the interval.

# %% labs={"id": "05.8"}
low, high = on_2["speedup_interval"] or (0, 2)  # without an interval the speedup may be anything
### BEGIN SOLUTION
sentence = "faster" if low > 1 else "slower" if high < 1 else "can't tell"
### END SOLUTION
check("05.8", sentence, rows if own else ...)

# %% [markdown]
# Is the one worker a fair base, or does the strategy itself slow it down? On a 2-core machine a step of ResNet50V2 under
# `MirroredStrategy` took 1.006 times the processor time of a step without any strategy (0.989 to 1.021, 24 rounds in turns), and
# the weights were equal to the last bit. So the base is fair.
#
# Look at the rounds themselves: on the left the epochs, which drift as your machine does, on the right what each round says of
# the speedup.

# %%
one, two = (load_record(file.with_suffix(".json")) for file in files[:2])
if one.rounds and two.rounds:
    plots.show(plots.rounds(two, one))
    if answered("05.5"):
        found = round_speedups(*([run.rounds[n] for n in sorted(one.rounds)] for run in (one, two)))
        print("your function on these rounds:", *(f"{each:.2f}" for each in found))
else:
    print("These recorded runs came one after the other, so they have no rounds: yours will.")

# %% [markdown]
# The interval comes from the spread of these ratios. What slows a whole round down leaves its ratio as it is; what comes and
# goes within a round makes the interval wider. That is not a defect of the interval but of the measurement.
#
# ## Every step
#
# An epoch is a sum of steps, and the record keeps each of them. On 2 workers each one still computes as many images as
# one worker alone, and then waits for the other. **Predict:** how many times as long is the usual (median) step on 2
# workers?

# %% labs={"id": "05.9"}
### BEGIN SOLUTION
step_ratio_expected = 1.2
### END SOLUTION
predict("05.9", step_ratio_expected)

# %%
plots.show(plots.steps(one, two))

# %% [markdown]
# *On the left*, in time. The first step holds the tracing; that is why the first epoch is warm-up. Look for a step that
# stands out in every epoch (the first one also starts the epoch), for single slow steps (**jitter**), and for whole rounds
# that are slower for both.
#
# *On the right*, the distribution of the steady steps: at each time, the share of the steps that took so long or less. A
# steep curve is an even machine; a long upper end is jitter. The distance between the two solid curves is what a step pays
# for the second worker.
#
# The dashed curve is computed: if each of the workers took steps like those of one worker alone, whatever the others take,
# and a step lasted as long as the *slowest* one, the steps would be distributed so; your `slower_of_two` is its mean. Its distance to
# the first curve is what **waiting** can explain by the jitter of one worker. What lies between the dashed and the last curve has
# another cause.

# %%
from labs.results import steps

if answered("05.6", "05.7"):
    of_1, of_2 = ([epoch.step_seconds for epoch in run.repeats[0]] for run in (one, two))
    waiting = fmean(slower_of_two(epoch) for epoch in of_1[1:])
    shown = [("one worker", usual_step(of_1), fmean(fmean(epoch) for epoch in of_1[1:]))]
    shown += [("the slower of two such steps", "", waiting)]
    shown += [(f"{two.workers} workers", usual_step(of_2), fmean(fmean(epoch) for epoch in of_2[1:]))]
    keys = ("step", "usual (s)", "mean (s)")
    tables.show([dict(zip(keys, row)) for row in shown], keys)

alone, both = (steps.quantile(*steps.distribution(run)) for run in (one, two))
outcome("05.9", both / alone, how=how)

# %% [markdown]
# ## T6: the three plots
#
# Plot epoch time, images per second and speedup over the number of workers, from your `rows`, in one `figure` with three
# plots. Each row is a dictionary with the keys `workers`, `epoch_seconds`, `images_per_second` and `speedup`. Label all axes, with
# units. Start with `figure = Figure(figsize=(12, 3.2), layout="constrained")` and `figure.subplots(1, 3)`.

# %% labs={"id": "T6"}
from matplotlib.figure import Figure

### BEGIN SOLUTION
figure = Figure(figsize=(12, 3.2), layout="constrained")
for axis, key, label in zip(
    figure.subplots(1, 3),
    ("epoch_seconds", "images_per_second", "speedup"),
    ("seconds per epoch", "images per second", "speedup (times)"),
):
    axis.plot([row["workers"] for row in rows], [row[key] for row in rows], "o-")
    axis.set(xlabel=f"workers (one worker: one {unit})", ylabel=label, ylim=(0, None))
### END SOLUTION
if check("T6", figure, rows):
    figure.alt = "Your plots of epoch time, images per second and speedup over the number of workers."
    plots.show(figure)

# %% [markdown]
# The kit's own plot of the same rows adds the intervals and the ideal line:

# %%
plots.show(plots.scaling(rows))

# %% [markdown]
# ## Why is it below the ideal?
#
# Arguments are cheap, so take a step apart: compare whole steps that differ in *one* thing.
# Four kinds of them take turns, round after round, with the same images per worker:
#
# | kind of step | what is in it |
# |---|---|
# | **alone** | one worker trains, the other rests; its batch lies in memory |
# | **together** | two trainings side by side, one on each core or GPU, that know nothing of each other |
# | **exchange** | one training on both, with MirroredStrategy: gradients are summed, and the faster one waits |
# | **input** | the same, and each batch comes from the input pipeline |

# %%
apart = None
if devices.has("two devices"):
    name = "SmallCNN" if plan.name == "test" else "ResNet50V2"  # the preset test takes a smaller network here
    sizes = {"local_batch": plan.local_batch, "image_size": plan.image_size}
    apart = breakdown.measure(name, strategy="mirrored", name="side_by_side", **sizes)

# %%
steps_of = {"alone": 0.8, "together": 0.9, "exchange": 1.0, "input": 1.0}  # an example, for where nothing was measured
if apart:
    found = breakdown.parts(apart)
    steps_of = {kind: sum(seconds) / len(seconds) for kind, seconds in breakdown.means(apart).items()}
    shown = [{"part": part, "ms": 1e3 * s, "low": 1e3 * a, "high": 1e3 * b} for part, (s, (a, b)) in found.items()]
    headers = {"ms": "ms per step (measured)", "low": "in these minutes from", "high": "to"}
    tables.show(shown, ("part", *headers), headers)
    print({kind: round(seconds, 3) for kind, seconds in steps_of.items()}, "seconds a step")
    print(*(f"Mind: {note}." for note in apart["notes"]), sep="\n")

# %% [markdown]
# Computation is the step alone; each line below it is the *difference* of a kind of step to the one before. A part whose
# interval holds 0 is not larger than the noise; one that comes out below 0 is too noisy to tell. Rounds in which other programs ran are left
# out as in a study. If two trainings that exchange nothing disturb each other (**sharing the machine**: one memory, one cache), no faster
# exchange can win that back.
#
# `steps_of` has the seconds of each kind of step. **Compute** the speedup of the two unconnected trainings: how many images do both
# together train in a second, divided by those of one alone? It is an estimate of what an exchange that cost nothing would leave.

# %% labs={"id": "05.10"}
### BEGIN SOLUTION
unconnected = 2 * steps_of["alone"] / steps_of["together"]
### END SOLUTION
check("05.10", unconnected, steps_of)

# %% [markdown]
# Two more numbers, each measured alone: how long the pipeline takes for a batch of both workers, and how long an
# all-reduce of the whole gradient takes. The pipeline prepares the next batch while a step computes: where it is faster
# than a step, it costs little. Compare the all-reduce with the line "exchange and waiting": what is more there is waiting,
# and what is less was hidden behind backward.

# %%
if apart:
    reading, reducing = (sum(apart[key]) / len(apart[key]) for key in ("pipeline_seconds", "all_reduce_seconds"))
    values = {
        "a step of both workers, with exchange and input": steps_of["input"],
        "the pipeline alone, for a batch of both workers": reading,
        f"one all-reduce alone, of {apart['gradient_bytes'] / 1e6:.3g} MB": reducing,
    }
    tables.show([{"what": what, "ms": 1e3 * seconds} for what, seconds in values.items()], ("what", "ms"))

# %% [markdown]
# Now say it with your measurement. Why is the speedup below the number of workers?
#
# - **a**: worker 0 has to collect the parameters of all others after each epoch
# - **b**: the larger global batch gives each worker more to compute in a step
# - **c**: the workers share a machine, and at every step they sum their gradients and the faster one waits
# - **d**: TensorFlow traces the program for each worker

# %% labs={"id": "05.11"}
### BEGIN SOLUTION
why = "c"
### END SOLUTION
check("05.11", why)

# %% [markdown]
# ## Do they learn the same?
#
# Faster is worth nothing if the network learns less. Loss and accuracy after each epoch:

# %%
plots.show(plots.learning(rows))
gain = on_2["final_accuracy"] - on_1["final_accuracy"]
outcome("05.2", "equal" if abs(gain) < 0.01 else "higher" if gain > 0 else "lower", how=how)

# %% [markdown]
# "Twice as fast and just as good" is a claim to check. The epochs are the same and the images are the same. How many times are
# the weights updated in one epoch, on 1 and on 2 workers?

# %% labs={"id": "05.12"}
### BEGIN SOLUTION
updates_1, updates_2 = (row["steps"] for row in rows if row["workers"] in (1, 2))
### END SOLUTION
check("05.12", updates_1, updates_2, rows)

# %% [markdown]
# These few epochs of one training on each number of workers say little about learning: another seed gives other curves.

# %% [markdown]
# ## More workers than cores
#
# What do 4 workers bring on this machine? If it has fewer cores, they share them. The run is then marked **oversubscribed**, here
# and in every table and plot: it shows that the program works with 4 workers, and nothing about speed. (The preset test leaves
# this out.)

# %%
if answered("05.8") and 4 not in plan.workers and plan.name != "test":
    crowd = jobs.Turns()
    with crowd:
        for workers in (1, 4):
            asked = ["--n_gpus", workers, "--batch_size", workers * plan.local_batch, *plan.arguments(), "--epochs", 4]
            crowd.start(script, *asked, name=f"ResNet50_w{workers}_crowded")
    if crowd.state == "finished":
        tables.scaling(collect.rows([job.record for job in crowd.jobs]))

# %% [markdown]
# ## A log from a cluster
#
# You know this one from notebook 01: CTE-POWER, one node with 4 V100 GPUs, CIFAR-10 resized to 128x128, 256 images per GPU, the same
# program. It is **recorded**: you can compute with it, but its machine is not yours. After 5 epochs:

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
# A quarter of the updates, and nearly the same accuracy. Nothing says how much another seed would change.
#
# 45 s and 12 s are whole seconds, so the speedup on 4 GPUs is anything from 3.56 to 3.96, as you found. The cure costs nothing: let
# the log say the seconds of **n epochs together**, again as a whole number, n x 45 and n x 12. What is the smallest n with which the
# lowest and the highest speedup both differ from 45/12 by less than 1 %?

# %% labs={"id": "05.13"}
### BEGIN SOLUTION
epochs_together = 1
while (45 * epochs_together + 0.5) / (12 * epochs_together - 0.5) > 1.01 * 45 / 12:
    epochs_together += 1
### END SOLUTION
check("05.13", epochs_together)

# %% [markdown]
# Longer is finer, and it is still one measurement: no interval tells how much the next one would differ. Your own record keeps
# every step to the microsecond, and rounds.
#
# One more trap: these are ratios between GPUs and GPUs. "75 times faster than on the CPU" is *acceleration*, other hardware; *speedup*
# counts more of the same. Never divide one by the other.
#
# ## Run it on the cluster
#
# On a cluster nobody starts a training by hand. You write a **batch script**: a shell script whose `#SBATCH` lines say what
# the job needs. `sbatch` hands it to **SLURM**, which queues it, starts it when enough GPUs are free, and ends it when its time
# is up. What you need to know of a site is in one file:

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
# Why such a rule? A job that takes one GPU and all cores leaves three GPUs that nobody can use. On CTE-POWER (4 GPUs and 160
# hardware threads a node) the rule was: 1 GPU 40 to 80, 2 GPUs 80, 3 GPUs 120 to 160, 4 GPUs 160. You asked there for 2 GPUs and
# 160 threads. What happens?
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
# ### What bash and SLURM want written
#
# A batch script is read twice. `sbatch` reads the `#SBATCH` lines on top, up to the first command; on a node bash runs the rest,
# and to bash these lines are comments.
#
# | line | asks for |
# |---|---|
# | `#SBATCH --nodes=1` | machines |
# | `#SBATCH --ntasks=3` | processes in all; MirroredStrategy is one, Horovod one for each GPU |
# | `#SBATCH --ntasks-per-node=3` | the same, counted on each node |
# | `#SBATCH --gres=gpu:3` | GPUs on each node: the kind of resource, a colon, how many |
# | `#SBATCH --cpus-per-task=10` | cores for each task, not for the job (hardware threads, where a site counts those) |
# | `#SBATCH --time=00:30:00` | hours:minutes:seconds; `00:30` are minutes:seconds, so 30 seconds |
#
# Bash calculates with whole numbers, and only within `$(( ))`:
#
# | line | does |
# |---|---|
# | `images=100` | sets a variable; no blank on either side of the `=`, or bash takes `images` for a program |
# | `echo "$images"` | `$` reads it; in quotes it stays one word |
# | `half=$((images / 2))` | within `$(( ))` names need no `$` |
# | `half=images/2` | no number: the text `images/2` |
# | `for n in 1 2; do ... done` | runs what is between `do` and `done` with n=1, then with n=2 |
#
# Try it (`bash -c` runs one line of bash):

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
# Open `slurm/local/ResNet50.sh` (or the folder of your site) in the course's top folder. It trains on 1, 2 and more workers, as
# many as a node of the site has, one after the other in one job. The blanks are yours:
#
# 1. how many **nodes**, **tasks**, **GPUs** and **cores** the job asks for: enough for its largest training, and within the rule,
# 2. the global **batch** of each training; the learning rate follows in your `ResNet50.py`.

# %%
batch_script = sites.script("ResNet50.sh")
print(batch_script.read_text())

# %% [markdown]
# `sbatch` finds few mistakes. It does not see `# SBATCH` with a blank (a comment!), lines that come too late, a folder for the
# log that does not exist, or a batch that does not grow with the workers. The check below does; in a terminal it is
# `uv run labs slurm check slurm/local/ResNet50.sh`.

# %% labs={"id": "05.15"}
check("05.15", batch_script)

# %% [markdown]
# One mistake is worth a look. Suppose that in a batch script the line `#SBATCH --gres=gpu:4` stands below `module load`, at a site
# where a job gets only the GPUs that it asks for. How many GPUs does this job get?

# %% labs={"id": "05.16"}
### BEGIN SOLUTION
gpus_of_the_late_line = 0
### END SOLUTION
check("05.16", gpus_of_the_late_line)

# %% [markdown]
# Submit it. The call is the same as for a Python script. Where there is no SLURM, bash runs the script on this machine and
# says so. On the practice site the training is a short one.

# %%
short = ["--images", 256, "--epochs", 2, "--repeats", 1] if site.preset != "course" else []
if answered("05.3", "05.15"):
    batch_job = jobs.run(batch_script, *short, name="ResNet50", site=site.id)

# %% [markdown]
# What the job left: one `.out`, one `.err`, and a record for each training. Where the log begins, the script names the job, its
# node and the versions.

# %%
if answered("05.3", "05.15"):
    print(*batch_job.out.read_text().split("\n")[:12], sep="\n")
    print("...\nin the .err:", batch_job.err.read_text().strip() or "nothing")
    if batch_job.records:
        tables.scaling(collect.rows(batch_job.records))

# %% [markdown]
# By hand it is, in the course's top folder: `sbatch slurm/local/ResNet50.sh`, then `squeue` (is it waiting, and why?), `scancel`
# and the number to stop it, and `labs results notebooks/runs` when it is done. `make cluster` starts a small SLURM on a Linux machine
# where you are root, to practise on.
#
# ## T5
#
# Hand in: your `ResNet50.py` and `ResNet50.sh`, the relevant lines of `.out` and `.err` of each number of workers, and a short
# account: what you ran on which machine, epoch time and speedup with their intervals, the accuracy beside them, and what limits
# the speedup.

# %% [markdown] labs={"id": "T5", "kind": "answer"}
# ### T5: your answer
# ### BEGIN SOLUTION
# The scripts are scripts/ResNet50.py and slurm/local/ResNet50.sh. I ran them on 1 and 2 workers (one worker is one CPU core, or one GPU where there are GPUs),
# with the batch per worker fixed, in turns, several rounds; the files are runs/ResNet50_w1 and _w2 with .out, .err and .json.
# From .out: the header names model, workers and global batch; the lines `N/N - ..s - ..ms/step - accuracy: .. - loss: ..` after
# the first epoch of each are what I averaged. The .err files hold no error. Speedup and efficiency with their 95 % intervals are in
# the table above, beside epoch time and images/second in these minutes. With 2 workers an epoch has half the updates, so after the same few
# epochs the loss is not the same; the rate was doubled to make up for it. The speedup stays below 2: at each step the
# replicas wait for the slowest one and sum 94 MB of gradients, and they share the memory of one machine; the table of the parts of a
# step above says how many ms each of these takes here. The run on 4 workers is
# oversubscribed where there are fewer than 4 cores, and says nothing about speed.
# ### END SOLUTION

# %% [markdown]
# ## What you take along
#
# - Steady epochs only, several rounds in turns, an interval with every ratio.
# - Weak scaling: fixed batch per worker; the same epochs are then fewer updates.
# - Speed without accuracy is half a result.
# - Whole seconds hide more than they show.
# - A batch script says what a job needs. SLURM refuses little of what is wrong: check before you submit.
