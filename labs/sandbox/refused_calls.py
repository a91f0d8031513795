"""System calls that are refused in the sandbox: what would pass by its limits, or widens what can be attacked."""

import errno
import struct

# Numbers of x86-64 (arch/x86/entry/syscalls/syscall_64.tbl of Linux).
# Memory that belongs to no process that could be asked for it.
REFUSED = {"memfd_create": 319, "memfd_secret": 447, "shmget": 29}
# Namespaces and mounts of its own: a tmpfs without a limit.
REFUSED |= {"unshare": 272, "setns": 308, "mount": 165, "fsopen": 430, "open_tree": 428}
# Keys are those of the user outside, too.
REFUSED |= {"add_key": 248, "request_key": 249, "keyctl": 250}
# Seldom needed, often the way out.
REFUSED |= {"bpf": 321, "io_uring_setup": 425, "perf_event_open": 298, "userfaultfd": 323}
_CLONE, _CLONE3 = 56, 435
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW*: cgroup, uts, ipc, user, pid, net, mount, time
_X86_64, _X32 = 0xC000003E, 0x40000000  # AUDIT_ARCH_X86_64; calls of the x32 interface begin there
_KILL, _ERROR, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000  # SECCOMP_RET_*
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of BPF


def program():
    """The filter as a program for seccomp (bytes): `struct sock_filter` instructions, see seccomp(2)."""
    number, architecture, first_argument = 0, 4, 16  # offsets in struct seccomp_data
    steps = [(_LOAD, 0, 0, architecture), (_EQUAL, 1, 0, _X86_64), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, number)]
    steps += _refuse(_AT_LEAST, _X32, errno.ENOSYS)
    steps += _refuse(_EQUAL, _CLONE3, errno.ENOSYS)  # its flags cannot be seen; the C library takes clone instead
    for call in REFUSED.values():
        steps += _refuse(_EQUAL, call, errno.EPERM)
    steps += [(_EQUAL, 0, 3, _CLONE), (_LOAD, 0, 0, first_argument), *_refuse(_ANY_BIT, _NEW_NAMESPACES, errno.EPERM)]
    steps += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _refuse(test, value, error):
    """Return an error where the test holds for the value that was loaded, else go on."""
    return [(test, 0, 1, value), (_RETURN, 0, 0, _ERROR | error)]
