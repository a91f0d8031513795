"""Questions of 00_start_here."""

from labs import devices
from lessons.forms import value


def _here():
    return "gpu" if devices.gpus() else "core"


value(
    "start.1",
    right=[_here, lambda: f"a {_here()}", lambda: f"CPU {_here()}", lambda: f"a CPU {_here()}", lambda: f"{_here()}s"],
    wrong=[
        (["process", "machine", "node", "thread"], "That need not be a worker. Look at the GPUs row of the table."),
        ("cpu", "A CPU can contain several workers. What does the GPUs row of the doctor's table say?"),
        (lambda: "core" if devices.gpus() else "gpu", "That is right on other machines. Look again at the GPUs row."),
    ],
    otherwise='Write "gpu" or "core": the GPUs row of the doctor\'s table says which of the two a worker is here.',
)
