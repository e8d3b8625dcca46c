"""Tiling, rolling, reversal and triangular parts on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import Example, adds, agree, claimed_example, integers, number

from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import ElementType
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

MATRIX = (3, 4)
CLAIMS: dict[str, Example] = {
    "TILE": (lambda b, x: b.add(Tile, x, (2, 3)), (MATRIX,)),
    "TILE on the last axes": (lambda b, x: b.add(Tile, x, (2, 3)), ((2, 2, 2, 2),)),
    "lists TILE": (lambda b, x: b.add(Tile, x, (3,)), ((5,),)),
    "ROLL": (lambda b, x: b.add(Roll, x, (5, -1), (1, 0)), (MATRIX,)),
    "lists ROLL": (lambda b, x: b.add(Roll, x, (2,), (0,)), ((5,),)),
    "REVERSE_SEQUENCE": (
        lambda b, x: b.add(ReverseSequence, x, b.constant(np.array([2, 0, 3, 1]))),
        ((3, 4, 2),),
    ),
    "TRILU": (lambda b, x: b.add(Trilu, x, 1, False), ((2, 3, 4),)),
    "TRILU upper": (lambda b, x: b.add(Trilu, x, -1), ((2, 3, 4),)),
}
DECOMPOSED = {
    "onnxruntime": {"TILE on the last axes", "ROLL", "lists ROLL"},
    "openvino": {"TRILU", "TRILU upper"},
}
"""The examples that engines leave to others."""


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_repeats(check: Checker, dtype: type[np.integer]) -> None:
    repeats = integers(2, 3, dtype=dtype)
    if check.device.name == "openvino":
        why = "TILE.repeats: is computed, and may repeat along several axes"
        check.declines(adds("TILE"), (2, 2), repeats, why=why)
    else:
        check(adds("TILE"), (2, 2), repeats, symbolic_too=False, rankless_too=False)


@pytest.mark.parametrize("repeats", [(1, 2, 1, 2), (2, 2, 2, 1), (1, 2, 1, 2, 1)])
@pytest.mark.parametrize("shape", [(2,), (2, 3), (3, 1)])
def test_several_repeats(check: Checker, shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    agree(check, adds("TILE", repeats), [array], check.symbolic)


@pytest.mark.parametrize("repeats", [[2, 1, 2, 2, 2], [2, 3], [3]])
def test_more_or_fewer_repeats_than_axes(check: Checker, repeats: list[int]) -> None:
    array = np.arange(8, dtype=np.float32)
    agree(check, adds("TILE", repeats), [array.reshape(2, 2, 2, 1)], check.static)
    agree(check, adds("TILE", repeats), [array.reshape(8, 1)], check.static)


def test_repeated_along_no_axes(check: Checker) -> None:
    agree(check, adds("TILE", []), [np.array([3, 4], np.float32)], check.static)


@pytest.mark.parametrize("value", [0, 3])
def test_numbers_are_not_repeated(check: Checker, value: int) -> None:
    agree(check, adds("TILE", []), [number(value)], check.static)


def test_rolled_along_no_axes(check: Checker) -> None:
    model = check.built(adds("ROLL", shifts=[], axes=[]), [number(3)], check.static)
    assert check.outputs_of(ReferenceDevice(), model, [number(3)])[0] == 3
    agree(check, adds("ROLL", shifts=[], axes=[]), [number(3)], check.static)
