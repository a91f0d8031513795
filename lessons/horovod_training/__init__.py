"""From one process to many (H1)."""
