"""A batch script for a cluster (T5): the second part of 05."""
