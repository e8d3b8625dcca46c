"""Functions that build a model."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.buffers import octets
from crosschip.apis.nnadapter import operands as types
from crosschip.apis.nnadapter.building import build, learn
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
    live,
    misshapen,
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
    """Make an empty model."""
    return NNAdapterModel()


@returns_nothing
def NNAdapterModel_destroy(model: NNAdapterModel | None) -> None:
    """Release a model, with its operands and operations; `None` is nothing to release."""
    if model is not None:
        live(model, NNAdapterModel).destroy()


@returns_value
def NNAdapterModel_addOperand(
    model: NNAdapterModel, type: NNAdapterOperandType
) -> NNAdapterOperand:
    """Add an operand; its type is copied, and its lifetime is set.

    No axes are those of a single element where the operand is a constant or an input of the model;
    for what operations make, the shape is found then.
    """
    building = _building(model)
    types.check(type)
    operand = NNAdapterOperand(building, type)
    building.operands.append(operand)
    return operand


@returns_code
def NNAdapterModel_setOperandValue(operand: NNAdapterOperand, buffer: Any, copy: bool) -> None:
    """Make an operand a constant.

    Args:
        operand: the operand, whose sizes are known.
        buffer: its elements: what has Python's buffer protocol, contiguous and of as many bytes as
            the type says.
        copy: whether to copy them; else they must stay as they are while the model is used.
    """
    own = live(operand, NNAdapterOperand)
    model = _building(own.model)
    if own in model.inputs or own in model.outputs:
        raise invalid(f"{own.name} is an input or output of the model, and so no constant")
    own.value = _elements(own.declared, buffer, copy=bool(copy))
    own.type.lifetime = (
        Lifetime.NNADAPTER_CONSTANT_COPY if copy else Lifetime.NNADAPTER_CONSTANT_REFERENCE
    )


@returns_value
def NNAdapterModel_getOperandType(operand: NNAdapterOperand) -> NNAdapterOperandType:
    """An operand's type as far as it is known: operations have told that of what they make."""
    return live(operand, NNAdapterOperand).type.copy()


@returns_value
def NNAdapterModel_addOperation(
    model: NNAdapterModel,
    type: int,
    input_operands: Sequence[NNAdapterOperand | None] | None,
    output_operands: Sequence[NNAdapterOperand],
) -> NNAdapterOperation:
    """Add an operation.

    Whether it keeps to its operator's rules is found when the model is finished.

    Args:
        model: the model.
        type: its operator, an `NNAdapterOperationCode`.
        input_operands: the operands that it reads, in the operator's order; `None` where an
            optional one is left out.
        output_operands: the operands that it makes, in the operator's order.
    """
    building = _building(model)
    if type not in NNAdapterOperationCode._value2member_map_:
        raise invalid(f"there is no operator {type!r}")
    read = [None if o is None else _own(building, o) for o in input_operands or ()]
    outputs = [_own(building, operand) for operand in _listed(output_operands)]
    code = NNAdapterOperationCode(type)
    operation = NNAdapterOperation(len(building.operations), code, read, outputs)
    building.operations.append(operation)
    with contextlib.suppress(Exception):  # finishing tells what is wrong
        learn(building, operation)
    return operation


@returns_code
def NNAdapterModel_identifyInputsAndOutputs(
    model: NNAdapterModel,
    input_operands: Sequence[NNAdapterOperand] | None,
    output_operands: Sequence[NNAdapterOperand],
) -> None:
    """Say which operands are the model's inputs and outputs, in this order; the last call holds."""
    building = _building(model)
    inputs = [_own(building, operand) for operand in input_operands or ()]
    outputs = [_own(building, operand) for operand in _listed(output_operands)]
    if len(set(inputs) | set(outputs)) < len(inputs) + len(outputs):
        raise invalid("an operand is identified twice")
    for operand in (*inputs, *outputs):
        if operand.value is not None:
            raise invalid(f"{operand.name} is a constant, and so no input or output of the model")
    for operand in (*building.inputs, *building.outputs):
        operand.type.lifetime = Lifetime.NNADAPTER_TEMPORARY_VARIABLE
    for operand in inputs:
        operand.type.lifetime = Lifetime.NNADAPTER_MODEL_INPUT
    for operand in outputs:
        operand.type.lifetime = Lifetime.NNADAPTER_MODEL_OUTPUT
    building.inputs, building.outputs = inputs, outputs


@returns_code
def NNAdapterModel_finish(model: NNAdapterModel) -> None:
    """Check the whole model and end building it; can be done once."""
    building = _building(model)
    building.finished = build(building)
    building.draft = None


@returns_value
def NNAdapterModel_getSupportedOperations(
    model: NNAdapterModel, context: NNAdapterContext
) -> list[bool]:
    """Tell of each operation, in the order added, whether one of a context's devices runs it."""
    own = live(model, NNAdapterModel)
    devices = live(context, NNAdapterContext)
    if own.finished is None:
        raise invalid("the model has not been finished")
    placement = explain(
        own.finished.model,
        devices.names,
        shapes=ShapeOptions(ranges=own.finished.ranges),
        properties=devices.properties,
        threads=devices.threads,
        precision=devices.precision,
        cache=False,
    )
    missing = {origin for decision in placement.unplaced for origin in decision.operation.origins}
    unsupported = {output for origin in missing for output in origin.outputs}
    return [
        not any(operand.name in unsupported for operand in operation.outputs)
        for operation in own.operations
    ]


def _building(model: NNAdapterModel) -> NNAdapterModel:
    """A model that is still being built."""
    own = live(model, NNAdapterModel)
    if own.finished is not None:
        raise invalid("the model has been finished, and cannot change")
    return own


def _own(model: NNAdapterModel, operand: object) -> NNAdapterOperand:
    own = live(operand, NNAdapterOperand)
    if own.model is not model:
        raise invalid(f"{own.name} is an operand of another model")
    return own


def _listed(operands: Sequence[NNAdapterOperand] | None) -> Sequence[NNAdapterOperand]:
    if not operands:
        raise invalid("there are no output operands")
    return operands


def _elements(type_: NNAdapterOperandType, buffer: Any, *, copy: bool) -> Array:
    """The elements in a buffer, in the shape in which they are stored."""
    shape = type_.dimensions.data
    if NNADAPTER_UNKNOWN in shape:
        raise misshapen(f"a constant has known sizes, not {shape}")
    dtype = types.element_type(type_.precision).dtype
    held = octets(buffer)
    expected = math.prod(shape) * dtype.itemsize
    if held.size != expected:
        raise invalid(f"the value has {held.size} bytes, but {shape} of {dtype} takes {expected}")
    array = held != 0 if dtype == np.bool_ else held.view(dtype)
    array = array.reshape(shape)
    return array.copy() if copy or not array.flags.aligned else array
