"""Functions that build a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.buffers import octets
from crosschip.apis.nnrt.conformance import as_reference
from crosschip.apis.nnrt.descriptions import (
    BITS,
    NN_QuantParam,
    NN_TensorDesc,
    element_type,
    member,
)
from crosschip.apis.nnrt.device import name_of
from crosschip.apis.nnrt.enumerations import OH_NN_DataType, OH_NN_OperationType, OH_NN_TensorType
from crosschip.apis.nnrt.enumerations import OH_NN_ReturnCode as Code
from crosschip.apis.nnrt.graph import OH_NNModel, Operation, Tensor, build
from crosschip.apis.nnrt.results import (
    Failure,
    forbidden,
    invalid,
    live,
    returns_code,
    returns_handle,
    returns_nothing,
    returns_value,
)
from crosschip.apis.nnrt.rows import parameter_types, rows
from crosschip.apis.nnrt.types import OH_NN_Tensor
from crosschip.ir import Error, Quantization
from crosschip.mapping.common import quantized_axis
from crosschip.mapping.rules import Variadic
from crosschip.runtime.compile.front_door import explain

_MOST = 200


@returns_handle
def OH_NNModel_Construct() -> OH_NNModel:
    """Make an empty model."""
    return OH_NNModel()


@returns_nothing
def OH_NNModel_Destroy(model: OH_NNModel | None) -> None:
    """Release a model; what is compiled of it stays. `None` is nothing to release."""
    if model is not None:
        live(model, OH_NNModel).destroy()


@returns_code
def OH_NNModel_AddTensorToModel(model: OH_NNModel, tensorDesc: NN_TensorDesc) -> None:
    """Add a tensor; its place is how many there were. Name and format are not looked at.

    Images are stored with their channels last.
    """
    if as_reference() and isinstance(model, OH_NNModel) and model.closed:
        live(tensorDesc, NN_TensorDesc)
        return
    own, desc = _building(model), live(tensorDesc, NN_TensorDesc)
    _add_tensor(own, desc.data_type, desc.shape or ())


@returns_code
def OH_NNModel_AddTensor(model: OH_NNModel, tensor: OH_NN_Tensor) -> None:
    """Add a tensor with its purpose and quantization. Deprecated."""
    own = _building(model)
    if not isinstance(tensor, OH_NN_Tensor):
        raise invalid(f"{tensor!r} is no OH_NN_Tensor")
    type_ = member(OH_NN_TensorType, tensor.type)
    quantization = None
    if tensor.quantParam is not None and tensor.quantParam.quantCount:
        params = tensor.quantParam
        quantization = _quantization(
            params.scale, params.zeroPoint, params.numBits, tensor.dimensions
        )
    added = _add_tensor(own, tensor.dataType, tensor.dimensions)
    added.type, added.quantization = type_, quantization


@returns_code
def OH_NNModel_SetTensorType(model: OH_NNModel, index: int, tensorType: OH_NN_TensorType) -> None:
    """Say what a tensor is for."""
    tensor = _tensor(_building(model), index)
    tensor.type = member(OH_NN_TensorType, tensorType)


@returns_code
def OH_NNModel_SetTensorQuantParams(
    model: OH_NNModel, index: int, quantParam: NN_QuantParam
) -> None:
    """Say how the integers of a tensor stand for reals; the parameters are copied."""
    tensor, params = _tensor(_building(model), index), live(quantParam, NN_QuantParam)
    tensor.quantization = _quantization(
        params.scales, params.zero_points, params.num_bits, tensor.shape
    )


@returns_code
def OH_NNModel_SetTensorData(model: OH_NNModel, index: int, dataBuffer: Any) -> None:
    """Make a tensor a constant, once; its elements are copied."""
    tensor = _tensor(_building(model), index)
    if tensor.value is not None:
        raise invalid(f"tensor {index} has its elements already")
    if min(tensor.shape, default=0) < 0:
        raise forbidden(f"tensor {index} has an open size")
    held, dtype = octets(dataBuffer), element_type(tensor.data_type).dtype
    expected = math.prod(tensor.shape) * dtype.itemsize
    if held.size != expected:
        raise invalid(f"tensor {index} takes {expected} bytes, not {held.size}")
    array = held != 0 if dtype == np.bool_ else held.copy().view(dtype)
    tensor.value = array.reshape(tensor.shape)


@returns_code
def OH_NNModel_AddOperation(
    model: OH_NNModel,
    op: OH_NN_OperationType,
    paramIndices: Sequence[int],
    inputIndices: Sequence[int],
    outputIndices: Sequence[int],
) -> None:
    """Add an operation.

    Args:
        model: the model.
        op: its operator.
        paramIndices: the places of the tensors that are its parameters, in any order; their
            elements have been set.
        inputIndices: the places of the tensors that it reads, in the operator's order.
        outputIndices: those of the tensors that it makes.
    """
    own = _building(model)
    code = member(OH_NN_OperationType, op)
    if inputIndices is None or outputIndices is None or paramIndices is None:
        raise invalid("the indices are none")
    for indices in (inputIndices, outputIndices):
        if not 1 <= len(indices) <= _MOST:
            raise invalid(f"there are {len(indices)} indices, but must be from 1 to {_MOST}")
        if any(_tensor(own, index).type for index in indices):
            raise invalid("an input or output is a parameter, by its type")
    if set(inputIndices) & set(outputIndices):
        raise invalid("a tensor is both an input and an output")
    _check_counts(code, len(inputIndices), len(outputIndices))
    _check_parameters(code, [_tensor(own, index) for index in paramIndices])
    operation = Operation(code, tuple(paramIndices), tuple(inputIndices), tuple(outputIndices))
    own.operations.append(operation)


@returns_code
def OH_NNModel_SpecifyInputsAndOutputs(
    model: OH_NNModel, inputIndices: Sequence[int], outputIndices: Sequence[int]
) -> None:
    """Say, once, which tensors are the model's inputs and outputs, in this order."""
    own = _building(model)
    if own.inputs is not None:
        raise forbidden("inputs and outputs have been specified")
    if not inputIndices or not outputIndices:
        raise invalid("a model has inputs and outputs")
    for index in (*inputIndices, *outputIndices):
        if _tensor(own, index).type or own.tensors[index].value is not None:
            raise invalid(f"tensor {index} is a constant or a parameter")
    if len({*inputIndices, *outputIndices}) < len(inputIndices) + len(outputIndices):
        raise invalid("a tensor is specified twice")
    own.inputs, own.outputs = tuple(inputIndices), tuple(outputIndices)


@returns_code
def OH_NNModel_Finish(model: OH_NNModel) -> None:
    """Check the whole model and end building it; can be done once.

    The source leaves it to the device to refuse what breaks the rules of an operator; as the source
    has it, that fails when the model is compiled.
    """
    own = _building(model)
    if not own.tensors or not own.operations or own.inputs is None:
        raise forbidden("the model has no tensors, no operations, or no inputs and outputs")
    own.closed = True
    try:
        own.finished = build(own)
    except (Error, Failure) as error:
        if not as_reference():
            raise
        own.refusal = str(error)


@returns_value
def OH_NNModel_GetAvailableOperations(model: OH_NNModel, deviceID: int) -> list[bool]:
    """Tell of each operation, in the order added, whether a device runs it."""
    own = live(model, OH_NNModel)
    if own.finished is None and not own.refusal:
        raise forbidden("the model has not been finished")
    finished = own.whole()
    try:
        device = name_of(deviceID)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None
    placement = explain(finished, [device], cache=False)
    missing = {origin for decision in placement.unplaced for origin in decision.operation.origins}
    unsupported = {output for origin in missing for output in origin.outputs}
    return [
        not any(own.tensors[index].name in unsupported for index in operation.outputs)
        for operation in own.operations
    ]


def _building(model: OH_NNModel) -> OH_NNModel:
    """A model that is still being built."""
    own = live(model, OH_NNModel)
    if own.closed:
        raise forbidden("the model has been finished, and cannot change")
    return own


def _tensor(model: OH_NNModel, index: int) -> Tensor:
    if not isinstance(index, int) or not 0 <= index < len(model.tensors):
        raise invalid(f"there is no tensor {index!r}, but {len(model.tensors)}")
    return model.tensors[index]


def _add_tensor(model: OH_NNModel, data_type: int, shape: Sequence[int]) -> Tensor:
    type_ = member(OH_NN_DataType, data_type)
    element_type(type_)
    if any(size == 0 or size < -1 for size in shape) or len(shape) > _MOST:
        raise invalid(f"the shape is {list(shape)}")
    tensor = Tensor(len(model.tensors), type_, tuple(map(int, shape)))
    model.tensors.append(tensor)
    return tensor


def _quantization(
    scales: Sequence[float], zeros: Sequence[int], bits: Sequence[int], shape: Sequence[int]
) -> Quantization:
    """Quantization for a whole tensor, or for each channel, which are its last axis."""
    if not scales or not len(scales) == len(zeros) == len(bits):
        raise invalid(f"{len(scales)} scales, {len(zeros)} zeros and {len(bits)} numbers of bits")
    if set(bits) != {BITS}:
        raise invalid(f"the numbers of bits are {sorted(set(bits))}, but must be {BITS}")
    axis = None
    if len(scales) > 1:
        axis = quantized_axis(shape, len(scales))
        if axis is None:
            raise invalid(f"{list(shape)} has no channels for {len(scales)} scales")
    try:
        return Quantization(tuple(scales), tuple(zeros), axis=axis)
    except ValueError as error:
        raise invalid(str(error)) from None


def _check_counts(code: OH_NN_OperationType, input_count: int, output_count: int) -> None:
    entries = rows()[code]
    several = any(isinstance(rule, Variadic) for entry in entries for rule in entry.row.operands)
    most = max(entry.inputs for entry in entries)
    least = most - (code is OH_NN_OperationType.OH_NN_OPS_FULL_CONNECTION)
    if input_count < least or (input_count > most and not several):
        raise invalid(f"{code.name}: reads {most} tensors, not {input_count}")
    outputs = entries[0].outputs
    if outputs is not None and output_count != outputs:
        raise invalid(f"{code.name}: has {outputs} outputs, not {output_count}")


def _check_parameters(code: OH_NN_OperationType, parameters: Sequence[Tensor]) -> None:
    known = {type_ for entry in rows()[code] for type_ in entry.parameters}
    for tensor in parameters:
        if tensor.type not in known:
            raise invalid(f"{code.name}: has no parameter {tensor.type.name}")
        types = parameter_types(tensor.type)
        if tensor.data_type not in types:
            named = " or ".join(type_.name for type_ in types)
            raise invalid(f"{tensor.type.name}: is {tensor.data_type.name}, but must be {named}")
        if tensor.value is None:
            raise invalid(f"{tensor.type.name}: has no elements")
    if len({tensor.type for tensor in parameters}) < len(parameters):
        raise invalid(f"{code.name}: has a parameter twice")
