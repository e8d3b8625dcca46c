"""Normalizations on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    Example,
    adds,
    agree,
    assert_refused,
    claimed_example,
    ones,
    positive_like,
    values_like,
)

from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType
from crosschip.ops import operator_named
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

CLAIMS: dict[str, Example] = {
    "BATCH_NORMALIZATION": (
        lambda b, x: b.add(BatchNormalization, x, *(positive_like(x, 2) for _ in range(4))),
        ((1, 2, 6, 5),),
    ),
    "INSTANCE_NORMALIZATION": (
        lambda b, x: b.add(InstanceNormalization, x, values_like(x, 3), values_like(x, 3)),
        ((2, 3, 8),),
    ),
    "GROUP_NORMALIZATION": (
        lambda b, x: b.add(GroupNormalization, x, values_like(x, 4), values_like(x, 4), groups=2),
        ((2, 4, 8),),
    ),
    "LAYER_NORMALIZATION": (
        lambda b, x: b.add(LayerNormalization, x, values_like(x, 5), values_like(x, 5)),
        ((1, 2, 6, 5),),
    ),
    "LAYER_NORMALIZATION of two axes": (
        lambda b, x: b.add(LayerNormalization, x, values_like(x, 3, 1), begin_norm_axis=1),
        ((2, 3, 8),),
    ),
    "LRN": (lambda b, x: b.add(LRN, x, 3, alpha=0.5), ((1, 6, 2, 3),)),
}


def statistics(channels: int) -> list[Array]:
    random = np.random.default_rng(4)
    return [random.uniform(0.5, 2, channels).astype(np.float32) for _ in range(4)]


def test_batch_normalization(check: Checker) -> None:
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3)), (2, 3, 4, 5))
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3), epsilon=0.1), (2, 3))
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3)), (2, 3, 7))
    check(lambda b, *xs: b.add(BatchNormalization, *xs), (2, 3, 4, 5), *statistics(3))


def test_layer_normalization(check: Checker) -> None:
    def parameters(*shape: int) -> list[Array]:
        return [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(2)]

    check(lambda b, x: b.add(LayerNormalization, x, *parameters(5)), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(3, 5), -2, 0.1), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(3, 5), 1), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(2, 3, 5), 0), (2, 3, 5))
    check(lambda b, *xs: b.add(LayerNormalization, *xs), (2, 3, 5), *parameters(5))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


def test_scales_that_broadcast(check: Checker) -> None:
    for shape in ((1,), (5,), (3, 1), (2, 1, 5)):
        scale = np.random.default_rng(5).normal(size=shape).astype(np.float32)
        check(lambda b, x, w=scale: b.add(LayerNormalization, x, w, w), (2, 3, 5))


def test_a_scale_for_each_channel(check: Checker) -> None:
    image, one, two = np.arange(4, dtype=np.float32).reshape(1, 2, 2), np.ones(1), np.ones(2)
    build = adds("GROUP_NORMALIZATION", groups=1)
    for scale in (one, two):
        arrays = [image, scale.astype(np.float32)]
        if scale is one:
            assert_refused(check, lambda b, x, s: build(b, x, scale=s), arrays, check.symbolic)
        else:
            agree(check, lambda b, x, s: build(b, x, scale=s), arrays, check.symbolic)


def test_statistics_of_another_type(check: Checker) -> None:
    x, w = np.zeros((2, 3, 4), np.float16), np.ones(3, np.float32)
    for operator in (InstanceNormalization, GroupNormalization):
        more = {} if operator is InstanceNormalization else {"groups": 3}
        check.declines(
            lambda b, x, o=operator, more=more: b.add(o, x, w, w, **more),
            x,
            why="scale: must be float16",
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


def test_a_normalization_of_a_constant(check: Checker) -> None:
    """The bias must not accumulate over runs."""
    row = np.array([[1, 2, 4]], np.float32)
    model = check.built(
        lambda b, bias: b.add(operator_named("LAYER_NORMALIZATION"), b.constant(row), None, bias),
        [np.ones(3, np.float32)],
    )
    if check.device.supports(model.operations[0], Options()):
        program = check.device.compile(model, Options())
        first, second = (program.run([np.full(3, n, np.float32)])[0] for n in (1, 2))
        np.testing.assert_allclose(second, first + 1, rtol=1e-5)


def test_windows_of_an_even_size(check: Checker) -> None:
    check.declines(lambda b, x: b.add(LRN, x, 4), (1, 6, 2, 3), why="size: 4 is even")
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add(LRN, x, 3), (1, 6, 2), why="must have 4 axes")
    else:
        check(lambda b, x: b.add(LRN, x, 3), (1, 6, 2))


@pytest.mark.parametrize("name", ["GROUP_NORMALIZATION", "INSTANCE_NORMALIZATION"])
def test_one_number_does_not_do_for_all_channels(check: Checker, name: str) -> None:
    """Scale and bias of unknown size need one number per channel."""
    image = ones(2, 6, 3)
    groups = {"groups": 2} if name == "GROUP_NORMALIZATION" else {}
    assert_refused(
        check,
        lambda b, scale, bias: b.add(operator_named(name), image, scale, bias, **groups),
        [ones(1), ones(1)],
        check.symbolic,
    )


def test_channels_of_many_axes(check: Checker) -> None:
    agree(check, adds("LRN"), [np.ones((1, 3, 2, 1, 1, 1), np.float32)], check.static)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_parameters_that_are_not_positive(check: Checker) -> None:
    """LRN may divide 0 by 0, for which ONNX Runtime returns NaN or 0."""
    image = (1, 6, 2, 2)
    check.declines(adds("LRN", alpha=0.0), image, why="alpha: 0 is not positive")
    check.declines(adds("LRN", beta=-1.0), image, why="beta: -1 is not positive")
    check.declines(adds("LRN", bias=0.0), image, why="bias: 0 is not positive")


def test_a_small_channel_behind_a_large_one(check: Checker) -> None:
    """Quirk `squares-taken-away`: a running sum of squares loses the small one."""
    image = np.array([2000, 1e-3, 2], np.float32).reshape(1, 3, 1, 1)
    for bias in (1e-5, 1e-3, 1.0):
        agree(check, adds("LRN", 1, alpha=0.5, bias=bias), [image], check.static)
