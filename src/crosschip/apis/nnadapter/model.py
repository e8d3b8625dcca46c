"""NNAdapter's functions that build a model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.buffers import byte_view
from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.building import build, infer
from crosschip.apis.nnadapter.context import NNAdapterContext
from crosschip.apis.nnadapter.enumerations import (
    NNADAPTER_UNKNOWN,
    NNAdapterOperationCode,
)
from crosschip.apis.nnadapter.enumerations import NNAdapterOperandLifetimeCode as Lifetime
from crosschip.apis.nnadapter.graph import (
    NNAdapterModel,
    NNAdapterOperand,
    NNAdapterOperation,
)
from crosschip.apis.nnadapter.results import (
    invalid,
    invalid_dimensions,
    live,
    returns_code,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnadapter.types import NNAdapterOperandType
from crosschip.ir import Array
from crosschip.runtime.compile.front_door import explain
from crosschip.runtime.options import ShapeOptions


@returns_value
def NNAdapterModel_create() -> NNAdapterModel:
    """Create an empty model."""
    return NNAdapterModel()


@returns_nothing
def NNAdapterModel_destroy(model: NNAdapterModel | None) -> None:
    """Release a model with its operands and operations; `None` is ignored."""
    if model is not None:
        live(model, NNAdapterModel).destroy()


@returns_value
def NNAdapterModel_addOperand(
    model: NNAdapterModel, type: NNAdapterOperandType
) -> NNAdapterOperand:
    """Add an operand; its type is copied, and its lifetime is set.

    For a constant or a model input, no axes mean rank 0; for an operation's output, the shape is
    inferred.
    """
    model = _unfinished(model)
    types.check(type)
    operand = NNAdapterOperand(model, type)
    model.operands.append(operand)
    return operand


@returns_code
def NNAdapterModel_setOperandValue(operand: NNAdapterOperand, buffer: Any, copy: bool) -> None:
    """Make an operand a constant.

    Args:
        operand: the operand, whose shape is static.
        buffer: the elements: a contiguous object with Python's buffer protocol and as many
            bytes as the type takes.
        copy: whether to copy the elements; if not, they must not change while the model is
            used.
    """
    operand = live(operand, NNAdapterOperand)
    model = _unfinished(operand.model)
    if operand in model.inputs or operand in model.outputs:
        raise invalid(f"{operand.name} is an input or output of the model, and so no constant")
    operand.value = _elements(operand.declared, buffer, copy=bool(copy))
    operand.type.lifetime = (
        Lifetime.NNADAPTER_CONSTANT_COPY if copy else Lifetime.NNADAPTER_CONSTANT_REFERENCE
    )


@returns_value
def NNAdapterModel_getOperandType(operand: NNAdapterOperand) -> NNAdapterOperandType:
    """Return an operand's type, including what operations added so far have inferred."""
    return live(operand, NNAdapterOperand).type.copy()


@returns_value
def NNAdapterModel_addOperation(
    model: NNAdapterModel,
    type: int,
    input_operands: Sequence[NNAdapterOperand | None] | None,
    output_operands: Sequence[NNAdapterOperand],
) -> NNAdapterOperation:
    """Add an operation.

    The operator's rules are checked when the model is finished.

    Args:
        model: the model.
        type: the operator, an `NNAdapterOperationCode`.
        input_operands: the inputs, in the operator's order; `None` for an omitted optional
            input.
        output_operands: the outputs, in the operator's order.
    """
    model = _unfinished(model)
    if type not in NNAdapterOperationCode._value2member_map_:
        raise invalid(f"there is no operator {type!r}")
    inputs = [None if o is None else _operand_of(model, o) for o in input_operands or ()]
    outputs = [_operand_of(model, operand) for operand in _check_not_empty(output_operands)]
    code = NNAdapterOperationCode(type)
    operation = NNAdapterOperation(len(model.operations), code, inputs, outputs)
    model.operations.append(operation)
    with contextlib.suppress(Exception):  # finishing the model reports the error
        infer(model, operation)
    return operation


@returns_code
def NNAdapterModel_identifyInputsAndOutputs(
    model: NNAdapterModel,
    input_operands: Sequence[NNAdapterOperand] | None,
    output_operands: Sequence[NNAdapterOperand],
) -> None:
    """Set the model's inputs and outputs, in order; replaces an earlier call's."""
    model = _unfinished(model)
    inputs = [_operand_of(model, operand) for operand in input_operands or ()]
    outputs = [_operand_of(model, operand) for operand in _check_not_empty(output_operands)]
    if len(set(inputs) | set(outputs)) < len(inputs) + len(outputs):
        raise invalid("an operand is identified twice")
    for operand in (*inputs, *outputs):
        if operand.value is not None:
            raise invalid(f"{operand.name} is a constant, and so no input or output of the model")
    for operand in (*model.inputs, *model.outputs):
        operand.type.lifetime = Lifetime.NNADAPTER_TEMPORARY_VARIABLE
    for operand in inputs:
        operand.type.lifetime = Lifetime.NNADAPTER_MODEL_INPUT
    for operand in outputs:
        operand.type.lifetime = Lifetime.NNADAPTER_MODEL_OUTPUT
    model.inputs, model.outputs = inputs, outputs


@returns_code
def NNAdapterModel_finish(model: NNAdapterModel) -> None:
    """Check the model and build it; may be called once."""
    model = _unfinished(model)
    model.finished = build(model)
    model.draft = None


@returns_value
def NNAdapterModel_getSupportedOperations(
    model: NNAdapterModel, context: NNAdapterContext
) -> list[bool]:
    """Return for each operation, in the order added, whether a context's device runs it."""
    model = live(model, NNAdapterModel)
    devices = live(context, NNAdapterContext)
    if model.finished is None:
        raise invalid("the model has not been finished")
    placement = explain(
        model.finished.model,
        devices.names,
        shapes=ShapeOptions(ranges=model.finished.ranges),
        properties=devices.properties,
        threads=devices.threads,
        precision=devices.precision,
        cache=False,
    )
    missing = {origin for decision in placement.unplaced for origin in decision.operation.origins}
    unsupported = {output for origin in missing for output in origin.outputs}
    return [
        not any(operand.name in unsupported for operand in operation.outputs)
        for operation in model.operations
    ]


def _unfinished(model: NNAdapterModel) -> NNAdapterModel:
    """Return a model after checking that it has not been finished."""
    model = live(model, NNAdapterModel)
    if model.finished is not None:
        raise invalid("the model has been finished, and cannot change")
    return model


def _operand_of(model: NNAdapterModel, operand: object) -> NNAdapterOperand:
    operand = live(operand, NNAdapterOperand)
    if operand.model is not model:
        raise invalid(f"{operand.name} is an operand of another model")
    return operand


def _check_not_empty(operands: Sequence[NNAdapterOperand] | None) -> Sequence[NNAdapterOperand]:
    if not operands:
        raise invalid("there are no output operands")
    return operands


def _elements(type_: NNAdapterOperandType, buffer: Any, *, copy: bool) -> Array:
    """Return a buffer's elements in the stored shape."""
    shape = type_.dimensions.data
    if NNADAPTER_UNKNOWN in shape:
        raise invalid_dimensions(f"a constant has known sizes, not {shape}")
    dtype = types.element_type(type_.precision).dtype
    content = byte_view(buffer)
    expected = math.prod(shape) * dtype.itemsize
    if content.size != expected:
        raise invalid(
            f"the value has {content.size} bytes, but {shape} of {dtype} takes {expected}"
        )
    array = content != 0 if dtype == np.bool_ else content.view(dtype)
    array = array.reshape(shape)
    return array.copy() if copy or not array.flags.aligned else array
