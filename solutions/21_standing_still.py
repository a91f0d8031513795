# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Why does it stand still?
#
# **Time: 30 minutes, including 4 minutes of computing on 2 cores.** Four optional parts take about 25 minutes more.
#
# **Paths:** only *everything* contains this notebook.
#
# When something goes wrong in a program for one process, the program ends with an error. A program for many processes
# often does not end at all: it hangs. In this notebook you meet nine jobs. Five of them hang. The other four end with a
# message, compute something wrong, or are slow. You learn to tell these cases apart, to find the rank and the line, and
# to fix the script.
#
# Each of the nine scripts fits a straight line to points, in about 50 lines of NumPy. They contain no neural network,
# so that you can read each one in two minutes. The mistakes in them are those of real training scripts.

# %%
from labs import devices, jobs, presets
from labs.checks import answered, check, outcome, predict
from lessons.standing_still import following

plan = presets.choose()
real = devices.has("horovod")
several = real and plan.name != "test"  # on the smallest preset, only the first job runs

# %% [markdown]
# ## The tools, on a live job
#
# Open `scripts/reports_loss.py`. In each step, all ranks average their gradients. After every tenth step, rank 0
# reports the losses of all ranks. Start the job on 2 ranks, and wait until no rank makes progress. (If you forget about
# the job, it is stopped after 5 minutes. *Kernel, Interrupt* stops it with all its ranks.)

# %%
if real:
    # After how many seconds Horovod complains; 60 is its default.
    stall = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "5"}
    job = following.start("scripts/reports_loss.py", "reports_loss", launcher="mpiexec", env=stall)
    following.follow(job)
    print("state:", job.state)
    print("printed:", job.out.read_text() or "nothing")

# %% [markdown]
# No error, no output, and the processes are alive. What would you see tomorrow morning if nothing stopped the job?
# (After a while, Horovod can complain: see Tool 2. Assume that this is switched off.) **a**: an exception with a
# traceback, **b**: a message from the launcher, and the job has ended, **c**: nothing more than now, **d**: the losses
# of the first steps

# %% labs={"id": "standing.1"}
### BEGIN SOLUTION
tomorrow = "c"
### END SOLUTION
check("standing.1", tomorrow)

# %% [markdown]
# **Tool 1: where is each rank?** `job.explain()` asks the ranks of a running job where they are. In a terminal, `labs
# why reports_loss` does the same. Each rank writes its *stack* to a file in the folder of the runs. The stack lists the
# lines of your script that the rank is in, from the outermost call to the innermost one. The job is not disturbed by
# this.

# %%
if real:
    print(job.explain())

# %% [markdown]
# `line 46 > 39 > 32` says: line 46 has called a function, in which line 39 has called another one, and in that one,
# line 32 has called the collective. The share of a core is that of the last 3 seconds. Over MPI, it does not tell you
# who waits: Horovod's ranks meet every millisecond, whatever the script does, and whichever comes first keeps a core
# busy until the other one comes.
#
# The stack of each rank ends in a collective, but the two collectives are different. One rank is in a collective that
# the *script* lets no other rank call. Which rank is it, at which line of `fit`, and in which collective? Give the
# collective as a string, such as `"broadcast"`.

# %% labs={"id": "standing.2"}
### BEGIN SOLUTION
rank, line, collective = 0, 32, "allgather"
### END SOLUTION
check("standing.2", rank, line, collective)

# %% [markdown]
# **Tool 2: Horovod's stall message.** Over MPI, Horovod itself notices after 60 seconds that some ranks have announced
# a tensor and others have not. It prints a message to the `.err` file, again and again, and goes on waiting. Over Gloo,
# we saw no such message.

# %%
if real:
    print(following.stall_message(job))

# %% [markdown]
# Below `Missing ranks`, each line names a rank and the tensors that it has not announced. Outside a `tf.function`, a
# tensor is named after the kind of collective that exchanges it. Inside one, it has the name that you gave it. If you
# set `HOROVOD_STALL_SHUTDOWN_TIME_SECONDS`, Horovod ends the job after that many seconds. In a terminal, Ctrl-C ends a
# job of `horovodrun`. With `mpiexec` you have to press it twice, since a rank that hangs does not react to the first
# one.
#
# **Tool 3: the exit code.** A job that hangs has no exit code. One that was ended, by you or by the system, does have
# one. Stop this job.

# %%
if real:
    job.stop()
    print(job.explain())
    print("exit code of the job's process:", job.process.returncode)

# %% [markdown]
# A negative exit code stands for a signal: Python shows signal 9 as -9. A shell and `srun` show it as 128 + 9 = 137. 15
# is SIGTERM, the request to end. 9 is SIGKILL, which no program can handle. 11 is SIGSEGV, a crash in a library. On a
# cluster, `sacct -j JOB` shows the exit code and the signal as a pair, such as `0:9`, and states such as
# `OUT_OF_MEMORY` or `TIMEOUT`. If a machine has run out of memory, the kernel's log has a line `Out of memory: Killed
# process`: type `dmesg` to see it. On many clusters, only administrators may read it.
#
# Now fix `scripts/reports_loss.py`: the losses of all ranks should be reported as before. The check runs your script on
# 2 simulated ranks, which take turns in one process.

# %% labs={"id": "standing.3"}
check("standing.3", "scripts/reports_loss.py")

# %%
if several and answered("standing.3"):
    job = jobs.run("scripts/reports_loss.py", name="reports_loss_mended", ranks=2, timeout=120)
    print(job.printed)

# %% [markdown]
# ## Three jobs
#
# Read these three scripts. Each looks right:
#
# 1. `scripts/every_error.py` averages the squared errors of 25 points.
# 2. `scripts/own_share.py` deals out 25 batches to the ranks.
# 3. `scripts/prepares_once.py` lets rank 0 write a file that the others wait for.
#
# **Predict** what you will observe for each of them: **h**: it hangs, **m**: it ends with a message from Horovod or
# from the launcher, **w**: it goes on and computes something wrong, **s**: it is slow, but right. Write three letters.

# %% labs={"id": "standing.4"}
### BEGIN SOLUTION
three = "mhh"
### END SOLUTION
predict("standing.4", three)


# %%
def look(name, **options):
    """Start a job, follow it, show what is known of it, and stop it. Returns the letter of what was observed."""
    job = following.start(f"scripts/{name}.py", name, **options)
    following.follow(job)
    letter = following.letter(job)
    text = job.printed if job.state == "finished" else ""
    print(job.explain(), *([text] if text else []), sep="\n")
    job.stop()
    return letter


found = {}
if several:
    found["every_error"] = look("every_error")

# %% [markdown]
# This job ends with a message. Horovod compares what the ranks submit before it exchanges anything, and the message
# names what does not match. Find the two shapes in it. Where do they come from? Then fix the script: it should print
# the mean squared error over all 25 points, each of which counts equally.

# %% labs={"id": "standing.5"}
check("standing.5", "scripts/every_error.py")

# %%
if several:
    found["own_share"] = look("own_share")

# %% [markdown]
# One rank waits in a step that the other one does not take. Fix the script: in each epoch, all ranks should take the
# same number of steps, as many as possible, and use each batch at most once. This should hold on any number of ranks.

# %% labs={"id": "standing.6"}
check("standing.6", "scripts/own_share.py")

# %% [markdown]
# This job hangs because the ranks wait in different collectives. Had they averaged their slopes, rank 1's one number
# would have met rank 0's gradient of two: Horovod stops that with `Mismatched ALLREDUCE tensor shapes`. Had they
# averaged the whole line, which also has two numbers, rank 0's gradient would have been averaged with rank 1's line. We
# tried it: the job printed wrong slopes for two epochs, and the error came only in the third, when rank 1 had ended.

# %%
if several:
    found["prepares_once"] = look("prepares_once")
outcome("standing.4", following.known(found, "every_error", "own_share", "prepares_once"))

# %% [markdown]
# This time, one rank waits in a collective and the other one is in none. Which rank never reaches the collective, and
# at which line of `points` is it? In which collective does the other rank wait for it?

# %% labs={"id": "standing.7"}
### BEGIN SOLUTION
rank, line, collective = 1, 33, "allreduce"
### END SOLUTION
check("standing.7", rank, line, collective)

# %% [markdown]
# Which rank holds what the other one needs? Fix the script. One rank should still write the file, and y should still be
# scaled in the same way.

# %% labs={"id": "standing.8"}
check("standing.8", "scripts/prepares_once.py")

# %% [markdown]
# ## Three more
#
# 1. After each step, `scripts/tries_many.py` tries out the fitted line on random points.
# 2. `scripts/remembers.py` keeps in memory what rank 1 has computed. The script simulates a small machine: if the list
#    becomes too long, the rank is killed, as Linux kills a program when memory runs out.
# 3. `scripts/two_means.py` finds the line with a formula, in four all-reduces.
#
# **Predict** again: **h**, **m**, **w** or **s**, three letters.

# %% labs={"id": "standing.9"}
### BEGIN SOLUTION
three = "smw"
### END SOLUTION
predict("standing.9", three)

# %%
if several:
    found["tries_many"] = look("tries_many")

# %% [markdown]
# Look at the state of both ranks, and at where rank 1 is. What is wrong with this job? **a**: it hangs, since rank 0
# waits; **b**: it goes on, since rank 1 is computing and will arrive; **c**: the ranks are in different collectives;
# **d**: rank 0 has died

# %% labs={"id": "standing.10"}
### BEGIN SOLUTION
matter = "b"
### END SOLUTION
check("standing.10", matter)

# %% [markdown]
# Before you call anything a hang, look twice. A rank on a busy machine, or one that reads from a slow disk, may arrive
# a minute later. If a stack differs from one look to the next, the job is making progress.

# %%
if several:
    found["remembers"] = look("remembers", launcher="mpiexec")
    print(*[line for line in open(jobs.folder() / "remembers.out") if "EXIT" in line or "KILLED" in line.upper()])

# %% [markdown]
# Rank 1 leaves no traceback. But the launcher knows something. What is the number of the signal that ended rank 1?

# %% labs={"id": "standing.11"}
### BEGIN SOLUTION
signal_number = 9
### END SOLUTION
check("standing.11", signal_number)

# %%
if several:
    found["two_means"] = look("two_means")
outcome("standing.9", following.known(found, "tries_many", "remembers", "two_means"))

# %% [markdown]
# The points lie near the line with slope 2 and intercept 1, but this job prints a different line. It ends with exit
# code 0, and no tool in this notebook notices anything. Only a comparison with a run on one process shows the error. If
# you do not see the cause, let `means` print the order of each rank's averages. Then fix the script.

# %% labs={"id": "standing.12"}
check("standing.12", "scripts/two_means.py")

# %% [markdown]
# ## To take with you
#
# | what you see | how to look | likely cause | cure |
# |---|---|---|---|
# | ranks wait in different collectives | `labs why`: compare the stacks | a collective that depends on the rank, or is inside a function that only one rank calls | call it on all ranks; put the condition around the print |
# | the same, at the end of an epoch | `labs why` | unequal numbers of steps | equal shares, or leave the rest out |
# | ranks wait at the same line, in different collectives | `labs why`, the stall message | an order that depends on a rank's own data | a fixed order |
# | one rank waits in a collective, another one sleeps elsewhere | `labs why` | a file, a lock or a queue that the waiting rank should provide | provide it before the collective |
# | one rank waits, another one computes | `labs why`, twice | a straggler: slow, not stuck | equal work; notebook 23 |
# | `Mismatched ... tensor shapes` | the `.err` file | parts of different sizes | all-gather, or equal parts |
# | the launcher names a signal, and there is no traceback | exit code, `sacct`, `dmesg` | the system killed a rank, most often for lack of memory | a smaller batch, or more memory |
# | exit code 0, wrong numbers | compare with one process | collectives of the same kind that were paired wrongly, because their order differs between ranks | a fixed order; names inside a `tf.function` |
# | nothing starts | the launcher's messages in the `.err` file | an unknown host, a port in use | let `srun` start the ranks; another port |
#
# You need not read it all now.
#
# ## Summary
#
# - A collective ends only if all ranks call it. A rank that never arrives causes no error.
# - First find out where each rank is. Then ask why the missing one is not there.
# - Look twice before you call it a hang, and compare with one process before you call it right.
#
# Next: `22_when_workers_do_not_help`. The optional parts follow.

# %% [markdown]
# ## Optional: two more jobs
#
# 1. `scripts/keeps_best.py` tests the fitted line from time to time, and keeps the best one so far.
# 2. `scripts/smallest_first.py` exchanges what is small before what is large.
#
# **Predict**: two letters out of **h**, **m**, **w** and **s**.

# %% labs={"id": "standing.13"}
### BEGIN SOLUTION
two = "hh"
### END SOLUTION
predict("standing.13", two)

# %%
if several:
    found["keeps_best"] = look("keeps_best")

# %% [markdown]
# One rank is in a collective that the other one never calls. Which rank is it, at which line of `fit`, and in which
# collective?

# %% labs={"id": "standing.14"}
### BEGIN SOLUTION
rank, line, collective = 0, 37, "allgather"
### END SOLUTION
check("standing.14", rank, line, collective)

# %% [markdown]
# Fix it. The line should still be tested on the test points of all ranks, after every tenth step.

# %% labs={"id": "standing.15"}
check("standing.15", "scripts/keeps_best.py")

# %%
if several:
    found["smallest_first"] = look("smallest_first")
outcome("standing.13", following.known(found, "keeps_best", "smallest_first"))

# %% [markdown]
# Both ranks are at the same line. In which collective is rank 0, and in which one is rank 1?

# %% labs={"id": "standing.16"}
### BEGIN SOLUTION
rank_0, rank_1 = "allreduce", "allgather"
### END SOLUTION
check("standing.16", rank_0, rank_1)

# %% [markdown]
# Why do the two ranks sort differently? Fix the script.

# %% labs={"id": "standing.17"}
check("standing.17", "scripts/smallest_first.py")

# %% [markdown]
# ## Optional: where did the ranks of `own_share.py` wait?
#
# Look at the output of this job again, above. Which rank waits in a step that the other one does not take, at which
# line of `epoch`, and in which collective?

# %% labs={"id": "standing.18"}
### BEGIN SOLUTION
rank, line, collective = 0, 32, "allreduce"
### END SOLUTION
check("standing.18", rank, line, collective)

# %% [markdown]
# ## Optional: before the first line
#
# Some failures happen before the first line of your script. On one of our machines, `horovodrun` was given a host name
# that nobody knows, and ended after 6 seconds with this message:
#
# ```
# ssh not successful for host nowhere.invalid:
# ssh: Could not resolve hostname nowhere.invalid: Name or service not known
# ```
#
# In a SLURM job, let `srun` start the ranks: it knows the nodes. If a message ends with `Address already in use`,
# another program has the port, perhaps an earlier job of yours that is still running.

# %% [markdown]
# ## Optional: other tools
#
# These help where this kit is not at hand:
#
# - `py-spy dump --pid PROCESS` prints the stack of any Python program, even of one that knows nothing of this kit
#   ([py-spy](https://github.com/benfred/py-spy)). It needs permission to trace the process, which containers and
#   clusters often refuse.
# - One line at the top of any script is enough:
#   `import faulthandler, signal; faulthandler.register(signal.SIGUSR1)`. After that, `kill -USR1 PROCESS` in a terminal
#   makes the program print its stacks. Send this signal only to a process that hangs: while Python runs, faulthandler
#   can crash it. (A loop of ours on Python 3.11 crashed after 16 signals.)
# - Horovod's timeline (notebook 20) shows which rank waited for which, up to the collective that never ended.
# - With `NCCL_DEBUG=INFO`, NCCL reports how it connects the GPUs
#   ([NVIDIA](https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/logging.html)). This helps if
#   ranks do not find each other at the start.
# - PyTorch ends a collective that takes too long. Here is a line from such a job, recorded by
#   [a PyTorch user](https://discuss.pytorch.org/t/cant-understand-nccl-error/187207), not by us:
#   `[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=388923, OpType=_ALLGATHER_BASE,
#   Timeout(ms)=1800000) ran for 1804615 milliseconds before timing out.` Its
#   [Flight Recorder](https://docs.pytorch.org/tutorials/prototype/flight_recorder_tutorial.html) keeps each rank's most
#   recent collectives, with their stacks.
