"""Operations that a table of converters supports and rejects."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from crosschip.hal import Converters
from crosschip.ir import Builder, ElementType, Operation, TensorType
from crosschip.ops.standard.comparison import Equal

BOOL, FLOAT, INT = ElementType.BOOL, ElementType.FLOAT32, ElementType.INT32


def equal(type_: ElementType) -> Operation:
    b = Builder("model")
    x = b.input("x", TensorType(type_, (2,)))
    b.output("y", b.add(Equal, x, x))
    (operation,) = b.build().operations
    return operation


def reason(table: Collection[ElementType], type_: ElementType, **said: Any) -> str:
    converters: Converters[Any, Any] = Converters(types=table)
    converters.converts(Equal, **said)(lambda graph, op: None)
    return converters.supports(equal(type_)).reason


@pytest.mark.parametrize(
    ("said", "type_", "told"),
    [
        ({}, FLOAT, "EQUAL.output: bool is not supported"),
        ({"output_types": {BOOL}}, FLOAT, ""),
        ({"output_types": {BOOL}}, BOOL, "EQUAL.input0: bool is not supported"),
        ({"types": {INT}, "output_types": {BOOL}}, INT, ""),
        ({"types": {INT}, "output_types": {BOOL}}, FLOAT, "EQUAL.input0: float32 is not supported"),
        ({"types": {INT}}, INT, "EQUAL.output: bool is not supported"),
    ],
)
def test_types_of_inputs_and_outputs_are_said_apart(
    said: dict[str, Any], type_: ElementType, told: str
) -> None:
    assert reason({FLOAT}, type_, **said) == told
