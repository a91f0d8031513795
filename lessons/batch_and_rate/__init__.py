"""The largest batch, and the learning rate (T4)."""
