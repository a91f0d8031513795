"""The process that stops a waiting training, and lets it go on or ends it: `python -I -S keeper.py`, its child.

Between its parent (a process of a training, over pipes) and the coordinator (labs.jobs.turns, over a socket):

    parent       {"address", "token", "job", "rank", "ranks"} once, then a line whenever it waits for its turn
    coordinator  {"round", "order"}: the turn, handed on to the parent

A process that waits is stopped (SIGSTOP): merely asleep, threads of Horovod and MPI would keep a core busy. Who is
stopped cannot notice that the coordinator has died. The keeper does, since the socket closes: it lets the parent go on,
ends it with SIGTERM and, if it is still there after PATIENCE seconds, with SIGKILL. Only the standard library is used.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

HERE = "127.0.0.1"
PATIENCE = 15.0  # seconds: a training that is told to end writes its record first


def main():
    parent, lines = os.getppid(), sys.stdin.buffer.raw
    asked = _line(lines)
    if not asked:
        return
    asked = json.loads(asked)
    host, port = asked.pop("address")

    def send(sign):
        if os.getppid() == parent:  # its number is not another process' by now
            os.kill(parent, sign)

    def leave(*_):
        send(signal.SIGCONT)
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)  # sent to the whole job: the parent has got it too, but cannot act on it
    try:
        with _reach(host, port) as coordinator:
            coordinator.sendall(json.dumps(asked).encode() + b"\n")
            while True:
                ready, _, _ = select.select([lines, coordinator], [], [])
                if lines in ready:
                    if not os.read(lines.fileno(), 4096):
                        coordinator.sendall(b"bye\n")  # the parent has ended, or needs no turn any more
                        return
                    send(signal.SIGSTOP)
                    coordinator.sendall(b"waiting\n")
                elif not (turn := coordinator.recv(4096)):
                    break
                else:
                    send(signal.SIGCONT)
                    os.write(sys.stdout.fileno(), turn)
    except OSError:
        pass  # the coordinator cannot be reached (any more)
    send(signal.SIGCONT)
    send(signal.SIGTERM)
    end = time.monotonic() + PATIENCE
    while (left := end - time.monotonic()) > 0:
        if select.select([lines], [], [], left)[0] and not os.read(lines.fileno(), 4096):
            return
    send(signal.SIGKILL)


def _reach(host, port):
    """A connection to the coordinator, which ends soon after its machine does.

    In a step of SLURM's the coordinator is where srun ran, whose address SLURM tells. host: that node's name, or HERE.
    """
    told, found = os.environ.get("SLURM_LAUNCH_NODE_IPADDR"), None
    if told and host != HERE:
        with contextlib.suppress(OSError):
            found = socket.create_connection((told, port), timeout=30)
    try:
        found = found or socket.create_connection((host, port), timeout=30)
    except OSError as problem:
        said = f"The program that gives the turns cannot be reached at {host}, port {port}: {problem}"
        print(said, file=sys.stderr, flush=True)
        raise
    found.settimeout(None)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 60), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 6)):
        found.setsockopt(socket.IPPROTO_TCP, option, value)
    return found


def _line(stream):
    found = b""
    while not found.endswith(b"\n") and (more := stream.read(1)):
        found += more
    return found


if __name__ == "__main__":
    main()
