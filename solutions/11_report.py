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
# **Time: 50 minutes, of which less than 1 minute on 2 cores is computing.**
#
# You find the faults in somebody else's scaling report, learn the rules that prevent them, review your own report against
# these rules, and hand it in: task **T11**. Nothing is trained here.

# %%
from labs import report
from labs.checks import check, outcome, predict
from labs.lessons.nb11 import pictures
from labs.show import plots, tables

# %% [markdown]
# ## A flawed report
#
# Somebody hands in these 14 lines. All numbers in them are made up, and every sentence could be true. That is not enough: a
# line **misleads** if a reader concludes from it what was not measured.
#
# > **Scaling of ResNet50V2 on our machines**
# >
# > 1. We trained ResNet50V2 on images of 32x32 pixels in float32, with MirroredStrategy and SGD.
# > 2. By the log an epoch takes 9s on 1 worker and 3s on 4 workers, so the speedup is 3.00.
# > 3. Each number of workers was trained once, since the program and its seed are always the same.
# > 4. A worker is one GPU; images per second count the images of all workers together.
# > 5. On 4 GPUs an epoch is 75 times faster than on the laptop's processor: a speedup of 75.
# > 6. All other speedups are against the usual baseline.
# > 7. On 2 workers the batch stayed 64 per worker, on 4 workers 64 in all; one curve shows both.
# > 8. The mean epoch time is over all 5 epochs, so that nothing is left out.
# > 9. The data are the 1797 digits of scikit-learn, of which each epoch reads 1792.
# > 10. On a machine with 2 cores, 8 workers are 1.9 times faster than 1, so the method saturates at an efficiency of 0.24.
# > 11. As Figure 1 shows, the speedup follows the ideal line closely.
# > 12. On 64 workers the speedup is 41; we took it from the cost model with our own parameters.
# > 13. After 5 epochs every training was done, so 4 workers reach the goal 3 times sooner.
# > 14. The versions of TensorFlow, Keras and the driver stand in the table at the end.

# %%
plots.show(pictures.flawed())

# %% [markdown]
# **First a guess**, after one reading: how many of the 14 lines mislead?

# %% labs={"id": "11.1"}
### BEGIN SOLUTION
misleading_expected = 10
### END SOLUTION
predict("11.1", misleading_expected)

# %% [markdown]
# Now line by line: which ones mislead? Give a set of their numbers. The check says how many are still to be found, and where to
# look.

# %% labs={"id": "11.2"}
### BEGIN SOLUTION
lines = {2, 3, 5, 6, 7, 8, 10, 11, 12, 13}
### END SOLUTION
found = check("11.2", lines)
outcome("11.1", len(lines) if found else None, how="counted")

# %% [markdown]
# What is wrong with each? Give a letter for each of these lines, as `{2: "a", 3: "b"}`.
#
# | letter | fault |
# |---|---|
# | **a** | another kind of device is in the denominator: that is acceleration, not speedup |
# | **b** | the baseline is not named, so nobody can measure it again |
# | **c** | one run: the spread is not known |
# | **d** | warm-up is counted |
# | **e** | weak and strong scaling are mixed |
# | **f** | workers share cores (oversubscribed), which says nothing about speed |
# | **g** | rounded times look exact |
# | **h** | the axes hide the difference |
# | **i** | a prediction is called a measurement |
# | **j** | speed without accuracy |

# %% labs={"id": "11.3"}
### BEGIN SOLUTION
faults = {2: "g", 3: "c", 5: "a", 6: "b", 7: "e", 8: "d", 10: "f", 11: "h", 12: "i", 13: "j"}
### END SOLUTION
check("11.3", faults)

# %% [markdown]
# The figure again, on axes that begin at 0 and end where the data end:

# %%
plots.show(pictures.flawed(logarithmic=False))

# %% [markdown]
# The numbers in both figures are `pictures.WORKERS` and `pictures.SPEEDUPS`. What is the efficiency on the largest number of
# workers?

# %% labs={"id": "11.4"}
### BEGIN SOLUTION
efficiency_8 = pictures.SPEEDUPS[-1] / pictures.WORKERS[-1]
### END SOLUTION
check("11.4", efficiency_8, pictures.WORKERS, pictures.SPEEDUPS)

# %% [markdown]
# ## What a good report holds
#
# Two sources say it best. *T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems, SC15, 2015*
# (<https://doi.org/10.1145/2807591.2807644>) looked at 120 papers on parallel computing and at how they report what they
# measured; twelve rules came of it. *MLPerf* (P. Mattson and others, MLPerf Training Benchmark, MLSys 2020, <https://arxiv.org/abs/1910.01500>) adds what is special to
# learning. In our words, with the fault that each rule prevents:
#
# | rule | says | source | prevents |
# |---|---|---|---|
# | **baseline** | A speedup names what it is divided by: one worker of the same kind, in the same study, and its absolute time. | Hoefler and Belli, rule 1 | a, b |
# | **whole** | All that was measured is told, or why a part was left out, such as warm-up and workers that share a core. | rule 2 | d, f |
# | **means** | Times are averaged as times; ratios are not averaged, or if there is no other way by the geometric mean. | rules 3 and 4 | |
# | **spread** | What is not the same each time has an interval; one run has none, and rounding makes it wider. | rules 5 to 7 | c, g |
# | **set-up** | Machine, software, data, batch and every other setting are told, so that others can do it again. | rule 9 | b |
# | **scaling** | It is said whether the work per worker (weak) or in all (strong) stays the same. | rule 9 | e |
# | **bounds** | What is possible at most stands beside what was reached, and what was computed by a model is called so. | rule 11 | i |
# | **figures** | Axes, units and intervals are there, and the axes let the reader see what matters. | rule 12 | h |
# | **goal** | Time counts until the network is as good as agreed. Speed stands beside accuracy. | MLPerf | j |
# | **repeats** | A training's time to that goal differs by its seed, so it is trained several times. | MLPerf | c, j |
#
# The rounds of this course keep rules 3, 5 and 7, and break two, each for a reason. Rule 4 would divide mean times; but drift changes
# all times of a round and leaves their ratio, so the ratios are averaged, by the geometric mean. Rule 6 wants a check before data are
# taken as normally distributed; the interval assumes it of the logarithms of the ratios, and a few rounds cannot show it. So the kit's
# tests try the interval on simulated disturbances instead.
#
# Which of these sentences does the evidence carry, if 6 rounds in turns gave it?
#
# - **a**: "Our method trains 1.71 times faster on 2 workers."
# - **b**: "On 2 workers the speedup is 1.71 (1.62 to 1.80), so 8 workers reach 6.8."
# - **c**: "On 2 cores the speedup over 1 core of the same laptop is 1.71 (95 % interval 1.62 to 1.80, 6 rounds, 64 images per worker),
#   at an accuracy of 0.93 instead of 0.95 after equal epochs; the cost model predicts 5.9 for 8 machines."
# - **d**: "The speedup is 1.71 (1.62 to 1.80), which shows linear scaling with the same accuracy."

# %% labs={"id": "11.5"}
### BEGIN SOLUTION
sentence = "c"
### END SOLUTION
check("11.5", sentence)

# %% [markdown]
# ## Your own report
#
# **Save your notebooks first** (Ctrl + S in each of them): the report reads the files. The cell below makes it from your
# run records, answers and scripts. No number in its tables and figures comes from a notebook; all are made again from the records.
# Your name stands in it only if you give it: `report.make("report", name="...", ppi=60)`. In a terminal the same is
# `uv run labs report`.

# %%
made = report.make("report", ppi=60)
print(f"{len(made.pages)} pages, {len(made.report.runs)} runs, {len(made.report.missing)} things missing")
report.show_pages(made, first=1, last=2)

# %% [markdown]
# Other pages: `report.show_pages(made, first=3, last=9)`. What the report says is missing, and what your evidence does not
# carry, or not any more:

# %%
tables.show([{"missing": line} for line in made.report.missing], ("missing",))
tables.show([dict(found) for found in made.report.findings], ("task", "kind", "text"), {"text": "what was found"})

# %% [markdown]
# A finding is no verdict. Some you mend: run again what has changed, write an answer anew. Others you explain in your
# answer, such as a short test job that was never meant to measure.
#
# To compare with: what a good answer holds, for each written task that you have answered. (Your instructor may have kept
# these lists back.)

# %%
held = [task for task in made.report.tasks if task.holds]
tables.show(
    [{"task": task.id, "a good answer holds": line} for task in held for line in task.holds],
    ("task", "a good answer holds"),
)

# %% [markdown]
# ## T11
#
# Go through your report with the ten rules of the table above: baseline, whole, means, spread, set-up, scaling, bounds,
# figures, goal, repeats. Write down your main result as one sentence that your evidence carries, which rules your report keeps, which
# it does not and where, what you did about each finding, and what stays open.

# %% [markdown] labs={"id": "T11", "kind": "answer"}
# ### T11: your answer
# ### BEGIN SOLUTION
# Main result: with ResNet50V2, 32x32 pixels, 64 images per worker and MirroredStrategy, the table of T5 gives the speedup on 2
# workers over 1 worker of the same study and machine, with its 95 % interval over rounds, and the accuracies after equal epochs
# beside it; 2 workers make half as many updates.
#
# Kept: *baseline* (one worker of the same study, in every table), *whole* (the first epoch is left out, and that is said;
# runs with more workers than cores are marked and not used), *means* (ratios within rounds, by the geometric mean, since times
# drift), *spread* (intervals over rounds), *set-up* (first page, page of runs, scripts), *scaling* (weak: the batch per worker is fixed), *bounds* (T10
# keeps measured and predicted apart), *figures* (units, intervals, axes from 0).
#
# Not kept: *goal*, since a few epochs are no training to an agreed accuracy, and *repeats*, since every round belongs to one
# seed: the rounds say how sure the times are, and nothing about how the accuracy would differ.
#
# Findings: the short batch jobs of T5 and T9 and the runs of S1 have one steady epoch or one repeat, so their speedups have no
# interval; I use none of them as a measurement of speed.
#
# Open: whether ResNet152V2 scales better than ResNet50V2 here, where the interval of the ratio leaves it open; more rounds on a
# machine that nobody shares would decide it.
# ### END SOLUTION

# %% [markdown]
# ## Hand it in
#
# Save this notebook, and make the report once more, so that it holds your last words. Hand in `report/submission.zip`: the
# report, the same as JSON, your notebooks and scripts, and the records that it rests on, with a list of their hashes. Paths of
# your machine, its name and your account are taken out.

# %% labs={"id": "11.6"}
### BEGIN SOLUTION
final = report.make("report")
### END SOLUTION
check("11.6", final)

# %% [markdown]
# ## What you take along
#
# - A report is evidence with a name, a baseline and an interval.
# - What was left out is said; what was computed is not called measured.
# - Evidence goes stale: a script, a run and an answer belong to each other only as long as none of them changes alone.
