"""Conditions under which the sizes of operations fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.devices.kits.input_checks import Needed
from crosschip.devices.kits.size_checks import Sizes
from crosschip.devices.kits.size_rules import ALWAYS, Fit, fit_of
from crosschip.devices.onnxruntime.unchecked import UNCHECKED
from crosschip.ir import (
    Builder,
    Dim,
    ElementType,
    Model,
    ModelError,
    Operand,
    Operation,
    Quantization,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ir.dimension import substitute
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.indexing import GatherElements, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.normalization import InstanceNormalization, LayerNormalization
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.recurrent import GRU, LSTM

n, m = symbol("n"), symbol("m")


def _operation(operator: Any, shapes: list[tuple[Dim, ...]], *more: object) -> Operation:
    b = Builder()
    inputs = [
        b.input(f"x{index}", TensorType(ElementType.FLOAT32, shape))
        for index, shape in enumerate(shapes)
    ]
    given = [inputs, *more] if operator is Concat else [*inputs, *more]
    b.output("y", b.add(operator, *given))
    return b.build().operations[-1]


@pytest.mark.parametrize(
    ("operator", "shapes", "more", "fits"),
    [
        (Concat, [(n, m, 4), (n, 1, 4)], [1], True),
        (Concat, [(n, m, 4), (n, 1, 4)], [-2], True),
        (Concat, [(n, unknown()), (n, unknown())], [1], True),
        (LayerNormalization, [(n, m, 4), (4,), (4,)], [-1], True),
        (LayerNormalization, [(n, m), (4,), (4,)], [-1], False),
        (LayerNormalization, [(n, 4), (m,), (m,)], [-1], False),
        (InstanceNormalization, [(n, 4, m), (4,), (4,)], [], True),
        (InstanceNormalization, [(n, m, 4), (4,), (4,)], [], False),
        (FullyConnected, [(n, 4), (5, 4)], [], True),
        (FullyConnected, [(n, m), (5, 4)], [], False),
        (FullyConnected, [(n, m, 4), (5, 4)], [], False),
    ],
)
def test_what_rules_are_about_must_be_known_or_of_one_name(
    operator: Any, shapes: list[tuple[Dim, ...]], more: list[object], fits: bool
) -> None:
    assert fit_of(_operation(operator, shapes, *more)) == (ALWAYS if fits else None)


@pytest.mark.parametrize(
    ("shapes", "equal"),
    [
        ([(n, m, 4), (m, 1, 4)], [(n, m)]),
        ([(n, m, 4), (3, 1, 4)], [(n, 3)]),
        ([(n, 1, 4), (n, 1, m), (m, 1, 4)], [(4, m), (n, m), (m, 4)]),
    ],
)
def test_parts_fit_where_sizes_beside_the_axis_are_equal(
    shapes: list[tuple[Dim, ...]], equal: list[tuple[Dim, Dim]]
) -> None:
    assert fit_of(_operation(Concat, shapes, 1)) == Fit(tuple(equal))


@pytest.mark.parametrize(
    ("picked", "axis", "fit"),
    [((n, m), 1, ALWAYS), ((n, 3), 1, ALWAYS), ((n, 3), 0, Fit(((m, 3),)))],
)
def test_elements_are_beside_others_of_the_same_size(
    picked: tuple[Dim, ...], axis: int, fit: Fit
) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (n, m)))
    b.output(
        "y", b.add(GatherElements, x, b.input("i", TensorType(ElementType.INT64, picked)), axis)
    )
    assert fit_of(b.build().operations[-1]) == fit


def test_what_fits_always_is_not_checked_in_runs() -> None:
    for second, checked in ((n, False), (m, True)):
        b = Builder()
        parts = [
            b.input(f"x{index}", TensorType(ElementType.FLOAT32, (size, 4)))
            for index, size in enumerate((n, second))
        ]
        b.output("y", b.add(Concat, parts, 1))
        needed = Needed.UNLESS_FITTING if checked else Needed.NEVER
        assert Sizes("engine", b.build(), UNCHECKED, ()).checks.needed is needed


def _quantized(shape: tuple[Dim, ...], axis: int | None) -> Operand:
    scales = (0.5,) if axis is None else (0.5, 0.25, 0.125, 1.0)
    stored = Quantization(scales, (0,) * len(scales), axis)
    return Operand("x", TensorType(ElementType.INT8, shape, stored))


@pytest.mark.parametrize(
    ("shape", "axis", "fit"),
    [
        ((n, m), None, ALWAYS),
        ((n, 4, m), 1, ALWAYS),
        ((n, m), 1, None),
    ],
)
def test_scales_are_for_all_or_for_known_places(
    shape: tuple[Dim, ...], axis: int | None, fit: Fit | None
) -> None:
    assert fit_of(Dequantize("d", (_quantized(shape, axis),))) == fit


def test_reals_become_integers_of_any_sizes() -> None:
    assert fit_of(_operation(Quantize, [(n, m)], 0, [0.5], [0], ElementType.INT8)) == ALWAYS


_PIXELS = st.integers(0, 9)
_SMALL = st.integers(0, 2)


@st.composite
def _windows(draw: st.DrawFn) -> tuple[Model, Mapping[str, int]]:
    """Return a chain of convolutions of a dynamic image, and one of its sizes."""
    b = Builder()
    image = b.input("x", TensorType(ElementType.FLOAT32, (n, 2, n * 2, m)))
    for _ in range(draw(st.integers(1, 3))):
        weights = np.zeros((2, 2, draw(st.integers(1, 4)), draw(st.integers(1, 4))), np.float32)
        operator: Any = draw(st.sampled_from([Conv2D, Conv2D, Conv2DTranspose]))
        named: dict[str, Any] = {
            "pads": [draw(_SMALL) for _ in range(4)],
            "strides": [1 + draw(_SMALL), 1 + draw(_SMALL)],
            "dilations": [1 + draw(_SMALL), 1 + draw(_SMALL)],
            "auto_pad": draw(st.sampled_from([AutoPad.NONE, AutoPad.NONE, AutoPad.SAME])),
        }
        image = b.add(operator, image, b.constant(weights), **named)
    b.output("y", image)
    return b.build(), {"n": draw(_PIXELS), "m": draw(_PIXELS)}


@st.composite
def _recurrent(draw: st.DrawFn) -> tuple[Model, Mapping[str, int]]:
    """Return a recurrent network whose states have another batch dimension."""
    b = Builder()
    operator, gates = draw(st.sampled_from([(GRU, 3), (LSTM, 4)]))
    x = b.input("x", TensorType(ElementType.FLOAT32, (m, n, 3)))
    batch: Dim = draw(st.sampled_from([n, m]))
    first = b.input("h", TensorType(ElementType.FLOAT32, (1, batch, 5)))
    w, r = (b.constant(np.zeros((1, 5 * gates, k), np.float32)) for k in (3, 5))
    b.output("y", b.add_all(operator, x, w, r, initial_hidden=first)[0])
    return b.build(), {"n": draw(_PIXELS), "m": draw(_PIXELS)}


@st.composite
def _places(draw: st.DrawFn) -> tuple[Model, Mapping[str, int]]:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (n, m, 3)))
    drawn: list[tuple[Dim, ...]] = [(n, m, 1), (m, m, 1), (m, n, 1), (2, m, 1)]
    sizes = draw(st.sampled_from(drawn))
    places = b.input("i", TensorType(ElementType.INT64, sizes))
    b.output("y", b.add(GatherND, x, places, draw(st.integers(0, 2))))
    return b.build(), {"n": draw(_PIXELS), "m": draw(_PIXELS)}


@given(st.one_of(_windows(), _recurrent(), _places()))
def test_sizes_fit_where_the_definition_takes_them(
    drawn: tuple[Model, Mapping[str, int]],
) -> None:
    """The conditions never hold for sizes that operators refuse."""
    model, sizes = drawn
    every = model.operations
    fits = [fit_of(operation) for operation in every]
    assert None not in fits
    shown = all(
        substitute(one, sizes) == substitute(other, sizes)
        for fit in fits
        for one, other in (fit.equal if fit is not None else ())
    ) and all(
        int(str(substitute(size, sizes))) > 0
        for fit in fits
        for size in (fit.positive if fit is not None else ())
    )
    taken = _is_taken(every, sizes)
    assert taken or not shown
    nothing = any(0 in _sized(o.type.shape or (), sizes) for one in every for o in one.outputs)
    assert shown or not taken or nothing


def _is_taken(operations: Sequence[Operation], sizes: Mapping[str, int]) -> bool:
    """Return whether operations can be inferred with sizes, one after the other."""
    known: dict[Operand, Operand] = {}
    for operation in operations:
        inputs = tuple(
            operand
            if operand is None or operand.is_constant
            else known.setdefault(
                operand, Operand(operand.name, operand.type.substitute(dict(sizes)))
            )
            for operand in operation.inputs
        )
        try:
            made = operation.with_inputs(inputs).infer()
        except (ModelError, ValueError):
            return False
        for output, type_ in zip(operation.outputs, made, strict=True):
            known[output] = Operand(output.name, type_)
    return True


def _sized(shape: Sequence[Dim], sizes: Mapping[str, int]) -> list[Dim]:
    return [substitute(size, dict(sizes)) for size in shape]
