"""Operations whose sizes fit in every run."""

from __future__ import annotations

from typing import Any

import pytest

from crosschip.devices.onnxruntime.unchecked import UNCHECKED
from crosschip.hal.checking import Needed
from crosschip.hal.fitting import is_known_to_fit
from crosschip.hal.sizes import Sizes
from crosschip.ir import (
    Builder,
    Dim,
    ElementType,
    Operation,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ops.standard.indexing import GatherElements
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.normalization import InstanceNormalization, LayerNormalization

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
        (Concat, [(n, m, 4), (m, 1, 4)], [1], False),
        (Concat, [(n, m, 4), (3, 1, 4)], [1], False),
        (Concat, [(n, unknown()), (n, unknown())], [1], True),
        (Concat, [(unknown(), 4), (unknown(), 4)], [1], False),
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
    assert is_known_to_fit(_operation(operator, shapes, *more)) is fits


@pytest.mark.parametrize(
    ("picked", "axis", "fits"), [((n, m), 1, True), ((n, 3), 1, True), ((n, 3), 0, False)]
)
def test_elements_are_beside_others_of_the_same_size(
    picked: tuple[Dim, ...], axis: int, fits: bool
) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (n, m)))
    b.output(
        "y", b.add(GatherElements, x, b.input("i", TensorType(ElementType.INT64, picked)), axis)
    )
    assert is_known_to_fit(b.build().operations[-1]) is fits


def test_what_fits_always_is_not_checked_in_runs() -> None:
    for second, checked in ((n, False), (m, True)):
        b = Builder()
        parts = [
            b.input(f"x{index}", TensorType(ElementType.FLOAT32, (size, 4)))
            for index, size in enumerate((n, second))
        ]
        b.output("y", b.add(Concat, parts, 1))
        needed = Needed.UNLESS_AGREEING if checked else Needed.NEVER
        assert Sizes("engine", b.build(), UNCHECKED, ()).checks.needed is needed
