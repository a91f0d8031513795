"""Why many devices, and how to divide the work (T1)."""
