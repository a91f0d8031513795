"""The lines that name a failure: tables of (kind, pattern, advice) for labs.results.failures.

Patterns are searched in a line without its rank prefix. Sources: TensorFlow, Keras, Python, bash, SLURM 22.05, Lmod,
Environment Modules, MPICH, Open MPI, Intel MPI, Cray MPICH, NCCL, Horovod, Gloo.
"""

MEMORY = "Halve the batch size (--batch_size) or use smaller images, and run again."
HOST = "Halve the batch size, or ask for more host memory (in SLURM: --mem or more --cpus-per-task)."
MODULE = (
    "Find the module's right name with `module avail` (or `module spider NAME`) on a login node, and correct the "
    "script."
)
CANCELLED = "Someone stopped the job; submit it again."

# In order of how much they prove: first the kind, then the line. Nothing else in the file counts beside them.
CERTAIN = [
    ("out of memory", r"OOM when allocating tensor with shape", MEMORY),
    ("out of memory", r"ResourceExhaustedError|RESOURCE_EXHAUSTED: (?!End of)|CUDA out of memory", MEMORY),
    ("out of memory", r"oom[-_]kill event|oom_kill|out-of-memory handler|tasks? .*: Out Of Memory", HOST),
    ("out of memory", r"exceeded memory limit \(|Exceeded (?:job|step) memory limit", HOST),
    ("out of memory", r"^(?:[\w.]*\.)?_?(?:Array)?MemoryError\b|std::bad_alloc|annot allocate memory", HOST),
]
# What the scheduler did. The first of these lines and of the exceptions is the cause: what follows it are echoes.
SCHEDULER = [
    ("time limit", r"DUE TO TIME LIMIT|TIMEOUT \*\*\*", "Ask for more time (--time) or train for fewer epochs."),
    (
        "node failure",
        r"DUE TO NODE FAILURE|^srun: error: Node failure on ",
        "A node broke; the script is not to blame. Submit it again, and tell the site if it happens twice.",
    ),
    ("cancelled", r"\*\*\* .*DUE TO PREEMPTION", "A job that goes before yours took its place; submit it again."),
    ("cancelled", r"\*\*\* JOB .*CANCELLED AT \S+ \*\*\*", CANCELLED),
]
NO_MODULE = [
    (
        "missing module",
        r"(?:^|: )(?:module|ml): (?:command )?not found$",
        "There is no module command here: begin the script with `#!/bin/bash -l`, or leave the modules out on a machine "
        "without them.",
    ),
    (
        "missing module",
        r"Unable to locate a modulefile|Lmod has detected the following error"
        r"|^\s*ERROR: .*\bcannot be loaded due to\b|ModuleCmd_Load\.c\(\d+\):ERROR",
        MODULE,
    ),
]
# A request that was refused; a program can go on after it.
PROBABLE = [("out of memory", r"CUDA_ERROR_OUT_OF_MEMORY", "If nobody else uses the GPU, halve the batch size.")]
# Often only the consequence of an exception.
LATE = [
    *NO_MODULE,
    ("cancelled", r"^KeyboardInterrupt\b", CANCELLED),
    (
        "missing file",
        r"can't open file|(?<!shared object file): No such file or directory|: command not found|: not found$",
        "Check the path and the folder the job starts in, and load the modules or the environment first.",
    ),
    (
        "killed",
        r"^(?:\S+: line \d+: +\d+ )?Killed\b|KILLED BY SIGNAL|tasks? .*: Killed|signal 9\b|Segmentation fault"
        r"|CODE: 13[79]\b",
        "The system ended the process, most often for lack of memory: halve the batch size and run again.",
    ),
]
# The rank that says so may be the one that was left alone: where another died in a way that is known, that counts.
NETWORK = [
    (
        "NCCL error",
        r"\bnccl[A-Z]\w+ failed|\bNCCL: (?:unhandled|internal|invalid|remote) |\bNCCL error\b"
        r"|\bnccl(?:System|UnhandledCuda|Internal|InvalidUsage|InvalidArgument|Remote)\w*\b",
        "The GPUs could not talk to each other. Run it again with NCCL_DEBUG=INFO and read the first line with NCCL WARN; "
        "check that each rank has a GPU of its own and that NCCL_SOCKET_IFNAME names the site's network.",
    ),
    (
        "MPI error",
        r"^Abort\(-?\d+\) on node |Fatal error in (?:P?MPI|internal)_|\*\*\* An error occurred in |\bMPI_ERR_[A-Z]+: "
        r"|MPI_ABORT was invoked|application called MPI_Abort|OMPI was not built with SLURM's PMI support"
        r"|It looks like MPI_INIT failed|There are not enough slots available in the system",
        "The ranks were not connected, or lost each other. Check that the launcher is of the MPI that Horovod was built "
        "with (in SLURM: srun --mpi=...), and the ranks' lines above this one.",
    ),
    (
        "Gloo error",
        r"\bgloo/\S+\.(?:cc|h):\d+\]|\bgloo::\w+|\bGloo \w+ failed",
        "The ranks could not reach each other, or one ended without a word. Check the network interface "
        "(HOROVOD_GLOO_IFACE) and the ranks' lines around this one.",
    ),
]
# The launcher's word that a process ended, or SLURM's that it cancelled the others; the first of them.
LAUNCHER = [
    ("cancelled", r"\*\*\* .*CANCELLED AT \S+ \*\*\*", CANCELLED),
    (
        "cancelled",
        r"\*\*\* .*CANCELLED(?!.*\*\*\*)",
        "The line is cut off: someone stopped the job, or its time was over. `sacct -j` with the job's number tells.",
    ),
    (
        "job error",
        r"^(?:srun|sbatch|slurmstepd|mpiexec|horovodrun)(?:-\S+)?: error: |[Ee]xited with exit code [1-9]",
        "The launcher gives no reason here: read the lines above it in the .err.",
    ),
]
ECHOES = [  # when nothing else is there
    (
        "job error",
        r"Horovod has been shut down|Horovod detected that one or more processes exited",
        "Another rank ended first, without a word in this file; read the end of the .out.",
    )
]

# After the first line of this kind srun ends the other ranks, and says of them what happened to them.
RANK_ENDED = (
    r"^srun: error: .*tasks? [\d,-]+: (?!Terminated)|Terminating (?:StepId=|job step)"
    r"|\*\*\* (?:STEP|JOB) .*CANCELLED"
)
ENDED_BY_SRUN = (
    r"^srun: error: .*tasks? [\d,-]+: (?:Killed|Terminated|Segmentation fault)"
    r"|\*\*\* STEP .*CANCELLED AT \S+ \*\*\*"
)

EXCEPTIONS = {
    "ModuleNotFoundError": "import error",
    "ImportError": "import error",
    "FileNotFoundError": "missing file",
    "KeyboardInterrupt": "cancelled",
}
ADVICE = {
    "import error": "Start the job in the kit's environment (uv run ..., or load the site's modules).",
    "missing file": "Check the path and the folder the job starts in.",
    "cancelled": CANCELLED,
    "python error": "Read the traceback above this line: it names the file and the line of the script.",
}
