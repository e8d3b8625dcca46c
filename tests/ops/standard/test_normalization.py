"""Normalizations, compared with PyTorch and with explicit formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from tests.modelling import DelegatingDevice, float32, model_of
from tests.ops.oracle import functional, of_torch

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    Dim,
    ElementType,
    ModelError,
    TensorType,
    symbol,
)
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    RMSNormalization,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 3, 4), (1, 6, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_normalization(check: Checker, shape: tuple[int, ...], groups: int) -> None:
    check(
        lambda b, x, w, bias: b.add(GroupNormalization, x, w, bias, 0.01, groups),
        of_torch(lambda x, w, b: functional.group_norm(x, groups, w, b, 0.01)),
        *(shape, (6,), (6,)),
        tolerance=1e-4,
    )
    check(
        lambda b, x: b.add(GroupNormalization, x, groups=groups),
        of_torch(lambda x: functional.group_norm(x, groups)),
        shape,
        tolerance=1e-4,
    )


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5), (1, 3, 2, 2, 2)], ids=str)
def test_instance_normalization(check: Checker, shape: tuple[int, ...]) -> None:
    check(
        lambda b, *xs: b.add(InstanceNormalization, *xs, epsilon=0.1),
        of_torch(lambda x, w, b: functional.instance_norm(x, weight=w, bias=b, eps=0.1)),
        *(shape, (3,), (3,)),
    )
    check(
        lambda b, x, bias: b.add(InstanceNormalization, x, bias=bias),
        of_torch(lambda x, b: functional.instance_norm(x, bias=b)),
        *(shape, (3,)),
        tolerance=1e-4,
    )


def test_layer_normalization_with_parts_left_out(check: Checker) -> None:
    shape, normalized = (2, 3, 5), (3, 5)
    check(
        lambda b, x: b.add(LayerNormalization, x, begin_norm_axis=1),
        of_torch(lambda x: functional.layer_norm(x, normalized)),
        shape,
    )
    check(
        lambda b, x, bias: b.add(LayerNormalization, x, bias=bias, begin_norm_axis=-2),
        of_torch(lambda x, b: functional.layer_norm(x, normalized, bias=b)),
        *(shape, normalized),
    )


@pytest.mark.parametrize("scale", [(1,), (5,), (3, 1), (2, 1, 5), (1, 3, 1), ()], ids=str)
def test_what_broadcasts_to_the_input(check: Checker, scale: tuple[int, ...]) -> None:
    shape, factor = (2, 3, 5), np.random.default_rng(4).normal(size=scale).astype(np.float32)
    check(
        lambda b, x, w: b.add(LayerNormalization, x, w, w),
        of_torch(lambda x, w: functional.layer_norm(x, (5,)) * w + w),
        *(shape, factor),
    )
    check(
        lambda b, x, w: b.add(RMSNormalization, x, w, epsilon=0.1),
        of_torch(lambda x, w: functional.rms_norm(x, (5,), eps=0.1) * w),
        *(shape, factor),
    )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_rms_normalization(check: Checker, axis: int) -> None:
    shape = (2, 3, 5)
    check(
        lambda b, x, w: b.add(RMSNormalization, x, w, axis, 0.01),
        of_torch(lambda x, w: functional.rms_norm(x, shape[axis:], w, 0.01)),
        *(shape, shape[axis:]),
    )


def test_scale_and_bias_of_another_type(check: Checker) -> None:
    x = np.random.default_rng(5).normal(size=(2, 4, 3)).astype(np.float16)
    wide, w = x.astype(np.float32), np.array([1.5, -2, 0.25, 1], np.float32)

    def like(x: Array, w: Array) -> Array:
        mean = wide.mean(2, keepdims=True)
        variance = ((wide - mean) ** 2).mean(2, keepdims=True)
        factor = w.reshape(-1, 1)
        normal: Array = (wide - mean) / np.sqrt(variance + 1e-5)
        return (normal * factor + factor).astype(np.float16)

    for operator, more in ((InstanceNormalization, {}), (GroupNormalization, {"groups": 4})):
        check(
            lambda b, x, w, o=operator, more=more: b.add(o, x, w, w, **more),
            like,
            *(x, w),
            tolerance=1e-3,
        )


def test_statistics_of_nothing(check: Checker) -> None:
    empty = np.zeros((2, 3, 0), np.float32)
    for operator in (LayerNormalization, InstanceNormalization):
        check(lambda b, x, o=operator: b.add(o, x), lambda x: x, empty)
    check(lambda b, x: b.add(GroupNormalization, x, groups=3), lambda x: x, empty)
    check(
        lambda b, x: b.add(BatchNormalization, x, *(np.ones(3, np.float32) for _ in range(4))),
        lambda x: x,
        empty,
    )


def test_a_variance_below_zero(check: Checker) -> None:
    ones, below = np.ones(2, np.float32), np.array([-1, 1], np.float32)
    check(
        lambda b, x: b.add(BatchNormalization, x, ones, ones, ones, below, 0.0),
        lambda x: np.array([[np.nan, 2]], np.float32),
        np.array([[2, 2]], np.float32),
    )


def normalized(row: list[float], p: int, epsilon: float) -> list[float]:
    norm = sum(map(abs, row)) if p == 1 else math.sqrt(sum(v * v for v in row))
    return [v / (norm + epsilon) if norm + epsilon else 0.0 for v in row]


@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.5])
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(check: Checker, p: int, epsilon: float) -> None:
    rows = np.random.default_rng(6).normal(size=(3, 7)).astype(np.float32)
    rows[1] = 0

    def like(x: Array) -> Array:
        return np.array([normalized(row, p, epsilon) for row in x.tolist()], np.float32)

    check(lambda b, x: b.add(LpNormalization, x, 1, p, epsilon), like, rows)
    check(lambda b, x: b.add(LpNormalization, x, -2, p, epsilon), lambda x: like(x.T).T, rows.T)
    if epsilon == 0 and p == 2:  # ONNX's evaluator sums up for a p of 1 without absolute values
        node = helper.make_node("LpNormalization", ["x"], ["y"], axis=1, p=p)
        check(lambda b, x: b.add(LpNormalization, x, 1, p, 0.0), evaluator(node), rows[::2])


def evaluator(node: Any) -> Callable[..., Array]:
    """Return ONNX's evaluation of a node with one input."""
    x = helper.make_tensor_value_info("x", 1, None)
    y = helper.make_tensor_value_info("y", 1, None)
    model = helper.make_model(helper.make_graph([node], "node", [x], [y]))

    def call(x: Array) -> Array:
        (result,) = ReferenceEvaluator(model).run(None, {"x": x})
        found: Array = np.asarray(result)
        return found

    return call


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 11])
def test_lrn(check: Checker, size: int) -> None:
    alpha, beta, bias = 0.3, 0.6, 1.5
    build = lambda b, x: b.add(LRN, x, size, bias, alpha, beta)  # noqa: E731 - as in all checks
    like = of_torch(
        # PyTorch and ONNX divide alpha by the size.
        lambda x: functional.local_response_norm(x, size, alpha * size, beta, bias)
    )
    node = helper.make_node(
        "LRN", ["x"], ["y"], size=size, alpha=alpha * size, beta=beta, bias=bias
    )
    if size % 2:  # of an even size, PyTorch's window is before the channel, ONNX's after it
        for shape in ((2, 6, 3), (2, 6, 3, 4), (1, 1, 2, 2)):
            check(build, like, shape)
    # As many images as channels: ONNX's evaluator takes one number for the other.
    check(build, evaluator(node), (6, 6, 3, 4))


BROKEN: list[tuple[Callable[[Builder, Any], Any], str]] = [
    (lambda b, x: b.add(GroupNormalization, x, groups=4), "GROUP.*groups: 4 does not divide 6"),
    (lambda b, x: b.add(GroupNormalization, x, groups=0), "GROUP.*groups: 0 is not positive"),
    (lambda b, x: b.add(GroupNormalization, x), "GROUP_NORMALIZATION.groups: is required"),
    (
        lambda b, x: b.add(GroupNormalization, x, np.ones(3, np.float32), groups=2),
        "GROUP_NORMALIZATION.scale: its size, and the channels: 3 and 6 differ",
    ),
    (
        lambda b, x: b.add(InstanceNormalization, x, bias=np.ones((6, 1), np.float32)),
        "INSTANCE_NORMALIZATION.bias: must have one number a channel",
    ),
    (
        lambda b, x: b.add(InstanceNormalization, np.ones((2, 3), np.float32)),
        "INSTANCE_NORMALIZATION.input: has 2 axes, but must have at least 3",
    ),
    (
        lambda b, x: b.add(LayerNormalization, x, np.ones(2, np.float32)),
        "LAYER_NORMALIZATION.scale: .*: 2 and 4 differ",
    ),
    (
        lambda b, x: b.add(LayerNormalization, x, bias=np.ones((1, 2, 6, 4), np.float32)),
        "LAYER_NORMALIZATION.bias: has 4 axes, more than the input's 3",
    ),
    (lambda b, x: b.add(LayerNormalization, x, begin_norm_axis=3), "begin_norm_axis: 3 is not in"),
    (
        lambda b, x: b.add(RMSNormalization, x, np.ones((2, 1, 3), np.float32)),
        "RMS_NORMALIZATION.scale: .*: 3 and 4 differ",
    ),
    (lambda b, x: b.add(LpNormalization, x, p=3), "LP_NORMALIZATION.p: 3 is neither 1 nor 2"),
    (lambda b, x: b.add(LpNormalization, x, axis=-4), "LP_NORMALIZATION.axis: -4 is not in"),
    (lambda b, x: b.add(LRN, x, 0), "LRN.size: 0 is not positive"),
    (
        lambda b, x: b.add(RMSNormalization, x, np.float32(1), epsilon=-1.0),
        "epsilon: -1 is not at least 0",
    ),
    (lambda b, x: b.add(LRN, np.ones(3, np.float32)), "LRN.input: has 1 axes"),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_rules(build: Callable[[Builder, Any], Any], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 6, 4)))
    with pytest.raises(ModelError, match=message):
        build(b, x)


def test_batch_normalization(check: Checker) -> None:
    random = np.random.default_rng(3)
    statistics = [random.uniform(0.5, 2, 3).astype(np.float32) for _ in range(4)]

    def like(x: Any, *given: Any) -> Any:
        scale, bias, mean, variance = given
        return functional.batch_norm(x, mean, variance, scale, bias, eps=0.01)

    for shape in ((2, 3), (2, 3, 7), (2, 3, 4, 5)):
        check(
            lambda b, *xs: b.add(BatchNormalization, *xs, epsilon=0.01),
            of_torch(like),
            *(shape, *statistics),
        )


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_layer_normalization(check: Checker, axis: int) -> None:
    shape = (2, 3, 5)
    normalized = shape[axis:]
    check(
        lambda b, *xs: b.add(LayerNormalization, *xs, axis, 0.1),
        of_torch(lambda x, w, b: functional.layer_norm(x, normalized, w, b, 0.1)),
        *(shape, normalized, normalized),
    )


Call = Callable[..., Any]
Shapes = list[tuple[int, ...]]

C, D, K = symbol("C"), symbol("D"), symbol("K")
LARGER: dict[str, tuple[Call, list[tuple[Dim, ...]], list[Shapes], Shapes]] = {
    "RMS": (
        lambda b, *xs: b.add(RMSNormalization, *xs),
        [(2, K), (C,)],
        [[(2, 1), (3,)], [(2, 3), (2,)]],
        [(2, 3), (3,)],
    ),
    "LAYER": (
        lambda b, *xs: b.add(LayerNormalization, *xs),
        [(2, K), (C,), (D,)],
        [[(2, 1), (3,), (3,)], [(2, 1), (1,), (3,)]],
        [(2, 3), (3,), (1,)],
    ),
    "INSTANCE": (
        lambda b, *xs: b.add(InstanceNormalization, *xs),
        [(2, K, 4), (C,), (C,)],
        [[(2, 1, 4), (3,), (3,)], [(2, 3, 4), (1,), (1,)]],
        [(2, 3, 4), (3,), (3,)],
    ),
    "INSTANCE, known channels": (
        lambda b, *xs: b.add(InstanceNormalization, *xs),
        [(2, 3, 4), (C,), (D,)],
        [[(2, 3, 4), (1,), (1,)], [(2, 3, 4), (3,), (1,)]],
        [(2, 3, 4), (3,), (3,)],
    ),
    "GROUP": (
        lambda b, *xs: b.add(GroupNormalization, *xs, groups=2),
        [(2, K, 4), (C,), (C,)],
        [[(2, 3, 4), (3,), (3,)], [(2, 4, 4), (1,), (1,)]],
        [(2, 4, 4), (4,), (4,)],
    ),
    "BATCH": (
        lambda b, *xs: b.add(BatchNormalization, *xs),
        [(2, K, 4), (C,), (C,), (D,), (C,)],
        [[(2, 1, 4), *[(3,)] * 4], [(2, 3, 4), (3,), (3,), (1,), (3,)]],
        [(2, 3, 4), *[(3,)] * 4],
    ),
}


@pytest.mark.parametrize("case", LARGER.values(), ids=LARGER)
def test_decompositions_refuse_the_sizes_that_definitions_do(
    case: tuple[Call, list[tuple[Dim, ...]], list[Shapes], Shapes],
) -> None:
    make, types, refused, taken = case
    model = model_of(make, *(float32(*shape) for shape in types))
    (operation,) = model.operations
    device = DelegatingDevice(declines=[operation.type])

    def arrays(shapes: Shapes) -> list[Array]:
        return [np.linspace(1, 2, math.prod(s), dtype=np.float32).reshape(s) for s in shapes]

    with crosschip.compile(model, [device], cache=False) as compiled:
        expected = ReferenceProgram(model).run(arrays(taken))[0]
        np.testing.assert_allclose(compiled(*arrays(taken)), expected, rtol=1e-5, atol=1e-6)
        for shapes in refused:
            with pytest.raises(DeviceError, match=r"RESHAPE|shapes .* do not broadcast"):
                compiled(*arrays(shapes))
