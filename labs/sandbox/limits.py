"""What all processes of a sandbox together may use.

seconds     by the supervisor, which is a process outside; then all are killed
memory      by the supervisor, which adds up all processes every 50 ms: RSS, and if that is too much PSS, which counts
            shared pages once. What one takes between two looks is bounded by RLIMIT_AS, SPARE above the limit. The
            kernel's own buffers are not counted; its out-of-memory killer takes the sandbox first
processes   by RLIMIT_NPROC, so no more are made, and by the supervisor, which ends all when they are so many. Threads
            count
disk        by the size of the tmpfs that holds all it can write, and the same again for /dev/shm; RLIMIT_FSIZE
files       by the supervisor
output      by the supervisor, of stdout and stderr together

As root the sandbox has a user of its own, so that RLIMIT_NPROC counts nothing else. As an ordinary user it has yours:
kernels before 5.14 count your other processes, too, so they are added to the limit.
"""

import os
from dataclasses import dataclass

SPARE = 4 << 30  # bytes of address space that a program reserves and does not use (TensorFlow)
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Limits:
    """seconds of wall clock; bytes of memory, disk, output; numbers of processes (with threads) and files."""

    seconds: float = 60
    memory: int = 2 << 30
    processes: int = 256
    disk: int = 256 << 20
    files: int = 10_000
    output: int = 1 << 20

    def of_a_process(self, others: int = 0) -> list[str]:
        """The options of prlimit(1) for the first process, which all others inherit and cannot raise.

        others: processes and threads of the same user outside.
        """
        numbers = {"nproc": self.processes + others, "as": self.memory + SPARE, "fsize": self.disk}
        numbers |= {"core": 0, "memlock": 1 << 20, "nofile": 1024}
        return [f"--{name}={number}" for name, number in numbers.items()]

    def passed(self, proc: int, folders: list[int]) -> str | None:
        """The name of a limit that is reached, or None.

        proc: descriptor of the sandbox's own /proc, which holds its processes and no others
        folders: descriptors of those that it can write
        """
        tasks, resident, numbers = 0, 0, [name for name in os.listdir(proc) if name.isdecimal()]
        for number in numbers:
            fields = _read(proc, f"{number}/stat").rpartition(")")[2].split()
            if fields:
                tasks, resident = tasks + int(fields[17]), resident + int(fields[21]) * _PAGE
        if tasks >= self.processes:
            return "processes"
        if resident > self.memory and sum(_pss(proc, number) for number in numbers) > self.memory:
            return "memory"
        for folder in folders:
            used = os.fstatvfs(folder)
            if used.f_bfree == 0:
                return "disk"
            if used.f_files - used.f_ffree > self.files:
                return "files"
        return None


def _pss(proc, number):
    """Bytes of a process, of which each shared page counts as its part (PSS)."""
    lines = _read(proc, f"{number}/smaps_rollup").splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def _read(folder, name):
    """Text of a file below an open folder; "" where the process is gone."""
    try:
        with open(os.open(name, os.O_RDONLY, dir_fd=folder), errors="replace") as file:
            return file.read()
    except OSError:
        return ""
