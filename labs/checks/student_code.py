"""A student's code while it is judged: an exception is told with its line, and a call without end is stopped.

A frame is the student's if its file is neither Python's, a package's nor the kit's: a notebook's cell, a script.
"""

import contextlib
import linecache
import re
import signal
import sys
import threading
import time
import traceback

from labs.files import installed

SECONDS = 10  # for one call of a student's function
BURST = 2e-4  # seconds until code that swallows exceptions is stopped again: once outside its `try`


class Endless(BaseException):
    """A call of a student's function was stopped after SECONDS; its text is the line where it was."""


@contextlib.contextmanager
def tried(what):
    """What is told beside an exception that is raised in here: `Tried with {what}.`"""
    try:
        yield
    except Exception as problem:
        problem.add_note(f"Tried with {what}.")
        raise


def error_hint(problem):
    """Hint for an exception in a student's code: the line, and what happened; None if it is not the student's."""
    if isinstance(problem, RuntimeError) and isinstance(problem.__cause__, StopIteration):
        problem = problem.__cause__  # judges are generators, which turn StopIteration into this (PEP 479)
    steps = traceback.walk_tb(problem.__traceback__)
    lines = [(frame.f_code.co_filename, number) for frame, number in steps if not installed(frame.f_code.co_filename)]
    if not lines:
        return None
    notes = [f" {note}" for note in getattr(problem, "__notes__", []) if note.startswith("Tried with")]
    return f"{_line(*lines[-1])}: {error_text(problem)}{''.join(notes)}"


def error_text(problem):
    """Type and text of an exception, in one line that ends with a full stop."""
    try:
        lines = [line.strip() for line in str.__str__(str(problem)).splitlines() if line.strip()]
    except KeyboardInterrupt:
        raise
    except BaseException:  # a __str__ may do anything
        lines = []
    if lines and lines[0] == "in user code:":  # TensorFlow's: what happened stands at the end
        lines = [lines[-1].removeprefix(f"{type(problem).__name__}: ")]
    text = type(problem).__name__ + "".join(f": {line}" for line in lines[:1])
    text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\].*", "", text)  # TensorFlow's names of its own operations
    return text[:300].rstrip(" .") + "."


def _line(file, number):
    linecache.checkcache(file)  # a script may have been edited since it was last quoted
    text = re.sub(r"^(?=.{81})(.{1,80}) .*", r"\1 ...", linecache.getline(file, number).strip())
    return f"Line {number}" + (f": `{text}`" if text else "")


def within_time(call):
    """What `call` returns. A call of a student's function in it that takes more than SECONDS is stopped, with Endless.

    Only in the main thread, where signals arrive. The alarm of somebody else, as of a test's time limit, goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()
    began, watch, stopped, ours = time.monotonic(), CallWatch(SECONDS), None, sys._getframe()

    def look(_, frame):
        nonlocal stopped
        frames = students_frames(frame, ours)
        stopped = stopped or watch.look(frames)
        signal.setitimer(signal.ITIMER_REAL, BURST if stopped else SECONDS / 20)  # a slow machine may still be here
        if stopped and frames:
            raise stopped.with_traceback(None)

    handler = signal.signal(signal.SIGALRM, look)
    before, interval = signal.setitimer(signal.ITIMER_REAL, SECONDS / 20)
    try:
        found = call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        if stopped is not None:
            time.sleep(0.02)  # for the last signal, which another thread may have taken: nobody else must get it
        # A signal that is still on its way would end the kernel where nobody handles it.
        signal.signal(signal.SIGALRM, (lambda *_: None) if handler is signal.SIG_DFL else handler)
        if before:
            signal.setitimer(signal.ITIMER_REAL, max(before - (time.monotonic() - began), 1e-3), interval)
    if stopped is not None:  # it was caught on its way, and the function came to an end after all
        raise stopped
    return found


class CallWatch:
    """Looks now and then at the student's frames of a thread, and tells when one call of theirs has become too long."""

    def __init__(self, seconds):
        self._seconds, self._call, self._since = seconds, None, 0.0

    def look(self, frames):
        """Endless, to be raised, for a call that has lasted for so many seconds, else None. frames: of
        `students_frames`."""
        if not frames:
            self._call = None
        elif self._call is not frames[-1]:
            self._call, self._since = frames[-1], time.monotonic()
        elif time.monotonic() - self._since >= self._seconds:
            return Endless(_line(frames[0].f_code.co_filename, frames[0].f_lineno))
        return None


def students_frames(frame, end=None):
    """The student's frames from this one outwards to `end`, where the judging began; none during an import."""
    found = []
    while frame is not None and frame is not end:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return []
        if not installed(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found
