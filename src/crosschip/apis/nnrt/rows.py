"""NNRt's operators: the rows of their opset mappings, and the types of their parameters."""

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

_ENDINGS: Mapping[tuple[OH_NN_DataType, ...], Sequence[str]] = {
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
"""The ends of the names of parameters that are not int64. Where document and source differ, either
type is taken."""


class Entry(NamedTuple):
    """A standard operator that stands for one of NNRt's, or for a case of it.

    Attributes:
        row: its row, with the inputs first and then the parameters.
        inputs: how many inputs there are.
        parameters: the parameters.
        outputs: how many outputs there are; `None` if one or more.
    """

    row: Row
    inputs: int
    parameters: tuple[OH_NN_TensorType, ...]
    outputs: int | None


@cache
def rows() -> Mapping[OH_NN_OperationType, Sequence[Entry]]:
    """Every operator of NNRt, by code."""
    by_code: dict[OH_NN_OperationType, list[Entry]] = {}
    for entries in uses().values():
        for code, entry in entries:
            by_code.setdefault(code, []).append(entry)
    return by_code


@cache
def uses() -> Mapping[type[Operator], Sequence[tuple[OH_NN_OperationType, Entry]]]:
    """NNRt's operators that a standard operator stands for, the first of which is written."""
    by_operator: dict[type[Operator], list[tuple[OH_NN_OperationType, Entry]]] = {}
    for operator in operators().values():
        for foreign in opset_mapping(operator).nnrt:
            row = row_of(operator, foreign.operands, foreign.other_rules, NNRT_CODES)
            types = [
                OH_NN_TensorType[f"OH_NN_{foreign.name}_{name}"] for name in foreign.parameters
            ]
            entry = Entry(row, len(foreign.inputs), tuple(types), foreign.outputs)
            by_operator.setdefault(operator, []).append((OH_NN_OperationType(foreign.code), entry))
    return by_operator


@cache
def parameter_types(type_: OH_NN_TensorType) -> tuple[OH_NN_DataType, ...]:
    """The element types that a parameter may have; the first is the one to write."""
    for types, endings in _ENDINGS.items():
        if type_.name.endswith(tuple(endings)):
            return types
    return (_INT64,)


def expressed(entry: Entry, operation: Operator) -> Expressed:
    """Express an operation by NNRt's operator, its parameters in the types that they have there.

    Raises:
        UnsupportedError: it cannot be expressed; the message names the slot.
    """
    expression = export_operation(entry.row, operation)
    inputs = list(expression.inputs)
    rules = entry.row.operands[-len(entry.parameters) :] if entry.parameters else ()
    first = len(inputs) - len(entry.parameters)
    for place, (type_, rule) in enumerate(zip(entry.parameters, rules, strict=True), first):
        operand = inputs[place]
        if operand is not None:
            inputs[place] = _typed(operand, type_, rule.slot, operation)
    return expression._replace(inputs=tuple(inputs))


def _typed(operand: Operand, type_: OH_NN_TensorType, slot: str, operation: Operator) -> Operand:
    where = f"{operation.name!r}: {operation.type}.{slot}"
    if operand.value is None:
        raise UnsupportedError(f"{where}: must be constant in the target")
    array = np.asarray(operand.value)
    name = parameter_types(type_)[0].name.removeprefix("OH_NN_").lower()
    held = array.astype(name)
    if not np.array_equal(held, array):
        raise UnsupportedError(f"{where}: has no code for {array.tolist()}")
    parameter = getattr(type(operation), slot) if slot else None
    if isinstance(parameter, Parameter) and parameter.rank == 0:
        held = held.reshape(())
    return constant(held, operand.name)
