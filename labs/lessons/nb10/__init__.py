"""Notebook 10: its questions, pictures and the small programs that it measures."""
