# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # A report that can be trusted
#
# **Time: 25 minutes, including less than 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (its last notebook), *everything*; *an afternoon* leaves this notebook out.
#
# You find the faults in someone else's scaling report, review your own by the rules that prevent them, and hand it in:
# task **T11**.

# %% [markdown]
# ## A flawed report
#
# Suppose somebody hands in these 14 lines. All the numbers are made up, but every sentence could be true. That is not
# enough: a line **misleads** if a reader in a hurry would believe something that was not measured.
#
# > **Scaling of ResNet50V2 on our machines**
# >
# > 1. We trained ResNet50V2 in float32 on images of 32x32 pixels, using MirroredStrategy and SGD.
# > 2. According to the log, an epoch takes 9 s on 1 worker and 3 s on 4 workers, so the speedup is 3.00.
# > 3. We trained once with each number of workers, since the program and its seed are always the same.
# > 4. A worker is one replica of the network. The images per second are the total over all workers.
# > 5. On 4 GPUs, an epoch runs 75 times as fast as on the laptop's processor: a speedup of 75.
# > 6. All other speedups are relative to the usual baseline.
# > 7. On 2 workers the batch was 64 per worker, and on 4 workers it was 64 in total. One curve shows both.
# > 8. The mean epoch time covers all 5 epochs, so nothing is left out.
# > 9. The data set is the 1797 digits from scikit-learn. Each epoch reads 1792 of them.
# > 10. On a machine with 2 cores, 8 workers are 1.9 times as fast as 1, so the method saturates at an efficiency of 0.24.
# > 11. As Figure 1 shows, the speedup follows the ideal line closely.
# > 12. On 64 workers the speedup is 41. We obtained it from a cost model with our own parameters.
# > 13. Every training run was complete after 5 epochs, so 4 workers reach the goal 3 times as fast.
# > 14. The table at the end lists the versions of TensorFlow, Keras and the driver.

# %%
from labs.checks import check, outcome, predict
from labs.show import plots
from lessons.report import pictures

plots.show(pictures.flawed())

# %% [markdown]
# **Predict** after reading the report once: how many of the 14 lines mislead?

# %% labs={"id": "report.1"}
### BEGIN SOLUTION
misleading_expected = 10
### END SOLUTION
predict("report.1", misleading_expected)

# %% [markdown]
# Which lines mislead? Give their numbers as a set, in the form `{1, 2}`.

# %% labs={"id": "report.2"}
### BEGIN SOLUTION
lines = {2, 3, 5, 6, 7, 8, 10, 11, 12, 13}
### END SOLUTION
found = check("report.2", lines)
outcome("report.1", len(lines) if found else None, how="counted")

# %% [markdown]
# What is wrong with each of these lines? Give one letter for each line, in the form `{2: "a", 3: "b"}`.
#
# - **a**: the baseline is a different kind of device, so this is an acceleration, not a speedup
# - **b**: the baseline is not named
# - **c**: there is only one run, so the spread is unknown
# - **d**: the warm-up is included in the time
# - **e**: weak and strong scaling are mixed
# - **f**: workers share cores (oversubscribed), so the result says nothing about speed
# - **g**: rounded times look exact
# - **h**: the axes hide the difference
# - **i**: a prediction is presented as a measurement
# - **j**: the speed is given without the accuracy

# %% labs={"id": "report.3"}
### BEGIN SOLUTION
faults = {2: "g", 3: "c", 5: "a", 6: "b", 7: "e", 8: "d", 10: "f", 11: "h", 12: "i", 13: "j"}
### END SOLUTION
check("report.3", faults)

# %% [markdown]
# Here is the same figure, on linear axes that begin at 0:

# %%
plots.show(pictures.flawed(logarithmic=False))

# %% [markdown]
# `pictures.WORKERS` and `pictures.SPEEDUPS` contain the numbers behind both figures. What is the efficiency with the
# largest number of workers?

# %% labs={"id": "report.4"}
### BEGIN SOLUTION
efficiency_8 = pictures.SPEEDUPS[-1] / pictures.WORKERS[-1]
### END SOLUTION
check("report.4", efficiency_8, pictures.WORKERS, pictures.SPEEDUPS)

# %% [markdown]
# ## What a good report contains
#
# Ten rules prevent these faults (their letters are in brackets). The first eight follow *T. Hoefler and R. Belli,
# Scientific Benchmarking of Parallel Computing Systems* (SC15, <https://doi.org/10.1145/2807591.2807644>), the last two
# *MLPerf* (P. Mattson and others, <https://arxiv.org/abs/1910.01500>):
#
# - **baseline** (a, b): each speedup names its baseline, one worker of the same kind in the same study, with its
#   absolute time;
# - **whole** (d, f): the report covers everything that was measured, or says why a part was left out, such as the
#   warm-up or workers that share a core;
# - **means**: average the times, not their ratios; if only ratios are known, average their logarithms;
# - **spread** (c, g): every number that varies has an interval; a single run gives none, and rounding makes it wider;
# - **set-up** (b): machine, software, data, batch and all other settings are stated, so that others can repeat it;
# - **scaling** (e): the report says whether the work per worker stays the same (weak) or the total work (strong);
# - **bounds** (i): the best possible value is shown beside the measured one, and a model's results are called
#   predictions;
# - **figures** (h): figures have units and intervals, and the axes show what matters;
# - **goal** (j): the time is measured until the network reaches an agreed accuracy, which is reported beside the speed;
# - **repeats** (c, j): this time varies with the seed, so the network is trained several times.
#
# This course makes an exception to **means**: drift changes all the times in a round by the same factor, so the course
# averages the ratios within rounds.
#
# Suppose that you measured 6 rounds on 1 and on 2 workers, in turns. Which of these sentences does this evidence support?
#
# - **a**: "Our method trains 1.71 times faster on 2 workers."
# - **b**: "On 2 workers the speedup is 1.71 (1.62 to 1.80), so 8 workers reach a speedup of 6.8."
# - **c**: "On 2 cores the speedup over 1 core of the same laptop is 1.71 (95 % interval 1.62 to 1.80, 6 rounds, 64
#   images per worker), with an accuracy of 0.93 instead of 0.95 after the same number of epochs; a cost model
#   predicts a speedup of 5.9 for 8 machines."
# - **d**: "The speedup is 1.71 (1.62 to 1.80), which shows linear scaling at the same accuracy."

# %% labs={"id": "report.5"}
### BEGIN SOLUTION
sentence = "c"
### END SOLUTION
check("report.5", sentence)

# %% [markdown]
# ## Your own report
#
# **Save your notebooks first** (Ctrl + S in each of them), because the report reads the saved files. All its numbers are
# recomputed from your run records. It shows your name only if you supply it:
# `report.make("report", name="...", ppi=60)`.

# %%
from labs import report

made = report.make("report", ppi=60)
print(f"{len(made.pages)} pages, {len(made.report['runs'])} runs, {len(made.report['missing'])} things missing")
report.show_pages(made, first=1, last=2)

# %% [markdown]
# The next cell lists what is missing, and then the **findings**: places where your evidence does not support what the
# report shows, or no longer does.

# %%
from labs.show import tables

tables.show([{"missing": line} for line in made.report["missing"]], ("missing",))
if made.report["findings"]:
    tables.show(made.report["findings"], ("task", "kind", "text"), {"text": "what was found"})
else:
    print("No findings.")

# %% [markdown]
# A finding is not a verdict. Fix what you can: rerun what has changed, or rewrite an answer. Explain the others in your
# answer to T11: for example, a short test job was never meant to measure anything.
#
# Now compare your written answers with what a good answer contains. (Your instructor may have withheld these lists.)

# %%
held = [{"task": task["id"], "a good answer contains": line} for task in made.report["tasks"] for line in task["holds"]]
tables.show(held, ("task", "a good answer contains"))

# %% [markdown]
# ## T11
#
# Review your report against the ten rules. Answer in full sentences:
#
# - What is your main result, in one sentence that your evidence supports? Give the interval, the number of workers, the
#   machine and the baseline.
# - Which rules does your report follow, which does it break, and in which tasks?
# - What did you do about each finding, if there are any?
# - What remains open, and which measurement would settle it?

# %% [markdown] labs={"id": "T11", "kind": "answer"}
# ### T11: your answer
# ### BEGIN SOLUTION
# Main result: for ResNet50V2 with images of 32x32 pixels, 64 images per worker and MirroredStrategy, the table in T5
# gives the speedup of 2 workers over 1 worker in the same study on the same machine, with its 95 % interval over
# rounds. Beside it are the accuracies after the same number of epochs; 2 workers make half as many updates.
#
# Rules followed: *baseline* (one worker from the same study, in every table), *whole* (the report says that the first
# epoch is left out; runs with more workers than cores are marked and not used), *means* (the geometric mean of ratios
# within rounds, since times drift), *spread* (intervals over rounds), *set-up* (the first page, the page of runs, the
# scripts), *scaling* (weak: the batch per worker is fixed), *bounds* (T10 keeps measured and predicted values apart),
# *figures* (units, intervals, axes that start at 0).
#
# Rules broken: *goal*, since a few epochs are not enough to reach an agreed accuracy, and *repeats*, since all rounds
# use the same seed. The rounds show how certain the times are, but not how much the accuracy would vary.
#
# Findings: the short batch job in T5 and the runs in S1 have only one steady epoch or one repeat, so their speedups have
# no interval. I do not use them as measurements of speed.
#
# Open question: it is not clear whether ResNet152V2 scales better than ResNet50V2 here, since the interval of the ratio
# contains 1. More rounds on a machine that nobody else is using would settle this.
# ### END SOLUTION

# %% [markdown]
# ## Hand it in
#
# Save this notebook. Then set `final` to the return value of `report.make("report")`, so that the report contains your
# latest changes. Hand in `report/submission.zip`: the report, your notebooks and scripts, and the records of your runs.
# Paths, the machine's name and your account name are removed where recognised.

# %% labs={"id": "report.6"}
### BEGIN SOLUTION
final = report.make("report")
### END SOLUTION
check("report.6", final)

# %% [markdown]
# Next: `20_going_on_and_two_nodes`, if you want to go deeper. After another task (W1, F1 or P1), make a new report and
# hand it in.
