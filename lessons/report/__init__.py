"""A report that can be trusted: faults found in another one, and your own reviewed and handed in (T11)."""
