"""NNRt's functions that build a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.apis.buffers import byte_view
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

_MAX_LENGTH = 200


@returns_handle
def OH_NNModel_Construct() -> OH_NNModel:
    """Create an empty model."""
    return OH_NNModel()


@returns_nothing
def OH_NNModel_Destroy(model: OH_NNModel | None) -> None:
    """Release a model; compilations of it remain valid. `None` is ignored."""
    if model is not None:
        live(model, OH_NNModel).destroy()


@returns_code
def OH_NNModel_AddTensorToModel(model: OH_NNModel, tensorDesc: NN_TensorDesc) -> None:
    """Add a tensor; its index is the number of tensors added before.

    The description's name and format are ignored. Images are stored in NHWC.
    """
    if as_reference() and isinstance(model, OH_NNModel) and model.closed:
        live(tensorDesc, NN_TensorDesc)
        return
    model, desc = _unfinished(model), live(tensorDesc, NN_TensorDesc)
    _add_tensor(model, desc.data_type, desc.shape or ())


@returns_code
def OH_NNModel_AddTensor(model: OH_NNModel, tensor: OH_NN_Tensor) -> None:
    """Add a tensor with its type and quantization. Deprecated."""
    model = _unfinished(model)
    if not isinstance(tensor, OH_NN_Tensor):
        raise invalid(f"{tensor!r} is no OH_NN_Tensor")
    type_ = member(OH_NN_TensorType, tensor.type)
    quantization = None
    if tensor.quantParam is not None and tensor.quantParam.quantCount:
        params = tensor.quantParam
        quantization = _quantization(
            params.scale, params.zeroPoint, params.numBits, tensor.dimensions
        )
    model_tensor = _add_tensor(model, tensor.dataType, tensor.dimensions)
    model_tensor.type, model_tensor.quantization = type_, quantization


@returns_code
def OH_NNModel_SetTensorType(model: OH_NNModel, index: int, tensorType: OH_NN_TensorType) -> None:
    """Set a tensor's type: data, or an operator's parameter."""
    tensor = _tensor(_unfinished(model), index)
    tensor.type = member(OH_NN_TensorType, tensorType)


@returns_code
def OH_NNModel_SetTensorQuantParams(
    model: OH_NNModel, index: int, quantParam: NN_QuantParam
) -> None:
    """Set a tensor's quantization parameters, which are copied."""
    tensor, params = _tensor(_unfinished(model), index), live(quantParam, NN_QuantParam)
    tensor.quantization = _quantization(
        params.scales, params.zero_points, params.num_bits, tensor.shape
    )


@returns_code
def OH_NNModel_SetTensorData(model: OH_NNModel, index: int, dataBuffer: Any) -> None:
    """Make a tensor a constant; its elements are copied, and can be set once."""
    tensor = _tensor(_unfinished(model), index)
    if tensor.value is not None:
        raise invalid(f"tensor {index} has its elements already")
    if min(tensor.shape, default=0) < 0:
        raise forbidden(f"tensor {index} has an open size")
    content, dtype = byte_view(dataBuffer), element_type(tensor.data_type).dtype
    expected = math.prod(tensor.shape) * dtype.itemsize
    if content.size != expected:
        raise invalid(f"tensor {index} takes {expected} bytes, not {content.size}")
    array = content != 0 if dtype == np.bool_ else content.copy().view(dtype)
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
        op: the operator.
        paramIndices: the indices of the parameter tensors, in any order; their elements have
            been set.
        inputIndices: the indices of the input tensors, in the operator's order.
        outputIndices: the indices of the output tensors.
    """
    model = _unfinished(model)
    code = member(OH_NN_OperationType, op)
    if inputIndices is None or outputIndices is None or paramIndices is None:
        raise invalid("the indices are none")
    for indices in (inputIndices, outputIndices):
        if not 1 <= len(indices) <= _MAX_LENGTH:
            raise invalid(f"there are {len(indices)} indices, but must be from 1 to {_MAX_LENGTH}")
        if any(_tensor(model, index).type for index in indices):
            raise invalid("an input or output is a parameter, by its type")
    if set(inputIndices) & set(outputIndices):
        raise invalid("a tensor is both an input and an output")
    _check_counts(code, len(inputIndices), len(outputIndices))
    _check_parameters(code, [_tensor(model, index) for index in paramIndices])
    operation = Operation(code, tuple(paramIndices), tuple(inputIndices), tuple(outputIndices))
    model.operations.append(operation)


@returns_code
def OH_NNModel_SpecifyInputsAndOutputs(
    model: OH_NNModel, inputIndices: Sequence[int], outputIndices: Sequence[int]
) -> None:
    """Set the model's inputs and outputs, in order; may be called once."""
    model = _unfinished(model)
    if model.inputs is not None:
        raise forbidden("inputs and outputs have been specified")
    if not inputIndices or not outputIndices:
        raise invalid("a model has inputs and outputs")
    for index in (*inputIndices, *outputIndices):
        if _tensor(model, index).type or model.tensors[index].value is not None:
            raise invalid(f"tensor {index} is a constant or a parameter")
    if len({*inputIndices, *outputIndices}) < len(inputIndices) + len(outputIndices):
        raise invalid("a tensor is specified twice")
    model.inputs, model.outputs = tuple(inputIndices), tuple(outputIndices)


@returns_code
def OH_NNModel_Finish(model: OH_NNModel) -> None:
    """Check the model and build it; may be called once.

    In reference mode, a violation of an operator's rules is reported by compilation instead, as the
    reference implementation leaves the check to the device.
    """
    model = _unfinished(model)
    if not model.tensors or not model.operations or model.inputs is None:
        raise forbidden("the model has no tensors, no operations, or no inputs and outputs")
    model.closed = True
    try:
        model.finished = build(model)
    except (Error, Failure) as error:
        if not as_reference():
            raise
        model.refusal = str(error)


@returns_value
def OH_NNModel_GetAvailableOperations(model: OH_NNModel, deviceID: int) -> list[bool]:
    """Return for each operation, in the order added, whether a device supports it."""
    model = live(model, OH_NNModel)
    if model.finished is None and not model.refusal:
        raise forbidden("the model has not been finished")
    finished = model.built_model()
    try:
        device = name_of(deviceID)
    except Failure as error:
        raise Failure(Code.OH_NN_FAILED, str(error)) from None
    placement = explain(finished, [device], cache=False)
    missing = {origin for decision in placement.unplaced for origin in decision.operation.origins}
    unsupported = {output for origin in missing for output in origin.outputs}
    return [
        not any(model.tensors[index].name in unsupported for index in operation.outputs)
        for operation in model.operations
    ]


def _unfinished(model: OH_NNModel) -> OH_NNModel:
    """Return a model after checking that it has not been finished."""
    model = live(model, OH_NNModel)
    if model.closed:
        raise forbidden("the model has been finished, and cannot change")
    return model


def _tensor(model: OH_NNModel, index: int) -> Tensor:
    if not isinstance(index, int) or not 0 <= index < len(model.tensors):
        raise invalid(f"there is no tensor {index!r}, but {len(model.tensors)}")
    return model.tensors[index]


def _add_tensor(model: OH_NNModel, data_type: int, shape: Sequence[int]) -> Tensor:
    type_ = member(OH_NN_DataType, data_type)
    element_type(type_)
    if any(size == 0 or size < -1 for size in shape) or len(shape) > _MAX_LENGTH:
        raise invalid(f"the shape is {list(shape)}")
    tensor = Tensor(len(model.tensors), type_, tuple(map(int, shape)))
    model.tensors.append(tensor)
    return tensor


def _quantization(
    scales: Sequence[float], zero_points: Sequence[int], bits: Sequence[int], shape: Sequence[int]
) -> Quantization:
    """Return quantization parameters per tensor, or per channel along the last axis."""
    if not scales or not len(scales) == len(zero_points) == len(bits):
        raise invalid(
            f"{len(scales)} scales, {len(zero_points)} zeros and {len(bits)} numbers of bits"
        )
    if set(bits) != {BITS}:
        raise invalid(f"the numbers of bits are {sorted(set(bits))}, but must be {BITS}")
    axis = None
    if len(scales) > 1:
        axis = quantized_axis(shape, len(scales))
        if axis is None:
            raise invalid(f"{list(shape)} has no channels for {len(scales)} scales")
    try:
        return Quantization(tuple(scales), tuple(zero_points), axis=axis)
    except ValueError as error:
        raise invalid(str(error)) from None


def _check_counts(code: OH_NN_OperationType, input_count: int, output_count: int) -> None:
    entries = rows()[code]
    is_variadic = any(
        isinstance(rule, Variadic) for entry in entries for rule in entry.row.operands
    )
    max_count = max(entry.inputs for entry in entries)
    min_count = max_count - (code is OH_NN_OperationType.OH_NN_OPS_FULL_CONNECTION)
    if input_count < min_count or (input_count > max_count and not is_variadic):
        raise invalid(f"{code.name}: reads {max_count} tensors, not {input_count}")
    outputs = entries[0].outputs
    if outputs is not None and output_count != outputs:
        raise invalid(f"{code.name}: has {outputs} outputs, not {output_count}")


def _check_parameters(code: OH_NN_OperationType, parameters: Sequence[Tensor]) -> None:
    parameter_kinds = {type_ for entry in rows()[code] for type_ in entry.parameters}
    for tensor in parameters:
        if tensor.type not in parameter_kinds:
            raise invalid(f"{code.name}: has no parameter {tensor.type.name}")
        types = parameter_types(tensor.type)
        if tensor.data_type not in types:
            expected = " or ".join(type_.name for type_ in types)
            raise invalid(f"{tensor.type.name}: is {tensor.data_type.name}, but must be {expected}")
        if tensor.value is None:
            raise invalid(f"{tensor.type.name}: has no elements")
    if len({tensor.type for tensor in parameters}) < len(parameters):
        raise invalid(f"{code.name}: has a parameter twice")
