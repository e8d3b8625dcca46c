"""What images with their channels last cost.

MobileNetV1 with random weights, built twice: as calls of NNRt's functions, on which images and
filters have their channels last, with an operation for each activation; and of standard operators,
which have them on axis 1. Both are compiled by crosschip for the same device and run in turn, each
on an image as it wants it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated

import numpy as np

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.engines import engines
from benchmarks.subject import Column, Row
from crosschip import Builder
from crosschip.apis.nnrt import (
    Calls,
    OH_NN_DataType,
    OH_NN_OperationType,
    OH_NN_Tensor,
    OH_NN_TensorType,
    OperationCall,
)
from crosschip.bench.timing import Run
from crosschip.ir import Array, ElementType, Model, TensorType
from crosschip.ops.standard.activation import Relu6
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.convolution import Conv2D

LIMIT = 1.03
REQUIREMENT = f"channels last take at most {LIMIT:g} of the time of channels first"

_THREADS = 1
_CHANNELS = (32, 64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024)
_HALVED = (1, 3, 5, 11)
"""The blocks, from 0, that halve the image."""
_CLASSES = 1000


@dataclass(frozen=True)
class ChannelsLast(Row):
    """One device."""

    device: Annotated[str, Column("device")]
    first_ms: Annotated[float, Column("channels first ms", ".2f")]
    last_ms: Annotated[float, Column("channels last ms", ".2f")]
    ratio: Annotated[Estimate, Column("last over first", ".3f")]

    @property
    def met(self) -> bool:
        return self.ratio.value - self.ratio.error <= LIMIT


def measure(*, quick: bool) -> Iterator[ChannelsLast]:
    """Each device with an engine."""
    layers = list(layers_of_mobilenet())
    last = nnrt_calls(layers).replay().finished
    assert last is not None
    first = standard_model(layers)
    image = np.random.default_rng(1).normal(size=(1, 3, 224, 224)).astype(np.float32)
    stored = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    for device in engines():
        result = compare(
            partial(_run, first, device, image),
            partial(_run, last, device, stored),
            seconds=0.1 if quick else 1,
            blocks=2 if quick else 7,
            patience=0 if quick else 20,
        )
        yield ChannelsLast(device, result.ours_ms, result.direct_ms, result.ratio)


@dataclass(frozen=True, slots=True)
class Layer:
    """A convolution.

    Attributes:
        filters: of the shape [out, in of a group, height, width].
        bias: a number for each channel that it makes.
        stride: how far windows are apart.
        groups: the number of groups.
        activated: whether RELU6 follows.
    """

    filters: Array
    bias: Array
    stride: int = 1
    groups: int = 1
    activated: bool = True


def layers_of_mobilenet() -> Iterator[Layer]:
    """The layers of MobileNetV1 in front of its pooling, with random weights."""
    random = np.random.default_rng(0)

    def layer(out: int, into: int, size: int, stride: int = 1, groups: int = 1) -> Layer:
        spread = (2 / (into * size * size)) ** 0.5
        filters = random.normal(0, spread, (out, into, size, size)).astype(np.float32)
        return Layer(filters, random.normal(0, 0.1, out).astype(np.float32), stride, groups)

    yield layer(_CHANNELS[0], 3, 3, 2)
    for block, (into, out) in enumerate(pairwise(_CHANNELS)):
        yield layer(into, 1, 3, 2 if block in _HALVED else 1, into)
        yield layer(out, into, 1)


def _classifier() -> Layer:
    random = np.random.default_rng(2)
    filters = random.normal(0, 0.03, (_CLASSES, _CHANNELS[-1], 1, 1)).astype(np.float32)
    return Layer(filters, np.zeros(_CLASSES, np.float32), activated=False)


def standard_model(layers: Sequence[Layer]) -> Model:
    """The net of standard operators."""
    b = Builder("channels first")
    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 3, 224, 224)))
    for layer in [*layers, _classifier()]:
        if not layer.activated:
            x = b.add(AdaptiveAveragePool2D, x, (1, 1))
        pad = layer.filters.shape[2] // 2
        x = b.add(
            Conv2D,
            x,
            b.constant(layer.filters),
            b.constant(layer.bias),
            pads=(pad,) * 4,
            strides=(layer.stride,) * 2,
            group=layer.groups,
        )
        x = b.add(Relu6, x) if layer.activated else x
    b.output("y", x)
    return b.build()


def nnrt_calls(layers: Sequence[Layer]) -> Calls:
    """The net as calls of NNRt's functions."""
    return _Program(layers).calls


class _Program:
    def __init__(self, layers: Sequence[Layer]) -> None:
        self.calls = Calls()
        size = 224
        place = self._tensor(1, size, size, 3)
        self.calls.inputs = (place,)
        for layer in layers:
            size = -(-size // layer.stride)
            place = self._convolution(layer, place, size)
            place = self._add("RELU6", [place], 1, size, size, len(layer.bias))
        flag = self._parameter("AVG_POOL_GLOBAL", np.array(True))
        place = self._add("AVG_POOL", [place], 1, 1, 1, _CHANNELS[-1], parameters=[flag])
        self.calls.outputs = (self._convolution(_classifier(), place, 1),)

    def _convolution(self, layer: Layer, place: int, size: int) -> int:
        filters = np.ascontiguousarray(layer.filters.transpose(0, 2, 3, 1))
        inputs = [place, self._constant(filters), self._constant(layer.bias)]
        pad = layer.filters.shape[2] // 2
        settings = {"STRIDES": [layer.stride] * 2, "PAD": [pad] * 4, "GROUP": layer.groups}
        told = [self._parameter(f"CONV2D_{k}", np.array(v, np.int64)) for k, v in settings.items()]
        return self._add("CONV2D", inputs, 1, size, size, len(layer.bias), parameters=told)

    def _add(
        self, name: str, inputs: Sequence[int], *shape: int, parameters: Sequence[int] = ()
    ) -> int:
        place = self._tensor(*shape)
        code = OH_NN_OperationType[f"OH_NN_OPS_{name}"]
        self.calls.operations.append(
            OperationCall(code, tuple(parameters), tuple(inputs), (place,))
        )
        return place

    def _parameter(self, name: str, value: Array) -> int:
        return self._constant(value, OH_NN_TensorType[f"OH_NN_{name}"])

    def _constant(
        self, value: Array, type_: OH_NN_TensorType = OH_NN_TensorType.OH_NN_TENSOR
    ) -> int:
        data_type = OH_NN_DataType[f"OH_NN_{value.dtype.name.upper()}"]
        self.calls.tensors.append((OH_NN_Tensor(data_type, value.shape, type=type_), value))
        return len(self.calls.tensors) - 1

    def _tensor(self, *shape: int) -> int:
        self.calls.tensors.append((OH_NN_Tensor(OH_NN_DataType.OH_NN_FLOAT32, shape), None))
        return len(self.calls.tensors) - 1


def _run(model: Model, device: str, image: Array) -> Run:
    compiled = crosschip.compile(model, [device], cache=False, threads=_THREADS)
    return partial(compiled.run, dict.fromkeys(model.inputs, image))
