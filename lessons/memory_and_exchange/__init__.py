"""Memory and exchange: precision, recomputing, accumulating, a sharded optimizer."""
