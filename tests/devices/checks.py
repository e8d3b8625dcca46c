"""Helpers of the operator tests on engines: one-line models, arrays, and further checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.devices.conftest import Build, Checker, Typing, static, symbolic
from tests.limits import is_declined_for_limit

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Device, Options
from crosschip.hal.conditions import InputRange
from crosschip.ir import Array, DeviceError, ElementType, Model, ModelError, Operand
from crosschip.ir.types import ALL_TYPES, FLOATS, NARROW_TYPES
from crosschip.lowering.narrowing import conditions_of, narrowing
from crosschip.ops import operator_named
from crosschip.ops.definition.windows import AutoPad

Example = tuple[Build, tuple[tuple[int, ...], ...]]
"""The build of a model, and the shapes of its inputs."""

COMPUTED = sorted(ALL_TYPES - NARROW_TYPES, key=lambda t: t.code)
"""The element types of which a claim is tried."""

TOLERANCES = {
    ElementType.FLOAT64: 1e-12,
    ElementType.FLOAT32: 1e-5,
    ElementType.FLOAT16: 2e-3,
    ElementType.BFLOAT16: 2e-2,
}

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
SQUARE = np.ones((1, 1, 2, 2), np.float32)
"""An image of four pixels."""
BOXES = np.array([[0, 0, 2, 2], [1, 1, 1, 1], [2, 2, 1, 1]], np.float32)
"""A box, one without extent, and one that ends before it begins."""
NUMBERS = np.array([np.nan, -np.inf, np.inf, -1, 1, 0, 2, np.nan, 3, 5, -7, 9], np.float32)
OTHERS = np.array([1, np.nan, 1, np.nan, 1, 0, -np.inf, 2, 3, np.inf, -7, np.nan], np.float32)
"""As many numbers as `NUMBERS` are, to stand beside them."""
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -2.5], np.float32)
REMARKABLE = np.array([0.0, -0.0, 1, -1, 0.5, -1.5, 2.5, 30, -30, 1e-7])
WINDOWS: list[dict[str, Any]] = [
    {},
    {"strides": (2, 2)},
    {"strides": (2, 1), "pads": (1, 0, 0, 1)},
    {"pads": (1, 1, 1, 1)},
    {"auto_pad": AutoPad.SAME},
    {"auto_pad": AutoPad.SAME, "strides": (2, 3)},
    {"auto_pad": AutoPad.VALID, "pads": (1, 1, 1, 1), "strides": (2, 2)},
]
"""How windows of three pixels may lie."""


def adds(name: str, *more: Any, **named: Any) -> Build:
    """Return a builder of a model of one operator, with these arguments after the inputs."""
    return lambda b, *xs, **also: b.add(operator_named(name), *xs, *more, **named, **also)


def computed(name: str, slot: str, **named: Any) -> Build:
    """Return a builder of a model of one operator whose last input is a parameter."""
    return lambda b, *xs: b.add(operator_named(name), *xs[:-1], **{slot: xs[-1]}, **named)


def joined(axis: int) -> Build:
    """Concatenate the inputs."""
    return lambda b, *parts: b.add(operator_named("CONCAT"), parts, axis)


def number(value: float) -> Array:
    return np.array(value, np.float32)


def integer(value: int) -> Array:
    return np.array(value, np.int64)


def integers(*values: Any, dtype: type[np.integer] = np.int64) -> Array:
    return np.array(values, dtype)


def ones(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def overlapping_boxes(*shape: int) -> Array:
    """Return random boxes, many of which overlap."""
    random = np.random.default_rng(31)
    corners, sides = random.uniform(0, 20, (*shape, 2)), random.uniform(1, 15, (*shape, 2))
    return np.concatenate([corners, corners + sides], axis=-1).astype(np.float32)


def tied_scores(*shape: int) -> Array:
    """Return random scores, many of which are equal."""
    return np.random.default_rng(32).uniform(0, 1, shape).round(1).astype(np.float32)


def values(element_type: ElementType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return random elements; integers include the extremes and all bit patterns."""
    random, dtype = np.random.default_rng(seed), element_type.dtype
    if element_type in FLOATS:
        return random.normal(size=shape).astype(dtype)
    if element_type is ElementType.BOOL:
        return random.random(shape) < 0.5
    limits = np.iinfo(dtype)
    found = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    found.flat[:2] = [limits.min, limits.max][: found.size]
    return found


def values_like(x: Operand, *shape: int) -> Array:
    """Return constants of an operand's element type."""
    return values(x.type.element_type, shape, seed=2)


def positive_like(x: Operand, *shape: int) -> Array:
    return np.abs(values_like(x, *shape)) + np.ones((), x.type.element_type.dtype)


def fitting(device: Device, model: Model, arrays: list[Array]) -> list[Array]:
    """Clamp integers to the range that the device computes correctly."""
    ranges = {
        condition.input: condition
        for condition in conditions_of(device, model, Options())
        if isinstance(condition, InputRange)
    }
    named = zip(model.inputs, arrays, strict=True)
    return [
        np.clip(array, ranges[name].low, ranges[name].high) if name in ranges else array
        for name, array in named
    ]


def remarkable(element_type: ElementType, seed: int) -> Array:
    """Return random elements that begin with special ones such as NaN and infinity."""
    found = values(element_type, (4, 16), seed)
    if element_type in FLOATS:
        found.flat[: REMARKABLE.size] = np.roll(REMARKABLE, seed).astype(found.dtype)
    return found


def claimed(
    check: Checker,
    build: Build,
    arrays_of: Callable[[ElementType], list[Array]],
    typing: Typing = static,
) -> set[ElementType]:
    """Return the element types for which a device supports a model, and check its results.

    Those that it declines for a limit of the environment alone count, too.
    """
    found = set()
    for element_type in COMPUTED:
        arrays = arrays_of(element_type)
        try:
            model = check.built(build, arrays, typing)
        except ModelError:
            continue
        answers = narrowing(check.device, Options())(model).answers
        if any(map(is_declined_for_limit, answers)):
            found.add(element_type)
        elif all(answers):
            arrays = fitting(check.device, model, arrays)
            expected = check.outputs_of(ReferenceDevice(), model, arrays)
            check.compare(model, arrays, expected, TOLERANCES.get(element_type, 0))
            found.add(element_type)
    return found


def claimed_example(check: Checker, example: Example) -> set[ElementType]:
    """Return the supported element types of an example, also with dynamic dimensions."""
    build, shapes = example

    def arrays_of(element_type: ElementType) -> list[Array]:
        return [values(element_type, shape, seed) for seed, shape in enumerate(shapes)]

    claimed(check, build, arrays_of, symbolic)
    return claimed(check, build, arrays_of)


def claimed_elementwise(check: Checker, name: str, inputs: int = 1) -> set[ElementType]:
    """Return the supported element types of an operator, with special numbers."""

    def arrays_of(element_type: ElementType) -> list[Array]:
        return [remarkable(element_type, seed) for seed in range(inputs)]

    return claimed(check, adds(name), arrays_of)


def agree(check: Checker, build: Build, arrays: list[Array], typing: Typing) -> None:
    """Compare a device with the reference, compiled and loaded, if it supports the model."""
    model = check.built(build, arrays, typing)
    if not all(check.device.supports(o, Options()) for o in model.operations):
        return
    expected = check.outputs_of(ReferenceDevice(), model, arrays)
    check.compare(model, arrays, expected, 1e-5)
    saved = check.device.compile(model, Options()).save()
    assert saved is not None
    for array, wanted in zip(
        check.device.load(saved, model, Options()).run(arrays), expected, strict=True
    ):
        np.testing.assert_allclose(array, wanted, 1e-5)


def assert_refused(check: Checker, build: Build, arrays: list[Array], typing: Typing) -> None:
    """Assert that a device does not support the model or refuses each run."""
    model = check.built(build, arrays, typing)
    if all(check.device.supports(o, Options()) for o in model.operations):
        program = check.device.compile(model, Options(threads=1))
        for _ in range(2):
            with pytest.raises(DeviceError, match=check.device.name):
                program.run(arrays)
