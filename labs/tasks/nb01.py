"""Questions of 01_basic_concepts (T1)."""
