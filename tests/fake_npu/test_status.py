"""What goes wrong in the DDK is a code with a sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fake_npu_ddk import (
    DataType,
    Graph,
    NpuError,
    Operator,
    Settings,
    Status,
    Tensor,
    binary,
    compile,
    text,
)

BYTES = Tensor(DataType.UINT8, (1, 8, 8, 3), 0.1, 10)


def test_every_code_has_a_sentence() -> None:
    sentences = {text(status) for status in Status}
    assert len(sentences) == len(Status)
    assert all(sentences)


def image(**changed: object) -> tuple[Graph, int]:
    graph = Graph()
    fields = {"type": BYTES.type, "shape": BYTES.shape, "scale": 0.1, "zero_point": 10, **changed}
    return graph, graph.input(Tensor(**fields))  # type: ignore[arg-type]  # wrong on purpose


def pooling(**settings: object) -> None:
    graph, number = image()
    graph.add(Operator.MAX_POOL_2D, [number], BYTES, Settings(**settings))  # type: ignore[arg-type]


def convolution(kernel: int, *, bias: int = 0, type_: DataType = DataType.INT32) -> None:
    graph, number = image(shape=(1, 16, 16, 3))
    filters = Tensor(DataType.UINT8, (kernel, kernel, 3, 4), 0.1, 128)
    weights = graph.constant(filters, np.zeros(filters.shape, np.uint8))
    added = graph.constant(Tensor(type_, (4,)), np.full(4, bias, type_.dtype))
    side = 17 - kernel
    made = Tensor(DataType.UINT8, (1, side, side, 4), 0.1, 0)
    graph.add(Operator.CONV_2D, [number, weights, added], made)


def computed_weights() -> None:
    graph, number = image()
    filters = graph.input(Tensor(DataType.UINT8, (1, 1, 3, 3), 0.1))
    bias = graph.constant(Tensor(DataType.INT32, (3,)), np.zeros(3, np.int32))
    graph.add(Operator.CONV_2D, [number, filters, bias], BYTES)


def beside(shape: tuple[int, ...]) -> None:
    graph, number = image()
    other = graph.input(Tensor(DataType.UINT8, shape, 0.1))
    graph.add(Operator.ADD, [number, other], BYTES)


def finished_twice() -> None:
    graph, number = image()
    graph.output(graph.add(Operator.RESCALE, [number], BYTES))
    graph.finish()
    graph.input(BYTES)


def clamped_reshape() -> None:
    graph, number = image()
    graph.add(Operator.RESHAPE, [number], BYTES, Settings(low=0))


WRONG: dict[str, tuple[Status, Callable[[], object]]] = {
    "nine by nine": (Status.UNSUPPORTED_SETTING, lambda: convolution(9)),
    "a stride of 5": (Status.UNSUPPORTED_SETTING, lambda: pooling(strides=(5, 1))),
    "dilated pooling": (Status.UNSUPPORTED_SETTING, lambda: pooling(dilations=(2, 1))),
    "wide padding": (Status.UNSUPPORTED_SETTING, lambda: pooling(pads=(1, 0, 0, 0))),
    "a large window": (Status.UNSUPPORTED_SETTING, lambda: pooling(kernel=(9, 1))),
    "a window beyond the image": (
        Status.UNSUPPORTED_SHAPE,
        lambda: image(shape=(1, 2, 2, 1))[0].add(
            Operator.MAX_POOL_2D, [0], BYTES, Settings(kernel=(3, 3))
        ),
    ),
    "a great bias": (Status.UNSUPPORTED_SETTING, lambda: convolution(1, bias=2**30 + 1)),
    "a real bias": (Status.UNSUPPORTED_TYPE, lambda: convolution(1, type_=DataType.FLOAT16)),
    "computed weights": (Status.UNSUPPORTED_SETTING, computed_weights),
    "five axes": (Status.UNSUPPORTED_SHAPE, lambda: image(shape=(1, 1, 1, 1, 1))),
    "no elements": (Status.UNSUPPORTED_SHAPE, lambda: image(shape=(1, 0))),
    "a long axis": (Status.UNSUPPORTED_SHAPE, lambda: image(shape=(8193,))),
    "no scale": (Status.UNSUPPORTED_TYPE, lambda: image(scale=0.0)),
    "a zero point beyond": (Status.UNSUPPORTED_TYPE, lambda: image(zero_point=256)),
    "shapes apart": (Status.UNSUPPORTED_SHAPE, lambda: beside((1, 8, 8, 2))),
    "ranks apart": (Status.UNSUPPORTED_SHAPE, lambda: beside((3,))),
    "bounds where there are none": (Status.UNSUPPORTED_SETTING, clamped_reshape),
    "bounds the wrong way": (Status.UNSUPPORTED_SETTING, lambda: pooling(low=1.0, high=0.0)),
    "no output": (Status.INVALID_ARGUMENT, lambda: Graph().finish()),
    "an input as output": (Status.INVALID_ARGUMENT, lambda: image()[0].output(0)),
    "a finished graph": (Status.INVALID_ARGUMENT, finished_twice),
    "too few inputs": (
        Status.INVALID_ARGUMENT,
        lambda: image()[0].add(Operator.ADD, [0], BYTES),
    ),
    "a tensor that is not there": (
        Status.INVALID_ARGUMENT,
        lambda: Graph().add(Operator.RESCALE, [0], BYTES),
    ),
    "no program": (Status.DAMAGED_PROGRAM, lambda: binary.read(b"")),
    "an effort of 4": (Status.INVALID_ARGUMENT, lambda: compile(Graph(), 1, effort=4)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_has_its_code(what: str) -> None:
    status, function = WRONG[what]
    with pytest.raises(NpuError) as caught:
        function()
    assert caught.value.status is status
    assert str(caught.value).startswith(f"error {status.value}, {text(status)}")
