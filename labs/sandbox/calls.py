"""System calls that are refused in the sandbox: what would pass by its limits, or widens what can be attacked."""

import errno
import struct

from labs import files

REFUSED = files.beside(__file__)["refused"]  # {name: number}
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
