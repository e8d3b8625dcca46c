"""A model as a C program that makes NNAdapter's calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from crosschip.apis.nnadapter.calls import Calls
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandPrecisionCode as Precision
from crosschip.apis.nnadapter.types import (
    NNAdapterAsymmPerLayerQuantParams,
    NNAdapterOperandType,
    NNAdapterSymmPerChannelQuantParams,
    NNAdapterSymmPerLayerQuantParams,
)
from crosschip.apis.programs import Weights, Written, statement, write

_TEMPLATE = Path(__file__).with_name("program.c")


def write_program(calls: Calls, folder: Path, name: str) -> Written:
    """Write calls as a C program, with a file of the constants' elements.

    A comment at the program's beginning states its usage.

    Args:
        calls: the calls.
        folder: an existing folder.
        name: the program's name; the files are `name.c` and `name.weights`.
    """
    weights = Weights([value for _, value in calls.operands])
    return write(folder, name, _TEMPLATE, _build(calls, weights), weights)


def _build(calls: Calls, weights: Weights) -> str:
    """Return the C function that builds this model."""
    lines = [
        f"enum {{ INPUTS = {len(calls.inputs)}, OUTPUTS = {len(calls.outputs)} }};",
        f"static const size_t WEIGHTS = {weights.size};",
        "",
        "static NNAdapterModel *build(unsigned char *weights)",
        "{",
        "    NNAdapterModel *model;",
        f"    NNAdapterOperand *x[{max(1, len(calls.operands))}];",
        "",
        "    (void)weights;",
        "    CALL(NNAdapterModel_create(&model));",
    ]
    for index, ((type_, value), offset) in enumerate(
        zip(calls.operands, weights.offsets, strict=True)
    ):
        if value is None:
            lines += statement(f"x[{index}] = variable(model, {_type(type_)});")
        else:
            content = f"weights + {offset}, {value.nbytes}"
            lines += statement(f"x[{index}] = constant(model, {_type(type_)}, {content});")
    for call in calls.operations:
        inputs, outputs = _operands(call.inputs), _operands(call.outputs)
        lines += statement(f"operation(model, {call.code.name}, {inputs}, {outputs});")
    identified = f"{_operands(calls.inputs)}, {_operands(calls.outputs)}"
    lines += statement(f"CALL(NNAdapterModel_identifyInputsAndOutputs(model, {identified}));")
    lines += ["    CALL(NNAdapterModel_finish(model));", "    return model;", "}"]
    return "\n".join(lines)


def _operands(indices: Sequence[int | None]) -> str:
    """Return the C arguments for a list of operands: count and array."""
    names = ["NULL" if index is None else f"x[{index}]" for index in indices]
    return f"{len(names)}, OPERANDS({', '.join(names)})" if names else "0, NULL"


def _type(type_: NNAdapterOperandType) -> str:
    """Return the C expression of a type."""
    data = type_.dimensions.data
    text = f"type_of({Precision(type_.precision).name}, {len(data)}, {_sizes(data)})"
    shapes = type_.dimensions.dynamic_data
    if shapes:
        sizes = [size for shape in shapes for size in shape]
        text = f"among({text}, {len(shapes)}, {_sizes(sizes)})"
    params = type_.quantization
    if isinstance(params, NNAdapterSymmPerLayerQuantParams):
        text = f"per_layer({text}, {_float(params.scale)})"
    elif isinstance(params, NNAdapterAsymmPerLayerQuantParams):
        text = f"asymmetric({text}, {_float(params.scale)}, {params.zero_point})"
    elif isinstance(params, NNAdapterSymmPerChannelQuantParams):
        scales = f"(float[]){{{', '.join(map(_float, params.scales))}}}"
        text = f"per_channel({text}, {params.channel_dim}, {len(params.scales)}, {scales})"
    return text


def _sizes(sizes: Sequence[int]) -> str:
    return f"SIZES({', '.join(map(str, sizes)) or '0'})"


def _float(value: float) -> str:
    """Return a C literal of exactly this float32."""
    return re.sub(r"\.0p", "p", float(np.float32(value)).hex()) + "f"
