"""ResNet50V2 on 1, 2 and more workers (T6)."""
