"""Each engine declines, with the rule that is broken, where it would be wrong or crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Builder, DeviceError
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.activation import Celu, Elu, HardSigmoid, HardSwish, Selu
from crosschip.ops.standard.comparison import (
    Comparison,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.layout import Expand, Squeeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import LRN, GroupNormalization
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN
from crosschip.ops.standard.reduction import ReduceMax
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.ops.standard.searching import ArgMax, TopK

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

NO_ELEMENTS = "input: has no elements"


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def pooled(operator: type[AveragePool2D | MaxPool2D]) -> Build:
    return lambda b, x: b.add_all(operator, x, kernel_shape=(2, 2))


def recurrent(operator: type[RNN | GRU | LSTM]) -> Build:
    gates = operator.gates
    return lambda b, x: b.add_all(operator, x, ones(1, gates * 2, 5), ones(1, gates * 2, 2))


BOTH: list[tuple[Build, tuple[int, ...], str]] = [
    (lambda b, x: b.add(Conv2D, x, ones(2, 3, 2, 2)), (0, 3, 4, 4), NO_ELEMENTS),
    (lambda b, x: b.add(MatMul, x, ones(5, 4, 2)), (0, 1, 3, 4), "x: has no elements"),
    *((pooled(operator), (1, 0, 4, 4), NO_ELEMENTS) for operator in (AveragePool2D, MaxPool2D)),
    *((recurrent(operator), (4, 0, 5), NO_ELEMENTS) for operator in (RNN, GRU, LSTM)),
]
ONNXRUNTIME: list[tuple[Build, tuple[int, ...], str]] = [
    (lambda b, x: b.add(ArgMax, x, 0, keepdim=False), (2, 0), NO_ELEMENTS),
    (lambda b, x: b.add(Celu, x, 0.0), (3,), "alpha: is 0"),
    (lambda b, x: b.add(Celu, x, np.inf), (3,), "alpha: is inf"),
    (
        lambda b, x: b.add_all(
            RNN, x, ones(1, 2, 5), ones(1, 2, 2), activations=[CellFunction.SOFTPLUS]
        ),
        *((4, 1, 5), "activations: SOFTPLUS overflows"),
    ),
    (lambda b, x: b.add(GroupNormalization, x, groups=2), (0, 4, 3), NO_ELEMENTS),
    (lambda b, x: b.add(LRN, x, alpha=0.0), (1, 6, 2, 2), "alpha: 0 is not positive"),
    (lambda b, x: b.add(LRN, x, beta=-1.0), (1, 6, 2, 2), "beta: -1 is not positive"),
    (lambda b, x: b.add(ResizeLinear, x, shape=(0, 0)), (1, 1, 2, 2), "shape: the image has no"),
]
OPENVINO: list[tuple[Build, tuple[int, ...], str]] = [
    (lambda b, x: b.add(HardSigmoid, x, 0.0, 0.5), (3,), "alpha: is 0"),
    (lambda b, x: b.add(HardSigmoid, x, 0.5, -np.inf), (3,), "beta: is -inf"),
    (lambda b, x: b.add(Elu, x, np.inf), (3,), "alpha: is inf"),
    (lambda b, x: b.add(HardSwish, x, 1.0, 0.0), (3,), "beta: is 0"),
    (lambda b, x: b.add(Selu, x, gamma=0.0), (3,), "gamma: is 0"),
    (lambda b, x: b.add_all(TopK, x, 0, -1), (3,), "k: is 0"),
    (lambda b, x: b.add(ResizeNearest, x, shape=(4, 4)), (0, 1, 2, 2), NO_ELEMENTS),
]


@pytest.mark.parametrize(("build", "shape", "why"), BOTH)
def test_both(check: Checker, build: Build, shape: tuple[int, ...], why: str) -> None:
    check.declines(build, shape, why=why)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize(("build", "shape", "why"), ONNXRUNTIME)
def test_onnxruntime(check: Checker, build: Build, shape: tuple[int, ...], why: str) -> None:
    check.declines(build, shape, why=why)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize(("build", "shape", "why"), OPENVINO)
def test_openvino(check: Checker, build: Build, shape: tuple[int, ...], why: str) -> None:
    check.declines(build, shape, why=why)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("operator", [Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual])
def test_comparisons_of_int64(check: Checker, operator: type[Comparison]) -> None:
    """Inputs may be any number; sizes of shapes are compared where they are."""
    numbers = np.array([2**40, 3], np.int64)
    why = "input0: int64 is computed in int32"
    check.declines(lambda b, x: b.add(operator, x, x), numbers, why=why)

    def of_sizes(b: Builder, x: Any) -> Any:
        return b.add(operator, b.add(ShapeOf, x), np.array([2, 3], np.int64))

    check(of_sizes, ones(2, 4))


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_shapes_of_many_axes_that_are_computed(check: Checker) -> None:
    """OpenVINO writes beyond its stack there, and the process ends."""

    def build(b: Builder, x: Any, shape: Any) -> Any:
        return b.add(Expand, x, shape)

    check.declines(build, (), np.ones(21, np.int64), why="shape: is computed, of more than 16")
    check.typed(build, np.array(2.5, np.float32), np.ones(16, np.int64), typing=check.static)
    check(lambda b, x: b.add(Expand, x, (1,) * 32), ())


@pytest.mark.parametrize("shape", [(1, 0), (0, 1), (0, 0)])
@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_places_in_nothing(check: Checker, shape: tuple[int, ...]) -> None:
    arrays = [np.zeros(shape, np.float32), np.zeros(2, np.int32)]
    model = check.built(lambda b, x, indices: b.add(GatherND, x, indices), arrays)
    with pytest.raises(DeviceError, match="indices: one is out of range"):
        check.outputs_of(check.device, model, arrays)


def test_pads_that_are_computed(check: Checker) -> None:
    """To repeat a tensor in its padding, its size must be compared with the pads."""

    def build(b: Builder, x: Any, pads: Any) -> Any:
        return b.add(Pad, x, pads, PadMode.REFLECT)

    check.declines(build, (2, 3), np.array([1, 0, 0, 1]), why="pads: ")


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("element_type", ["uint32", "uint64"])
def test_products_of_unsigned_integers(check: Checker, element_type: str) -> None:
    x, why = np.array([1, 2**31], element_type), f"x: an open size with {element_type}"
    check.typed(lambda b, x: b.add(MatMul, x, x), x, typing=check.static)
    check.declines(lambda b, x: b.add(MatMul, x, x), x, typing=check.symbolic, why=why)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_truth_of_nothing(check: Checker) -> None:
    check(lambda b, x: b.add(ReduceMax, x, (1,)), np.zeros((2, 0), np.bool_))


@pytest.mark.parametrize("operator", [RNN, GRU, LSTM], ids=lambda operator: operator.type)
@pytest.mark.parametrize("given", [False, True])
def test_an_empty_batch_does_no_harm(
    check: Checker, operator: type[RNN | GRU | LSTM], given: bool
) -> None:
    """An engine computes nothing of it, or refuses it, where its size is not known before."""

    def build(b: Builder, x: Any, *lengths: Any) -> Any:
        named = {"sequence_lengths": lengths[0]} if lengths else {}
        gates = operator.gates
        return b.add_all(operator, x, ones(1, gates * 2, 5), ones(1, gates * 2, 2), **named)

    arrays = [ones(4, 0, 5), *([np.zeros(0, np.int64)] if given else [])]
    if given and check.device.name == "openvino":
        check.declines(build, *arrays, typing=check.symbolic, why="sequence_lengths: must be")
    elif check.device.name == "openvino" or operator is RNN:
        first, *_ = check.outputs_of(
            check.device, check.built(build, arrays, check.symbolic), arrays
        )
        assert first.shape == (4, 1, 0, 2)
    else:
        model = check.built(build, arrays, check.symbolic)
        with pytest.raises(DeviceError, match="failed while running"):
            check.outputs_of(check.device, model, arrays)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_constants_of_uint32(check: Checker) -> None:
    """Numbers beyond int32 stay what they are in a run, but not in a constant."""
    wide = np.array([[2**32 - 1, 1]], np.uint32)
    check(lambda b, x: b.add(Squeeze, x, (0,)), wide, rankless_too=False)
    check.declines(
        lambda b, x: b.add(Squeeze, b.constant(wide), (0,)), (1,), why="constant of uint32"
    )


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_groups_of_two_axes_of_open_sizes(check: Checker) -> None:
    def build(b: Builder, x: Any) -> Any:
        return b.add(GroupNormalization, x, ones(4), ones(4), groups=2)

    check.declines(build, (2, 4), typing=check.symbolic, why="has two axes with an open size")
    check.typed(build, np.arange(8, dtype=np.float32).reshape(2, 4), typing=check.static)
    check.typed(build, np.arange(8, dtype=np.float32).reshape(1, 4, 2), typing=check.symbolic)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("given", ["neither", "scale", "bias"])
def test_groups_in_onnxruntimes_terms(check: Checker, groups: int, given: str) -> None:
    weights: dict[str, Any] = {} if given == "neither" else {given: np.arange(4, dtype=np.float32)}

    def build(b: Builder, x: Any) -> Any:
        return b.add(GroupNormalization, x, groups=groups, **weights)

    if check.device.name == "onnxruntime":
        check(build, (2, 4, 3, 5), rankless_too=False)
    else:
        check.declines(build, (2, 4, 3, 5), why="is left out")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_gate_whose_parameters_are_not_rounded(
    check: Checker, dtype: type[np.floating[Any]]
) -> None:
    x = np.array([-2.5, -2.49, 0.1, 2.4], dtype)
    check(lambda b, x: b.add(HardSigmoid, x, 0.2, 0.5), x, tolerance=1e-3, rankless_too=False)
