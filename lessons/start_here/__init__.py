"""Where you are: the map of the course, this machine, and a first measurement on it."""
