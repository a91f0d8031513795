"""The widgets of the student notebooks in a real browser. benchmarks/widgets_latency.py uses `lab` and `keys`, too."""
