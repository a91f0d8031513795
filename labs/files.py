"""Writing files so that nobody ever reads half of one."""

import contextlib
import os
import tempfile
from pathlib import Path


def write(path, text):
    """Replace the file `path` by `text` (UTF-8), atomically, and make its folder if there is none.

    Who reads it sees the old text or the new one, also after a kill or on a full disk. Raises OSError; an older file
    then stays as it was.
    """
    path, partial = Path(path), None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except BaseException:
        if partial:
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise
