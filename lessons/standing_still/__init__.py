"""Jobs that stand still, or seem to: who waits for whom, and why."""
