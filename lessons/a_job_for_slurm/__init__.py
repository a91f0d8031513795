"""A batch script for a cluster (T5)."""
