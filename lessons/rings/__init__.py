"""Many workers, one network (T2)."""
