"""Where the weights live (T3)."""
