"""A model as a C program that makes NNRt's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from crosschip.apis.nnrt.calls import Calls
from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_TensorType
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
    weights = Weights([value for _, value in calls.tensors])
    return write(folder, name, _TEMPLATE, _tables(calls, weights), weights)


def _tables(calls: Calls, weights: Weights) -> str:
    """Return the C tables that describe this model."""
    scales: list[float] = []
    zeros: list[int] = []
    tensors = list(_tensors(calls, weights, scales, zeros))
    indices = [*calls.inputs, *calls.outputs]
    operations: list[str] = []
    for call in calls.operations:
        counts = (len(call.parameters), len(call.inputs), len(call.outputs))
        operations.append(f"{{{call.code.name}, {len(indices)}, {_join(counts)}}},")
        indices += (*call.parameters, *call.inputs, *call.outputs)
    return "\n".join(
        [
            f"enum {{ INPUTS = {len(calls.inputs)}, OUTPUTS = {len(calls.outputs)} }};",
            f"static const size_t WEIGHTS = {weights.size};",
            f"static const double SCALES[] = {{{_join(map(float.hex, scales or [0.0]))}}};",
            f"static const int32_t ZEROS[] = {{{_join(zeros or [0])}}};",
            "static const Tensor TENSORS[] = {",
            *tensors,
            "};",
            "static uint32_t INDICES[] = {",
            *statement(_join(indices)),
            "};",
            "static const Operation OPERATIONS[] = {",
            *(line for operation in operations for line in statement(operation)),
            "};",
        ]
    )


def _tensors(
    calls: Calls, weights: Weights, scales: list[float], zeros: list[int]
) -> Iterator[str]:
    """Yield the tensors' table entries; append their scales and zero points to the lists."""
    for (tensor, value), offset in zip(calls.tensors, weights.offsets, strict=True):
        first, quantization = len(scales), tensor.quantParam
        if quantization is not None:
            scales.extend(map(float, quantization.scale))
            zeros.extend(quantization.zeroPoint)
        location = (0, 0) if value is None else (offset, value.nbytes)
        entry = [
            OH_NN_DataType(tensor.dataType).name,
            OH_NN_TensorType(tensor.type).name,
            len(tensor.dimensions),
            f"{{{_join(tensor.dimensions or [0])}}}",
            *(len(scales) - first, first),
            *location,
        ]
        yield from statement(f"{{{_join(entry)}}},")


def _join(values: Sequence[object] | Iterator[object] | map[str]) -> str:
    return ", ".join(map(str, values))
