"""What a network needs, computed from its Keras model: parameters, gradient, multiply-adds, activation memory.

`of` asks by name, `from_model` of a model whose layers are those of the course's networks. Nothing is trained, and `of`
builds the network in a process of its own, with shapes alone: no weights, no GPU.
"""

import functools
import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from labs import compat, models
from labs.errors import UseError

if TYPE_CHECKING:
    import keras

FLOAT32 = 4  # bytes
# What gradients read again, from TensorFlow's operations (their gradients: tensorflow/python/ops/*_grad.py): "i": the
# layer's inputs, "o": its output.
_KEPT = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2D", "Dense", "BatchNormalization"), "i"),
    **{"MaxPooling2D": "io", "ReLU": "o"},
    **dict.fromkeys("InputLayer Rescaling Add ZeroPadding2D GlobalAveragePooling2D Flatten Activation".split(), ""),
}
_ACTIVATIONS = {"linear": "", "relu": "o", "softmax": "o"}


@dataclass(frozen=True)
class Facts:
    """What one network needs, with all values in float32.

    gradient_bytes, tensor_bytes: of the trainable weights, whole and one by one, in the model's order.
    multiply_adds: of one image, forward, in convolutions and dense layers: see `_multiply_adds`. Bias, normalisation,
        pooling, activations and element-wise layers count 0, as in published tables.
    activation_bytes: of one image: every tensor that the gradients of a training step read again, once each, by the
        rules of `_KEPT`; gradients of activations and the operations' workspaces are left out.
    """

    model: str
    parameters: int
    trainable: int
    gradient_bytes: int
    tensors: int
    tensor_bytes: list[int]
    multiply_adds: int
    activation_bytes: int


@functools.cache
def of(name: str, image_size: int = 224, classes: int = 1000) -> Facts:
    """Facts of a network of keras.applications (by its function's name, as "ResNet50V2") or of "SmallCNN".

    The first time takes some seconds, in which a new process builds the network for images of image_size x image_size x
    3, so that this one loads no TensorFlow and its devices stay as they are.
    Raises UseError: unknown name, a size for which the network cannot be built, or one with layers not known here.
    """
    code = "import json, sys; from lessons import counts; counts.answer(*json.loads(sys.argv[1]))"
    command = [sys.executable, "-c", code, json.dumps([name, image_size, classes])]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        said = done.stderr.strip().rpartition("\n")[2] or "its process ended"
        raise UseError(f"{name} cannot be counted for {image_size}x{image_size} and {classes} classes: {said}")
    return Facts(**json.loads(done.stdout.splitlines()[-1]))


def answer(name: str, image_size: int, classes: int) -> None:
    """Print the facts as one line of JSON."""
    import keras

    with keras.StatelessScope(initialize_variables=False):  # shapes, without memory for the weights
        if name in models.NAMES:
            model = models.network(name, image_size, classes)
        else:
            build = getattr(keras.applications, name)
            model = build(weights=None, input_shape=(image_size, image_size, 3), classes=classes)
    print(json.dumps(asdict(from_model(model)) | {"model": name}))


def from_model(model: "keras.Model") -> Facts:
    """Facts of a Keras model that is a graph of layers (Functional, or Sequential that has seen a shape).

    Activations are counted as if every layer were trained. Raises UseError: a layer that is not known here.
    """
    calls, kept = list(_calls(model)), {}
    for call in calls:
        kept |= _kept(*call)
    tensor_bytes = [FLOAT32 * math.prod(w.shape) for w in model.trainable_weights]
    return Facts(
        model=model.name,
        parameters=model.count_params(),
        trainable=sum(tensor_bytes) // FLOAT32,
        gradient_bytes=sum(tensor_bytes),
        tensors=len(tensor_bytes),
        tensor_bytes=tensor_bytes,
        multiply_adds=sum(_multiply_adds(*call) for call in calls),
        activation_bytes=sum(kept.values()),
    )


def _calls(model):
    """(layer, inputs, outputs) of each call of a layer; a tensor is (key, values per image). The tensor that a Flatten
    hands on is the memory of its input, and has its key."""
    same = {}

    def sized(tensors):
        return [(same.get(id(tensor), id(tensor)), math.prod(tensor.shape[1:])) for tensor in tensors]

    for node in compat.calls(compat.graph(model)):
        layer, inputs, outputs = node.operation, node.input_tensors, node.output_tensors
        if type(layer).__name__ == "Flatten":
            same[id(outputs[0])] = id(inputs[0])
        yield layer, sized(inputs), sized(outputs)


def _multiply_adds(layer, inputs, outputs):
    """Multiply-adds of one call for one image; every product with a kernel counts, also those with padding's zeros.

    Convolution: kernel (k x k x channels x filters) x output positions; depthwise: k x k x output values; dense: inputs
    x units. Strides and padding act through the output's size. Source: A. Howard and others, MobileNets, arXiv
    1704.04861, section 3.1.
    """
    kind, values = type(layer).__name__, outputs[0][1]
    if kind == "Dense":
        return inputs[0][1] * layer.units
    if kind == "DepthwiseConv2D":
        return values * math.prod(layer.kernel_size)
    return values // layer.filters * math.prod(layer.kernel.shape) if kind == "Conv2D" else 0


def _kept(layer, inputs, outputs):
    """{key: bytes per image} of the tensors that the gradients of one call read. Raises UseError: unknown here."""
    kind, activation = type(layer).__name__, getattr(layer, "activation", None)
    function = getattr(activation, "__name__", "linear")
    if kind not in _KEPT or function not in _ACTIVATIONS:
        raise UseError(f"{layer.name} is a {kind} ({function}), of which this module does not know what it keeps.")
    rule = _KEPT[kind] + _ACTIVATIONS[function]
    return {key: FLOAT32 * values for key, values in inputs * ("i" in rule) + outputs * ("o" in rule)}


def memory(model: "keras.Model", batch: int, optimizer_slots: int = 0) -> dict[str, int]:
    """Memory of one training step in float32 by part, in bytes: weights, gradients, optimizer, activations.

    batch: images that one worker takes in a step
    optimizer_slots: values that the optimizer keeps per trainable weight (SGD 0, SGD with momentum 1, Adam 2)

    weights: all variables; gradients: one value per trainable weight; activations: what backward needs kept of the
    batch, within 25 % of measured steps; workspaces of convolutions need more: the search for the largest batch
    measures the truth. Only the activations grow with the batch.
    Raises UseError: see `from_model`.
    """
    facts = from_model(model)
    return {
        "weights": FLOAT32 * facts.parameters,
        "gradients": facts.gradient_bytes,
        "optimizer": optimizer_slots * facts.gradient_bytes,
        "activations": facts.activation_bytes * batch,
    }
