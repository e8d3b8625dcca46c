"""Conditions of a placement as plain data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosschip.hal.conditions import Condition, InputRange, SizeRange
from crosschip.ir import Model
from crosschip.ir.encoding import Fresh, decode_size, encode_size
from crosschip.ir.types import INTEGERS


def describe_condition(condition: Condition, *, named: bool = False) -> dict[str, Any]:
    """Return a condition as plain JSON values; `named` is as for `encode_size`."""
    described = {"range": [condition.low, condition.high], "device": condition.device}
    if isinstance(condition, InputRange):
        return {**described, "input": condition.input}
    return {**described, "size": encode_size(condition.size, named=named)}


def restore_condition(
    plain: Mapping[str, Any], model: Model, fresh: Fresh | None = None
) -> Condition:
    """Return the condition on inputs of a model that `describe_condition` described.

    Raises:
        LookupError, TypeError, ValueError: the value is malformed.
    """
    low, high = map(int, plain["range"])
    device = str(plain["device"])
    if "size" in plain:
        return SizeRange(decode_size(plain["size"], fresh), low, high, device)
    name = str(plain["input"])
    if model.inputs[name].type.element_type not in INTEGERS:
        raise ValueError(f"input {name!r} has a range, but is of no integers")
    return InputRange(name, low, high, device)
