"""What a network needs, computed from its Keras model: parameters, gradient, multiply-adds, activation memory.

`of` asks by name, `from_model` of a model whose layers are those of the course's networks. Nothing is trained, and `of`
builds the network in a process of its own, with shapes alone: no weights, no GPU.
"""

import functools
import inspect
import json
import math
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from labs import compat, models
from labs.errors import UseError, whole

if TYPE_CHECKING:
    import keras

FLOAT32 = 4  # bytes
# What gradients read again, from TensorFlow's operations (their gradients: tensorflow/python/ops/*_grad.py): "i": the
# layer's inputs, "o": its output.
_KEPT = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2D", "Dense", "BatchNormalization"), "i"),
    **{"MaxPooling2D": "io", "ReLU": "o"},
    **dict.fromkeys("InputLayer Add ZeroPadding2D GlobalAveragePooling2D Flatten Activation".split(), ""),
    **dict.fromkeys(("Rescaling", "Resizing"), ""),
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
    layers: that have weights, those of batch normalisation too.
    """

    model: str
    image_size: int
    classes: int
    parameters: int
    trainable: int
    gradient_bytes: int
    tensors: int
    tensor_bytes: tuple[int, ...]
    multiply_adds: int
    activation_bytes: int
    layers: int


@functools.cache
def of(name: str, image_size: int = 224, classes: int = 1000) -> Facts:
    """Facts of a network of keras.applications (by its function's name, as "ResNet50V2") or of "SmallCNN".

    The first time takes some seconds, in which a new process builds the network for images of image_size x image_size x
    3, so that this one loads no TensorFlow and its devices stay as they are.
    Raises UseError: unknown name, a size for which the network cannot be built, or one with layers not known here.
    """
    asked = [name, whole("image_size", image_size), whole("classes", classes)]
    code = "import json, sys; from lessons import counts; counts.answer(*json.loads(sys.argv[1]))"
    command = [sys.executable, "-c", code, json.dumps(asked)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise UseError((done.stderr.strip().splitlines() or [f"{name} was not counted: its process ended"])[-1])
    facts = json.loads(done.stdout.splitlines()[-1])
    return Facts(**facts | {"tensor_bytes": tuple(facts["tensor_bytes"])})


def answer(name: str, image_size: int, classes: int) -> None:
    """Print the facts as one line of JSON; SystemExit says why there are none."""
    import keras

    build: Any = getattr(keras.applications, name, None)
    if not inspect.isfunction(build) and name not in models.NAMES:
        sys.exit(f"No network is called {name!r}. Give a name as in keras.applications: ResNet50V2.")
    try:
        with keras.StatelessScope(initialize_variables=False):  # shapes, without memory for the weights
            if name in models.NAMES:
                model = models.network(name, image_size, classes)
            else:
                model = build(weights=None, input_shape=(image_size, image_size, 3), classes=classes)
        facts = from_model(model)
    except (UseError, ValueError) as problem:  # Keras speaks of shapes: say of which network
        reason = " ".join(str(problem).split())
        sys.exit(f"{name} cannot be counted for {image_size}x{image_size} and {classes} classes: {reason}")
    print(json.dumps(asdict(replace(facts, model=name, image_size=image_size, classes=classes))))


def from_model(model: "keras.Model") -> Facts:
    """Facts of a Keras model that is a graph of layers (Functional, or Sequential that has seen a shape).

    Activations are counted as if every layer were trained. image_size is the first dimension of the (first) input,
    classes the last of the (first) output. Raises UseError: a model of one's own class, a Sequential that is not
    built, an input without a fixed size, or a layer that is not known here.
    """
    graph = compat.graph(model)
    if not graph:
        raise UseError(
            f"{getattr(model, 'name', model)!r} is no graph of layers, so nothing can be counted: build "
            "it for one size of images, as with model.build((None, 224, 224, 3))."
        )
    calls, kept = list(_calls(graph, {})), {}
    for call in calls:
        kept |= _kept(*call)
    tensor_bytes = tuple(FLOAT32 * math.prod(w.shape) for w in model.trainable_weights)
    return Facts(
        model=model.name,
        image_size=graph.inputs[0].shape[1],
        classes=graph.outputs[0].shape[-1],
        parameters=sum(math.prod(w.shape) for w in model.weights),
        trainable=sum(tensor_bytes) // FLOAT32,
        gradient_bytes=sum(tensor_bytes),
        tensors=len(tensor_bytes),
        tensor_bytes=tensor_bytes,
        multiply_adds=sum(_multiply_adds(*call) for call in calls),
        activation_bytes=sum(kept.values()),
        layers=len({id(layer) for layer, *_ in calls if getattr(layer, "weights", None)}),
    )


def _calls(model, same, scope=()):
    """(layer, inputs, outputs) of each call of a layer, nested models opened; a tensor is (key, values per image).

    same: key of a tensor that is another's memory: it passes into or out of a nested model, or is handed on unchanged.
    scope: the calls of nested models that led here, part of the key, for a model may be called twice.
    """

    def key(tensor, scope=scope):
        return same.get((scope, id(tensor)), (scope, id(tensor)))

    for node in compat.calls(compat.graph(model)):
        layer, inputs, outputs = node.operation, node.input_tensors, node.output_tensors
        if inner := compat.graph(layer):
            deeper = (*scope, id(node))
            same |= {(deeper, id(tensor)): key(outside) for tensor, outside in zip(inner.inputs, inputs, strict=True)}
            yield from _calls(inner, same, deeper)
            same |= {(scope, id(t)): key(inside, deeper) for t, inside in zip(outputs, inner.outputs, strict=True)}
            continue
        if type(layer).__name__ == "Flatten":
            same |= {(scope, id(tensor)): key(inputs[0]) for tensor in outputs}
        if any(None in tensor.shape[1:] for tensor in (*inputs, *outputs)):
            raise UseError(f"{layer.name} has a tensor of unknown size: build {model.name} for one image size.")
        yield layer, *([(key(t), math.prod(t.shape[1:])) for t in tensors] for tensors in (inputs, outputs))


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
