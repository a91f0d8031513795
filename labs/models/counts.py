"""What a network needs, computed from its Keras model: parameters, gradient, multiply-adds, activation memory.

`of` asks by name and keeps the answer in a cache folder; `from_model` counts any model with a graph of layers. Nothing
is trained, and `of` builds the network in a process of its own, with shapes alone: no weights, no GPU.
"""

import difflib
import hashlib
import inspect
import json
import math
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from labs import compat, files
from labs.errors import UseError
from labs.models import networks

if TYPE_CHECKING:
    import keras

FLOAT32 = 4  # bytes


class FactsError(UseError):
    """No such network, an image size that it cannot take, or a model that cannot be counted."""


@dataclass(frozen=True)
class Facts:
    """What one network needs, with all values in float32.

    gradient_bytes, tensor_bytes: of the trainable weights, whole and one by one, in the model's order.
    multiply_adds: of one image, forward, in convolutions and dense layers: see `_multiply_adds`. Bias, normalisation,
        pooling, activations and element-wise layers count 0, as in published tables.
    activation_bytes: of one image: every tensor that the gradients of a training step read again, once each, by the
        rules of `_KEPT`; gradients of activations and the operations' workspaces are left out.
    layers: that have weights, those of batch normalisation too.
    uncounted: types of layers that this module does not know; with any, multiply_adds may be too low.
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
    uncounted: tuple[str, ...]


def of(name: str, image_size: int = 224, classes: int = 1000) -> Facts:
    """Facts of a network of keras.applications (by its function's name, as "ResNet50V2") or of "SmallCNN".

    The first time takes some seconds, in which Keras builds the network for images of image_size x image_size x 3; the
    answer is kept below $LABS_CACHE, or else in the user's cache folder, until Keras or this code changes.
    Raises FactsError: unknown name, or a size for which the network cannot be built.
    """
    for what, value in (("image_size", image_size), ("classes", classes)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise FactsError(f"{what} is {value!r}, which counts nothing. Give a whole number, 1 or more.")
    folder = os.environ.get("LABS_CACHE") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    file = re.sub(r"\W", "_", f"{name}_{image_size}_{classes}") + ".json"
    path = Path(os.path.expanduser(folder), "labs", "facts", file)
    code = b"".join(Path(module).read_bytes() for module in (__file__, networks.__file__, compat.__file__))
    key = f"keras {metadata.version('keras')}, code {hashlib.sha256(code).hexdigest()[:16]}"
    with suppress(OSError, ValueError, KeyError, TypeError):  # no file, or not what was written
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["key"] == key:
            return _facts(kept["facts"])
    found = _elsewhere(name, image_size, classes)
    with suppress(OSError):  # a full or read-only disk costs no more than counting again
        files.write(path, json.dumps({"key": key, "facts": asdict(found)}))
    return found


def from_model(model: "keras.Model") -> Facts:
    """Facts of a Keras model that is a graph of layers (Functional, or Sequential that has seen a shape).

    Activations are counted as if every layer were trained. image_size is the first dimension of the (first) input,
    classes the last of the (first) output. Raises FactsError: a model of one's own class, a Sequential that is not
    built, or an input without a fixed size.
    """
    graph = compat.graph(model)
    if not graph:
        raise FactsError(
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
        uncounted=tuple(sorted({type(layer).__name__ for layer, *_ in calls if _kind(layer) not in _KEPT})),
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
        if _kind(layer) in ("Flatten", "Reshape") or (_kind(layer), _activation(layer)) == ("Activation", "linear"):
            same |= {(scope, id(tensor)): key(inputs[0]) for tensor in outputs}
        if any(None in tensor.shape[1:] for tensor in (*inputs, *outputs)):
            raise FactsError(f"{layer.name} has a tensor of unknown size: build {model.name} for one image size.")
        yield layer, *([(key(t), math.prod(t.shape[1:])) for t in tensors] for tensors in (inputs, outputs))


def _kind(layer):
    return re.sub(r"\dD", "", type(layer).__name__)  # Conv2DTranspose -> ConvTranspose


def _activation(layer):
    activation = getattr(layer, "activation", None)
    return "linear" if activation is None else getattr(activation, "__name__", type(activation).__name__)


def _multiply_adds(layer, inputs, outputs):
    """Multiply-adds of one call for one image; every product with a kernel counts, also those with padding's zeros.

    Convolution: kernel (k x k x channels/groups x filters) x output positions; depthwise: k x k x output values;
    separable: one after the other (F. Chollet, CVPR 2017); transposed: kernel x input positions (V. Dumoulin and
    F. Visin, arXiv 1603.07285); dense: inputs x units x positions. Strides, padding and dilation act through the
    output's size. Source: A. Howard and others, MobileNets, arXiv 1704.04861, section 3.1.
    """
    kind, source, result = _kind(layer), inputs[0][1] if inputs else 0, outputs[0][1]
    if kind == "Dense":
        return source * layer.units
    if kind == "ConvTranspose":
        return source * math.prod(layer.kernel_size) * layer.filters
    if kind == "DepthwiseConv":
        return result * math.prod(layer.kernel_size)
    if kind not in ("Conv", "SeparableConv"):
        return 0
    kernels = (layer.kernel,) if kind == "Conv" else (layer.depthwise_kernel, layer.pointwise_kernel)
    return result // layer.filters * sum(math.prod(kernel.shape) for kernel in kernels)


# What gradients read again, from TensorFlow's operations (their gradients: tensorflow/python/ops/*_grad.py).
# "i": the layer's inputs, "o": its output, a digit: so many more tensors of the output's size, made inside.
_KEPT = {
    **dict.fromkeys("Conv DepthwiseConv SeparableConv ConvTranspose Dense".split(), "i"),
    **dict.fromkeys(("BatchNormalization", "Multiply", "LayerScale"), "i"),
    "LayerNormalization": "i1",
    "MaxPooling": "io",
    **dict.fromkeys(("ReLU", "Softmax"), "o"),
    **dict.fromkeys("InputLayer Add Subtract Average Concatenate ZeroPadding Cropping AveragePooling".split(), ""),
    **dict.fromkeys("GlobalAveragePooling UpSampling Rescaling Resizing Normalization Flatten Reshape".split(), ""),
    **dict.fromkeys(("Dropout", "Activation", "CustomScaleLayer"), ""),
}
_ACTIVATIONS = {
    **dict.fromkeys("relu relu6 sigmoid tanh softmax elu".split(), "o"),
    **{"linear": "", "silu": "i", "hard_sigmoid": "1", "hard_silu": "i2", "gelu": "3"},
}


def _kept(layer, inputs, outputs):
    """{key: bytes per image} of the tensors that the gradients of one call read; of a layer unknown here, all."""
    kind = _kind(layer)
    rule, activation = _KEPT.get(kind, "io"), _ACTIVATIONS.get(_activation(layer), "io")
    rule += activation if kind == "Activation" else activation.replace("i", "1")  # "1": that input is made inside
    kept = {key: FLOAT32 * values for key, values in inputs * ("i" in rule) + outputs * ("o" in rule)}
    values = sum(values for _, values in outputs)
    inside = FLOAT32 * values * sum(int(mark) for mark in rule if mark.isdigit())
    if kind == "SeparableConv":  # what is between its two convolutions
        inside += FLOAT32 * (values // layer.filters) * layer.pointwise_kernel.shape[-2]
    if kind == "Dropout" and layer.rate and not layer.noise_shape:
        inside += values  # the mask, a byte each
    return kept | ({("inside", outputs[0][0]): inside} if inside else {})


def memory(model: "keras.Model", batch: int, optimizer_slots: int = 0) -> dict[str, int]:
    """Memory of one training step in float32 by part, in bytes: weights, gradients, optimizer, activations.

    batch: images that one worker takes in a step
    optimizer_slots: values that the optimizer keeps per trainable weight (SGD 0, SGD with momentum 1, Adam 2)

    weights: all variables; gradients: one value per trainable weight; activations: what backward needs kept of the
    batch, within 25 % of measured steps; workspaces of convolutions need more: the search for the largest batch
    measures the truth. Only the activations grow with the batch.
    Raises FactsError for a model that has not seen the shape of an image.
    """
    found = from_model(model)
    return {
        "weights": FLOAT32 * found.parameters,
        "gradients": found.gradient_bytes,
        "optimizer": optimizer_slots * found.gradient_bytes,
        "activations": found.activation_bytes * batch,
    }


def _facts(known):
    return Facts(**known | {field: tuple(known[field]) for field in ("tensor_bytes", "uncounted")})


_COUNT = "import json, sys; from labs.models import counts; counts.answer(*json.loads(sys.argv[1]))"


def _elsewhere(name, image_size, classes):
    """Facts from a new process, so that this one loads no TensorFlow and its devices stay as they are."""
    command = [sys.executable, "-c", _COUNT, json.dumps([str(name), image_size, classes])]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise FactsError(
            f"{name} was not counted: the process that builds it ended with status {done.returncode} and "
            f"said: {(done.stderr.strip().splitlines() or ['nothing'])[-1]}"
        )
    answer = json.loads(done.stdout.splitlines()[-1])
    if "error" in answer:
        raise FactsError(answer["error"])
    return _facts(answer)


def _build(name, image_size, classes):
    """The network, with shapes but without memory for its weights."""
    import keras

    known = {key: value for key, value in vars(keras.applications).items() if inspect.isfunction(value)}
    lower = {key.lower(): key for key in (*known, "SmallCNN")}
    if name not in lower.values():
        near = [lower[key] for key in difflib.get_close_matches(name.lower(), lower)]
        advice = f"Did you mean {' or '.join(near)}?" if near else "Give a name as in keras.applications: ResNet50V2."
        raise FactsError(f"No network is called {name!r}. {advice}")
    with keras.StatelessScope(initialize_variables=False):
        if name == "SmallCNN":
            return networks.network(name, image_size, classes)
        return known[name](weights=None, input_shape=(image_size, image_size, 3), classes=classes)


def answer(name, image_size, classes):
    """Print the facts, or {"error": text}, as one line of JSON."""
    try:
        found = from_model(_build(name, image_size, classes))
        told = asdict(replace(found, model=name, image_size=image_size, classes=classes))
    except FactsError as problem:
        told = {"error": str(problem)}
    except (networks.ModelError, ValueError) as problem:  # Keras speaks of shapes: say of which network
        reason = " ".join(str(problem).split())
        told = {"error": f"{name} cannot be built for {image_size}x{image_size} and {classes} classes: {reason}"}
    print(json.dumps(told))
