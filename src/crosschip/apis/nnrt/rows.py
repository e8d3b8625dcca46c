"""NNRt's operators: the rows of their opset mappings, and the element types of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_OperationType, OH_NN_TensorType
from crosschip.ir import Operand, UnsupportedError, constant
from crosschip.mapping.common import NNRT_CODES
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.translation import (
    Expressed,
    Row,
    export_operation,
    row_of,
)
from crosschip.ops import Operator, operators
from crosschip.ops.definition.slots import Parameter

_INT8 = OH_NN_DataType.OH_NN_INT8
_INT32 = OH_NN_DataType.OH_NN_INT32
_INT64 = OH_NN_DataType.OH_NN_INT64
_BOOL = OH_NN_DataType.OH_NN_BOOL
_FLOAT32 = OH_NN_DataType.OH_NN_FLOAT32

_SUFFIXES: Mapping[tuple[OH_NN_DataType, ...], Sequence[str]] = {
    (_INT8,): ("_ACTIVATIONTYPE", "_ACTIVATION_TYPE", "_PAD_MODE", "ELTWISE_MODE"),
    (_INT32, _INT8): ("_COORDINATE_TRANSFORM_MODE",),
    (_INT32,): ("_ROUND_MODE", "_PADDING_MODE", "DEPTH_TO_SPACE_MODE", "_NORM_REGION"),
    (_INT64, _INT32): ("LAYER_NORM_BEGIN_NORM_AXIS", "LAYER_NORM_BEGIN_PARAM_AXIS", "TOP_K_AXIS"),
    (_INT64, _BOOL): ("OH_NN_ALL_KEEP_DIMS",),
    (_BOOL,): (
        *("_KEEP_DIMS", "_KEEPDIMS", "_REDUCE_TO_END", "_GLOBAL", "_HAS_BIAS", "_USE_AXIS"),
        *("_OUT_MAX_VALUE", "_USE_REGULAR_NMS", "_OUT_QUANTIZED", "GELU_APPROXIMATE"),
        *("_BIDIRECTIONAL", "MATMUL_TRANSPOSE_A", "MATMUL_TRANSPOSE_B", "TOP_K_SORTED"),
        *("_PRESERVE_ASPECT_RATIO", "_ELEMENTWISE_AFFINE"),
    ),
    (_FLOAT32,): (
        *("_EPSILON", "CLIP_MAX", "CLIP_MIN", "CONSTANT_OF_SHAPE_VALUE", "PROCESS_SCALE"),
        *("_THRESHOLD", "EXP_BASE", "EXP_SCALE", "EXP_SHIFT", "_NEGATIVE_SLOPE", "LRN_ALPHA"),
        *("LRN_BIAS", "LRN_BETA", "_DROPOUT", "_ZONEOUT_CELL", "_ZONEOUT_HIDDEN"),
        *("PAD_CONSTANT_VALUE", "POW_SCALE", "POW_SHIFT", "_COEFF"),
    ),
}
"""The name suffixes of parameters that are not int64. Where NNRt's document and reference
implementation differ, both types are accepted."""


class Entry(NamedTuple):
    """The mapping between an NNRt operator, or a case of it, and a standard operator.

    Attributes:
        row: the mapping row, with the inputs first and then the parameters.
        inputs: the number of inputs.
        parameters: the parameters.
        outputs: the number of outputs; `None` if variadic.
    """

    row: Row
    inputs: int
    parameters: tuple[OH_NN_TensorType, ...]
    outputs: int | None


@cache
def rows() -> Mapping[OH_NN_OperationType, Sequence[Entry]]:
    """Return the entries of each NNRt operator, by code."""
    by_code: dict[OH_NN_OperationType, list[Entry]] = {}
    for entries in by_operator().values():
        for code, entry in entries:
            by_code.setdefault(code, []).append(entry)
    return by_code


@cache
def by_operator() -> Mapping[type[Operator], Sequence[tuple[OH_NN_OperationType, Entry]]]:
    """Return the NNRt operators of each standard operator; the first is used for export."""
    entries: dict[type[Operator], list[tuple[OH_NN_OperationType, Entry]]] = {}
    for operator in operators().values():
        for foreign in opset_mapping(operator).nnrt:
            row = row_of(operator, foreign.operands, foreign.other_rules, NNRT_CODES)
            types = [
                OH_NN_TensorType[f"OH_NN_{foreign.name}_{name}"] for name in foreign.parameters
            ]
            entry = Entry(row, len(foreign.inputs), tuple(types), foreign.outputs)
            entries.setdefault(operator, []).append((OH_NN_OperationType(foreign.code), entry))
    return entries


@cache
def parameter_types(type_: OH_NN_TensorType) -> tuple[OH_NN_DataType, ...]:
    """Return the element types that a parameter may have; the first is used for export."""
    for types, suffixes in _SUFFIXES.items():
        if type_.name.endswith(tuple(suffixes)):
            return types
    return (_INT64,)


def convert_operation(entry: Entry, operation: Operator) -> Expressed:
    """Convert an operation to NNRt's operator, with parameters in NNRt's element types.

    Raises:
        UnsupportedError: the operation has no NNRt form; the message names the slot.
    """
    expression = export_operation(entry.row, operation)
    inputs = list(expression.inputs)
    rules = entry.row.operands[-len(entry.parameters) :] if entry.parameters else ()
    first = len(inputs) - len(entry.parameters)
    for index, (type_, rule) in enumerate(zip(entry.parameters, rules, strict=True), first):
        operand = inputs[index]
        if operand is not None:
            inputs[index] = _convert_parameter(operand, type_, rule.slot, operation)
    return expression._replace(inputs=tuple(inputs))


def _convert_parameter(
    operand: Operand, type_: OH_NN_TensorType, slot: str, operation: Operator
) -> Operand:
    context = f"{operation.name!r}: {operation.type}.{slot}"
    if operand.value is None:
        raise UnsupportedError(f"{context}: must be constant in the target")
    array = np.asarray(operand.value)
    name = parameter_types(type_)[0].name.removeprefix("OH_NN_").lower()
    converted = array.astype(name)
    if not np.array_equal(converted, array):
        raise UnsupportedError(f"{context}: has no code for {array.tolist()}")
    parameter = getattr(type(operation), slot) if slot else None
    if isinstance(parameter, Parameter) and parameter.rank == 0:
        converted = converted.reshape(())
    return constant(converted, operand.name)
