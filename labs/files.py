"""Writing files so that nobody ever reads half of one."""

import contextlib
import os
import tempfile
from pathlib import Path

from labs.errors import LabsError


class WriteError(LabsError, OSError):
    """A file that cannot be written; the message names it and why."""

    def __str__(self):
        return f"{self.filename} cannot be written: {self.strerror}."


def write(path, text):
    """Replace the file `path` by `text` (UTF-8, or bytes), atomically, and make its folder if there is none.

    Who reads it sees the old text or the new one, also after a kill or on a full disk. Raises WriteError; an older
    file then stays as it was.
    """
    path, partial = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except OSError as problem:
        raise WriteError(problem.errno, problem.strerror or str(problem), str(path)) from None
    finally:
        if partial:
            with contextlib.suppress(OSError):
                os.unlink(partial)  # what a success has moved is not there any more
