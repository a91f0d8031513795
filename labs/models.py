"""The networks of the course for one image size."""

from typing import TYPE_CHECKING

from labs.errors import UseError

if TYPE_CHECKING:
    import keras

APPLICATIONS = ("ResNet50V2", "ResNet101V2", "ResNet152V2")
NAMES = (*APPLICATIONS, "SmallCNN")


def preprocessing(image_size: int) -> "keras.Sequential":
    """The layers that turn images into what the networks take.

    From uint8 images (N x H x W x 3) to floats in [-1, 1] (N x S x S x 3). They stand in the model, not in the input
    pipeline: so small uint8 images travel to the worker, and each worker resizes its own share (S = `image_size`,
    pixels).
    """
    import keras

    layers = [keras.layers.Rescaling(1 / 127.5, offset=-1.0), keras.layers.Resizing(image_size, image_size)]
    return keras.Sequential(layers, name="preprocessing")


def small_cnn(image_size: int, classes: int) -> "keras.Sequential":
    """Three convolutions with batch normalisation and one dense layer: starts fast, for tests of the tools."""
    import keras
    from keras import layers

    model = keras.Sequential(name="SmallCNN")
    model.add(keras.Input((image_size, image_size, 3)))
    for filters in (16, 32, 64):
        model.add(layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(classes, activation="softmax"))
    return model


def check_size(name: str, image_size: int) -> None:
    """Raise UseError if there is no network `name` for images of image_size x image_size pixels."""
    if name not in NAMES:
        raise UseError(f"Unknown model {name!r}: this course trains {', '.join(NAMES)}. Check the spelling.")
    least = 32 if name in APPLICATIONS else 8
    if image_size < least:
        raise UseError(
            f"{name} needs images of at least {least}x{least}, not {image_size}x{image_size}: "
            f"pass --image_size {least} or more."
        )


def network(name: str, image_size: int, classes: int) -> "keras.Model":
    """An untrained network of the course, without preprocessing.

    name: one of NAMES; it takes images of image_size x image_size x 3 and tells `classes` classes apart. Raises
    UseError: see `check_size`.
    """
    check_size(name, image_size)
    if name == "SmallCNN":
        return small_cnn(image_size, classes)
    import keras

    build = getattr(keras.applications, name)
    return build(include_top=True, weights=None, input_shape=(image_size, image_size, 3), classes=classes)


def build(name: str, image_size: int, classes: int) -> "keras.Sequential":
    """Preprocessing and an untrained network as one model.

    It takes uint8 images (N x H x W x 3) and gives class probabilities (N x classes).
    name: one of NAMES; image_size: pixels per side that the network sees. Raises UseError: see `check_size`.
    """
    import keras

    trained = network(name, image_size, classes)
    return keras.Sequential([preprocessing(image_size), trained], name=name)
