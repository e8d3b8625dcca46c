"""Twenty models of many kinds: networks for vision and reading text, and made ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import synthetic
from benchmarks.models import model_files
from crosschip.ir import Array


@dataclass(frozen=True, slots=True)
class Zooling:
    """A model of the collection.

    Attributes:
        name: what it is called.
        kind: what it is for.
        path: its `.onnx` file.
        inputs: inputs that fit it.
    """

    name: str
    kind: str
    path: Path
    inputs: Mapping[str, Array]


_READING = ("PP-OCRv4 det", "PP-OCRv4 rec", "PP-OCR cls")
_QUANTIZED = ("SqueezeNet 1.1", "ShuffleNetV2 1.0", "MobileNetV1", "PP-OCR cls")


def zoo(folder: Path) -> Iterator[Zooling]:
    """All of them; what there is no file of is written into a folder."""
    files = {file.network: file for file in model_files() if file.format == ".onnx"}
    for network, file in files.items():
        kind = "reading text" if network in _READING else "vision"
        yield Zooling(network, kind, file.path, file.oracle(1).inputs)
    for number, (name, (kind, write, shape)) in enumerate(_MADE.items()):
        path = folder / f"made-{number}.onnx"
        write(path)
        random = np.random.default_rng(0)
        first = onnx.load(path).graph.input[0].name
        yield Zooling(name, kind, path, {first: random.standard_normal(shape, np.float32)})
    for network in _QUANTIZED:
        source, inputs = files[network].path, files[network].oracle(1).inputs
        path = folder / f"{source.stem}-quantized.onnx"
        _quantize(source, path, inputs)
        yield Zooling(f"{network}, 8 bits", "quantized", path, inputs)


class _Graph:
    """An ONNX graph in the making, with random weights."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._random = np.random.default_rng(0)
        self._shape = shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def weights(self, *shape: int) -> str:
        scale = (2 / np.prod(shape[1:])) ** 0.5 if len(shape) > 1 else 0.1
        return self.constant((self._random.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, array: Array) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(type, inputs, [name], **attributes))
        return name

    def write(self, last: str, path: Path) -> None:
        ends = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, self._shape),
            helper.make_tensor_value_info(last, TensorProto.FLOAT, None),
        ]
        graph = helper.make_graph(self._nodes, "made", ends[:1], ends[1:], self._constants)
        opset = helper.make_operatorsetid("", 20)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)

    def transformed(self, x: str, words: int, width: int, heads: int) -> str:
        """A layer of a transformer: attention, then two dense layers, each added and normalized."""

        def dense(x: str, into: int, out: int) -> str:
            return self.add(
                "Add", self.add("MatMul", x, self.weights(into, out)), self.weights(out)
            )

        def split(x: str) -> str:
            shape = self.constant(np.array([1, words, heads, width // heads], np.int64))
            return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

        def normal(x: str) -> str:
            one = self.constant(np.ones(width, np.float32))
            return self.add("LayerNormalization", x, one, self.weights(width))

        query, key, value = (split(dense(x, width, width)) for _ in range(3))
        marks = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 1, 3, 2]))
        root = self.constant(np.array((width / heads) ** 0.5, np.float32))
        mixed = self.add("MatMul", self.add("Softmax", self.add("Div", marks, root)), value)
        joined = self.constant(np.array([1, words, width], np.int64))
        mixed = self.add("Reshape", self.add("Transpose", mixed, perm=[0, 2, 1, 3]), joined)
        x = normal(self.add("Add", x, dense(mixed, width, width)))
        inner = self.add("Gelu", dense(x, width, 4 * width))
        return normal(self.add("Add", x, dense(inner, 4 * width, width)))


def transformer(path: Path, layers: int, words: int, width: int, heads: int) -> None:
    """Write an encoder of vectors, `[1, words, width]`."""
    graph = _Graph((1, words, width))
    x = "x"
    for _ in range(layers):
        x = graph.transformed(x, words, width, heads)
    graph.write(x, path)


def _vision_transformer(path: Path) -> None:
    graph = _Graph((1, 3, 224, 224))
    patches = graph.add("Conv", "x", graph.weights(192, 3, 16, 16), strides=[16, 16])
    flat = graph.add("Reshape", patches, graph.constant(np.array([1, 192, 196], np.int64)))
    x = graph.add("Transpose", flat, perm=[0, 2, 1])
    for _ in range(4):
        x = graph.transformed(x, 196, 192, 3)
    graph.write(x, path)


def _perceptron(path: Path) -> None:
    graph = _Graph((1, 784))
    x = "x"
    for into, out in ((784, 1024), (1024, 1024), (1024, 10)):
        x = graph.add("Relu", graph.add("Gemm", x, graph.weights(into, out), graph.weights(out)))
    graph.write(x, path)


def _convolutions(path: Path) -> None:
    graph = _Graph((1, 3, 64, 64))
    x, into = "x", 3
    for out in (16, 32, 64):
        x = graph.add("Conv", x, graph.weights(out, into, 3, 3), graph.weights(out), pads=[1] * 4)
        x = graph.add("MaxPool", graph.add("Relu", x), kernel_shape=[2, 2], strides=[2, 2])
        into = out
    graph.write(graph.add("GlobalAveragePool", x), path)


_MADE: Mapping[str, tuple[str, Callable[[Path], None], tuple[int, ...]]] = {
    "transformer, 2 layers of 64": (
        "transformer",
        partial(transformer, layers=2, words=16, width=64, heads=4),
        (1, 16, 64),
    ),
    "transformer, 4 layers of 256": (
        "transformer",
        partial(transformer, layers=4, words=64, width=256, heads=8),
        (1, 64, 256),
    ),
    "transformer, 2 layers of 768": (
        "transformer",
        partial(transformer, layers=2, words=128, width=768, heads=12),
        (1, 128, 768),
    ),
    "vision transformer": ("transformer", _vision_transformer, (1, 3, 224, 224)),
    "perceptron": ("made", _perceptron, (1, 784)),
    "convolutions": ("made", _convolutions, (1, 3, 64, 64)),
    "chain of 100": (
        "made",
        lambda path: synthetic.write_onnx(synthetic.chain(100), path),
        synthetic.SHAPE,
    ),
}


def _quantize(source: Path, path: Path, inputs: Mapping[str, Array]) -> None:
    """Write a model in eight bits, as pairs of conversions, with ranges as one input shows them."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Once(CalibrationDataReader):  # type: ignore[misc]  # it has no types
        left = iter([dict(inputs)])

        def get_next(self) -> dict[str, Array] | None:
            return next(self.left, None)

    quantize_static(
        source,
        path,
        Once(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=False,
    )
