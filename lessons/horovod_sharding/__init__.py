"""Shards (S1)."""
