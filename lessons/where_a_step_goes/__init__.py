"""Where a step goes: waiting, its parts, overlap, predictions (optional)."""
