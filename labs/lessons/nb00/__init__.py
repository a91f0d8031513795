"""Where you are: what this machine has, and your progress."""
