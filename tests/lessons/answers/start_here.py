"""Answers to the self-checks of 00_start_here: right ones, and wrong ones that students give."""

ANSWERS = {
    "start.1": dict(right=[(" Core ",), ("a CPU core",)], wrong=[("gpu",), ("cpu",), ("process",)], secret=r"\bcore")
}
