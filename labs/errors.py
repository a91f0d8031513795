"""What is the user's to mend. The command line turns these, and only these, into one line and an exit code."""


class LabsError(Exception):
    """Something that the reader of the message can mend: what happened, why it matters, what to do.

    Rooms derive their own errors from it. `code` is the exit code of the command line: 2 for wrong use, 1 for a problem
    that was found or met on the way.
    """

    code = 1


class UseError(LabsError):
    """What was asked for cannot be done: wrong use."""

    code = 2


class HorovodError(LabsError):
    """Horovod would fail, hang or train something else than is meant; the message says why and what to do."""
