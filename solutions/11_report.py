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
# **Time: 50 minutes, including less than 1 minute of computing on 2 cores.**
#
# **Paths:** *the practical* (its last notebook), *everything*; *an afternoon* leaves it out.
#
# You find the faults in somebody else's scaling report, and learn the rules that prevent them. Then you review your own report with
# these rules, and hand it in: task **T11**. No network is trained here.

# %%
from labs import report
from labs.checks import check, outcome, predict
from labs.lessons.nb11 import pictures
from labs.show import plots, tables

# %% [markdown]
# ## A flawed report
#
# Somebody hands in these 14 lines. All their numbers are made up, but every sentence could be true. That is not enough: a line
# **misleads** if it makes the reader believe something that was not measured.
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
# **Predict**, after reading them once: how many of the 14 lines mislead?

# %% labs={"id": "11.1"}
### BEGIN SOLUTION
misleading_expected = 10
### END SOLUTION
predict("11.1", misleading_expected)

# %% [markdown]
# Now go through them line by line. Which ones mislead? Give a set of their numbers. The check tells you how many are still missing,
# and where to look.

# %% labs={"id": "11.2"}
### BEGIN SOLUTION
lines = {2, 3, 5, 6, 7, 8, 10, 11, 12, 13}
### END SOLUTION
found = check("11.2", lines)
outcome("11.1", len(lines) if found else None, how="counted")

# %% [markdown]
# What is wrong with each of them? Give a letter for each of these lines, in the form `{2: "a", 3: "b"}`.
#
# | letter | fault |
# |---|---|
# | **a** | the baseline is another kind of device: that is acceleration, not speedup |
# | **b** | the baseline is not named, so nobody can measure it again |
# | **c** | there is only one run, so the spread is unknown |
# | **d** | warm-up is counted |
# | **e** | weak and strong scaling are mixed |
# | **f** | workers share cores (they are oversubscribed), which says nothing about speed |
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
# `pictures.WORKERS` and `pictures.SPEEDUPS` hold the numbers of both figures. What is the efficiency with the largest number of
# workers, as a share of 1?

# %% labs={"id": "11.4"}
### BEGIN SOLUTION
efficiency_8 = pictures.SPEEDUPS[-1] / pictures.WORKERS[-1]
### END SOLUTION
check("11.4", efficiency_8, pictures.WORKERS, pictures.SPEEDUPS)

# %% [markdown]
# ## What a good report contains
#
# Two sources say it best. *T. Hoefler and R. Belli, Scientific Benchmarking of Parallel Computing Systems, SC15, 2015*
# (<https://doi.org/10.1145/2807591.2807644>) studied how 120 papers on parallel computing report their measurements, and derived
# twelve rules from them. *MLPerf* (P. Mattson and others, MLPerf Training Benchmark, MLSys 2020,
# <https://arxiv.org/abs/1910.01500>) adds what is special about learning. Here are the rules in our words, with the faults that they
# prevent:
#
# | rule | says | source | prevents |
# |---|---|---|---|
# | **baseline** | A speedup names what it is divided by: one worker of the same kind in the same study, with its absolute time. | Hoefler and Belli, rule 1 | a, b |
# | **whole** | The report tells everything that was measured, or why a part was left out, such as warm-up or workers that share a core. | rule 2 | d, f |
# | **means** | Times are averaged as times. Ratios are not averaged; if there is no other way, the geometric mean is used. | rules 3 and 4 | |
# | **spread** | A number that varies has an interval. A single run has none, and rounding makes it wider. | rules 5 to 7 | c, g |
# | **set-up** | Machine, software, data, batch and every other setting are told, so that others can repeat the measurement. | rule 9 | b |
# | **scaling** | The report says whether the work per worker (weak) or the total work (strong) stays the same. | rule 9 | e |
# | **bounds** | The best possible value stands beside the measured one, and the results of a model are called predictions. | rule 11 | i |
# | **figures** | Figures have axes, units and intervals, and their axes let the reader see what matters. | rule 12 | h |
# | **goal** | Time counts until the network has reached an agreed accuracy. Accuracy stands beside speed. | MLPerf | j |
# | **repeats** | The time to that goal varies with the seed, so the network is trained several times. | MLPerf | c, j |
#
# The rounds of this course keep rules 3, 5 and 7, and break two others, each for a reason. Rule 4 would divide mean times. But drift
# changes all times of a round by the same factor and leaves their ratio as it is, so this course averages the ratios, by the geometric
# mean. Rule 6 demands a check before data are treated as normally distributed. The interval assumes this of the logarithms of the
# ratios, and a few rounds cannot show it. So the kit's tests try the interval on simulated disturbances instead.
#
# Suppose the measurement had 6 rounds in turns. Which of these sentences does this evidence support?
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
# **Save your notebooks first** (Ctrl + S in each of them), since the report reads the files. The cell below makes the report from your
# run records, answers and scripts. All numbers in its tables and figures are computed again from the records, not taken from a notebook.
# It shows your name only if you give it: `report.make("report", name="...", ppi=60)`. In a terminal, `uv run labs report` does the same.

# %%
made = report.make("report", ppi=60)
print(f"{len(made.pages)} pages, {len(made.report.runs)} runs, {len(made.report.missing)} things missing")
report.show_pages(made, first=1, last=2)

# %% [markdown]
# For other pages, use `report.show_pages(made, first=3, last=9)`. The next cell lists what is missing in the report, and its
# **findings**: places where your evidence does not support what the report shows, or no longer does.

# %%
tables.show([{"missing": line} for line in made.report.missing], ("missing",))
tables.show([dict(found) for found in made.report.findings], ("task", "kind", "text"), {"text": "what was found"})

# %% [markdown]
# A finding is not a verdict. Some findings you can repair: run again what has changed, or rewrite an answer. Others you explain in
# your answer, such as a short test job that was never meant to measure anything.
#
# For each written task that you have answered, this table lists what a good answer contains. Compare yours with it. (Your instructor
# may have withheld these lists.)

# %%
held = [task for task in made.report.tasks if task.holds]
tables.show(
    [{"task": task.id, "a good answer holds": line} for task in held for line in task.holds],
    ("task", "a good answer holds"),
)

# %% [markdown]
# ## T11
#
# Review your report with the ten rules of the table above: baseline, whole, means, spread, set-up, scaling, bounds, figures, goal,
# repeats. Write down
#
# - your main result, in one sentence that your evidence supports;
# - which rules your report keeps, and which it breaks, and where;
# - what you did about each finding;
# - what stays open, and which measurement would decide it.

# %% [markdown] labs={"id": "T11", "kind": "answer"}
# ### T11: your answer
# ### BEGIN SOLUTION
# Main result: with ResNet50V2, 32x32 pixels, 64 images per worker and MirroredStrategy, the table of T5 gives the speedup on 2
# workers over 1 worker of the same study and machine, with its 95 % interval over rounds, and the accuracies after equal epochs
# beside it; 2 workers make half as many updates.
#
# Kept: *baseline* (one worker of the same study, in every table), *whole* (the first epoch is left out, and that is said;
# runs with more workers than cores are marked and not used), *means* (ratios within rounds, by the geometric mean, since times
# drift), *spread* (intervals over rounds), *set-up* (first page, page of runs, scripts), *scaling* (weak: the batch per worker is
# fixed), *bounds* (T10 keeps measured and predicted apart), *figures* (units, intervals, axes from 0).
#
# Not kept: *goal*, since a few epochs do not reach an agreed accuracy, and *repeats*, since all rounds have the same seed. The rounds
# say how certain the times are, but nothing about how the accuracy would vary.
#
# Findings: the short batch jobs of T5 and T9 and the runs of S1 have one steady epoch or one repeat, so their speedups have no
# interval. I do not use them as measurements of speed.
#
# Open: whether ResNet152V2 scales better than ResNet50V2 here, since the interval of the ratio contains 1. More rounds on a machine
# that nobody else uses would decide it.
# ### END SOLUTION

# %% [markdown]
# ## Hand it in
#
# Save this notebook, and make the report once more, so that it contains your last words. In the next cell, set `final` to what
# `report.make("report")` returns, as `made` above. The check looks whether the files of this report fit together. Then hand in
# `report/submission.zip`. It contains the report as PDF and as JSON, your notebooks and scripts, and the records behind them, with a
# list of their hashes. The paths on your machine, its name and your account are removed.

# %% labs={"id": "11.6"}
### BEGIN SOLUTION
final = report.make("report")
### END SOLUTION
check("11.6", final)

# %% [markdown]
# ## What you take along
#
# - A report is evidence with a name, a baseline and an interval.
# - It says what was left out, and calls nothing measured that was computed.
# - Evidence grows old: a script, a run and an answer belong together only as long as none of them changes alone.
