"""ResNet152V2: what it costs, its script, its largest batch, its runs (T7 to T9)."""
