"""A model written out as a program in C that makes NNRt's calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from crosschip.apis.nnrt.calls import Calls
from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_TensorType
from crosschip.apis.programs import Weights, Written, statement, write

_TEMPLATE = Path(__file__).with_name("program.c")


def write_program(calls: Calls, folder: Path, name: str) -> Written:
    """Write calls as a program in C, with a file of the elements of constants.

    The program says at its beginning how it is called.

    Args:
        calls: the calls.
        folder: where to write; there is one already.
        name: the name of the program; the files are `name.c` and `name.weights`.
    """
    weights = Weights([value for _, value in calls.tensors])
    return write(folder, name, _TEMPLATE, _tables(calls, weights), weights)


def _tables(calls: Calls, weights: Weights) -> str:
    """Return the part of the program that is this model's."""
    scales: list[float] = []
    zeros: list[int] = []
    tensors = list(_tensors(calls, weights, scales, zeros))
    places = [*calls.inputs, *calls.outputs]
    operations: list[str] = []
    for call in calls.operations:
        counts = (len(call.parameters), len(call.inputs), len(call.outputs))
        operations.append(f"{{{call.code.name}, {len(places)}, {_listed(counts)}}},")
        places += (*call.parameters, *call.inputs, *call.outputs)
    return "\n".join(
        [
            f"enum {{ INPUTS = {len(calls.inputs)}, OUTPUTS = {len(calls.outputs)} }};",
            f"static const size_t WEIGHTS = {weights.size};",
            f"static const double SCALES[] = {{{_listed(map(float.hex, scales or [0.0]))}}};",
            f"static const int32_t ZEROS[] = {{{_listed(zeros or [0])}}};",
            "static const Tensor TENSORS[] = {",
            *tensors,
            "};",
            "static uint32_t PLACES[] = {",
            *statement(_listed(places)),
            "};",
            "static const Operation OPERATIONS[] = {",
            *(line for operation in operations for line in statement(operation)),
            "};",
        ]
    )


def _tensors(
    calls: Calls, weights: Weights, scales: list[float], zeros: list[int]
) -> Iterator[str]:
    """Yield the entries of tensors; their scales are added to those of the others."""
    for (tensor, value), place in zip(calls.tensors, weights.offsets, strict=True):
        first, quantization = len(scales), tensor.quantParam
        if quantization is not None:
            scales.extend(map(float, quantization.scale))
            zeros.extend(quantization.zeroPoint)
        where = (0, 0) if value is None else (place, value.nbytes)
        entry = [
            OH_NN_DataType(tensor.dataType).name,
            OH_NN_TensorType(tensor.type).name,
            len(tensor.dimensions),
            f"{{{_listed(tensor.dimensions or [0])}}}",
            *(len(scales) - first, first),
            *where,
        ]
        yield from statement(f"{{{_listed(entry)}}},")


def _listed(values: Sequence[object] | Iterator[object] | map[str]) -> str:
    return ", ".join(map(str, values))
