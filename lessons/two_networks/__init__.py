"""ResNet152V2 against ResNet50V2 (T10)."""
