"""Padding on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import Example, adds, agree, claimed_example, integers, number

from crosschip.ir import Builder, ElementType, ModelError
from crosschip.ops.standard.padding import Pad, PadMode

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

MATRIX = (3, 4)
CLAIMS: dict[str, Example] = {
    "PAD": (lambda b, x: b.add(Pad, x, (1, 0, 2, 3)), (MATRIX,)),
    "PAD cropped": (lambda b, x: b.add(Pad, x, (-1, 0, 2, -3)), (MATRIX,)),
    "lists PAD": (lambda b, x: b.add(Pad, x, (1, 2)), ((5,),)),
    **{
        f"PAD {mode.name}": (lambda b, x, mode=mode: b.add(Pad, x, (1, 0, 2, 1), mode), (MATRIX,))
        for mode in PadMode
    },
}
DECOMPOSED = {"onnxruntime": {"PAD SYMMETRIC"}, "openvino": {"PAD WRAP"}}
"""The examples that engines leave to others."""


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_pads(check: Checker, dtype: type[np.integer]) -> None:
    pads = integers(1, 0, 0, 2, dtype=dtype)
    check(adds("PAD"), (2, 2), pads, symbolic_too=False, rankless_too=False)


def test_pads_that_are_computed(check: Checker) -> None:
    """Repeating modes need the pads for comparison with the size."""

    def build(b: Builder, x: Any, pads: Any) -> Any:
        return b.add(Pad, x, pads, PadMode.REFLECT)

    check.declines(build, (2, 3), np.array([1, 0, 0, 1]), why="pads: ")


def test_padding_wider_than_the_input_is_declined(check: Checker) -> None:
    for mode, most in ((PadMode.REFLECT, 2), (PadMode.WRAP, 3), (PadMode.EDGE, 3)):
        if mode is PadMode.REFLECT:
            rankless = check.device.name == "onnxruntime"
            for pads, shape in (((0, 7), (3,)), ((5, 0, 0, 2), (1, 2))):
                check(
                    lambda b, x, p=pads, m=mode: b.add(Pad, x, p, m), shape, rankless_too=rankless
                )
            continue
        check.declines(
            lambda b, x, mode=mode, most=most: b.add(Pad, x, (0, most + 1), mode),
            (3,),
            why="mode" if mode is PadMode.WRAP else "PAD.pads: ",
        )
        check.declines(lambda b, x, mode=mode: b.add(Pad, x, (-1, 1), mode), (3,), why="PAD.")


@pytest.mark.parametrize("value", [0, 3])
def test_numbers_are_not_padded(check: Checker, value: int) -> None:
    agree(check, adds("PAD", []), [number(value)], check.static)


def test_pads_of_each_axis(check: Checker) -> None:
    with pytest.raises(ModelError, match="pads: has shape"):
        check.built(adds("PAD"), [number(2).reshape(1), integers()])
