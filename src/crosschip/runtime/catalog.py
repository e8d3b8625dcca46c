"""Descriptions of operators as data, for the command line and the documentation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from inspect import cleandoc, getdoc
from typing import Any

from crosschip.hal import Options
from crosschip.mapping.common import HDI_CODES, NNADAPTER_CODES, NNRT_CODES
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, opset_mapping
from crosschip.mapping.translation import row_of
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.slots import Parameter, Slot
from crosschip.runtime.coverage import coverage, parts_of
from crosschip.runtime.guard.devices import GuardedDevice


def describe(
    operator: type[Operator], devices: Sequence[GuardedDevice], options: Options | None = None
) -> dict[str, Any]:
    """Describe an operator as plain data: names in other opsets, slots, decomposition, devices.

    Returns:
        `name`, `summary`, `package` (`None` for a standard operator); its names in `nnadapter` (or
        `None`), `nnrt`, `hdi` and `onnx`; `mapping`, with codes, operand orders, parameters and
        translations; `slots`; `core`; `decomposes` (the operators of an example's decomposition,
        empty if there is none); and `devices`: for each `yes`, `decomposed`, or the reason why it
        does not support the operator.
    """
    mapping = opset_mapping(operator)
    return {
        "name": operator.type,
        "summary": " ".join(documentation(operator).split("\n\n")[0].split()),
        "package": operator.package if issubclass(operator, PackagedOperator) else None,
        "nnadapter": operator.type if mapping.nnadapter else None,
        "nnrt": [foreign.name for foreign in mapping.nnrt],
        "hdi": list(dict.fromkeys(foreign.name for foreign in mapping.hdi)),
        "onnx": list(mapping.onnx),
        "opsets": {
            "nnadapter": mapping.nnadapter and _row(operator, mapping.nnadapter),
            "nnrt": [_nnrt(operator, foreign) for foreign in mapping.nnrt],
            "hdi": [_hdi(operator, foreign) for foreign in mapping.hdi],
        },
        "slots": [_slot(slot) for slot in operator.slots],
        "core": operator.core,
        "decomposes": list(parts_of(operator)),
        "devices": {
            device.name: coverage(operator, device, options or Options()) for device in devices
        },
    }


def documentation(operator: type[Operator]) -> str:
    """Return the docstring of an operator, with the rules of its base classes."""
    parts = [getdoc(operator) or ""]
    for base in operator.__mro__[1:]:
        if base is Operator or issubclass(operator, PackagedOperator):
            break
        # The first paragraph says what the base is for.
        parts += (cleandoc(base.__doc__ or "")).split("\n\n")[1:]
    return "\n\n".join(parts)


def _row(operator: type[Operator], foreign: NNAdapter) -> dict[str, Any]:
    row = row_of(operator, foreign.operands, foreign.other_rules, NNADAPTER_CODES)
    operands = [rule.slot for rule in row.operands]
    return {"code": foreign.code, "operands": operands, "translation": row.text}


def _nnrt(operator: type[Operator], foreign: NNRt) -> dict[str, Any]:
    row = row_of(operator, foreign.operands, foreign.other_rules, NNRT_CODES)
    slots = [rule.slot for rule in row.operands]
    return {
        "code": foreign.code,
        "name": foreign.name,
        "inputs": slots[: len(foreign.inputs)],
        "parameters": dict(zip(foreign.parameters, slots[len(foreign.inputs) :], strict=True)),
        "translation": row.text,
    }


def _hdi(operator: type[Operator], foreign: HDI) -> dict[str, Any]:
    row = row_of(operator, foreign.operands, foreign.other_rules, HDI_CODES)
    slots = [rule.slot for rule in row.operands]
    return {
        "code": foreign.code,
        "name": foreign.name,
        "since": "V{}_{}".format(*foreign.since),
        "inputs": slots[: len(foreign.inputs)],
        "attributes": dict(zip(foreign.attributes, slots[len(foreign.inputs) :], strict=True)),
        "translation": row.text,
    }


def _slot(slot: Slot) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": slot.name,
        "kind": slot.kind,
        "types": sorted(map(str, slot.types)),
        "quantized": slot.takes_reals,
        "optional": slot.optional,
    }
    if slot.like:
        described["like"] = slot.like
    if isinstance(slot, Parameter):
        if slot.optional:
            described["default"] = _plain(slot.default)
        if slot.options:
            described["options"] = {option.name: option.value for option in slot.options}
    return described


def _plain(value: object) -> object:
    """Return a parameter's value as JSON."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
