"""A model written out as calls of the functions that build it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from crosschip.apis.nnrt.descriptions import (
    OH_NNQuantParam_Create,
    OH_NNQuantParam_Destroy,
    OH_NNQuantParam_SetNumBits,
    OH_NNQuantParam_SetScales,
    OH_NNQuantParam_SetZeroPoints,
    OH_NNTensorDesc_Create,
    OH_NNTensorDesc_Destroy,
    OH_NNTensorDesc_SetDataType,
    OH_NNTensorDesc_SetShape,
    described,
)
from crosschip.apis.nnrt.enumerations import (
    OH_NN_OperationType,
    OH_NN_TensorType,
)
from crosschip.apis.nnrt.graph import OH_NNModel
from crosschip.apis.nnrt.model import (
    OH_NNModel_AddOperation,
    OH_NNModel_AddTensorToModel,
    OH_NNModel_Construct,
    OH_NNModel_Destroy,
    OH_NNModel_Finish,
    OH_NNModel_SetTensorData,
    OH_NNModel_SetTensorQuantParams,
    OH_NNModel_SetTensorType,
    OH_NNModel_SpecifyInputsAndOutputs,
)
from crosschip.apis.nnrt.results import last_error
from crosschip.apis.nnrt.rows import Entry, expressed, uses
from crosschip.apis.nnrt.types import OH_NN_QuantParam, OH_NN_Tensor
from crosschip.apis.results import check
from crosschip.ir import Array, Error, Model, Operand, Operation, UnsupportedError
from crosschip.mapping.translation import Expressed
from crosschip.mapping.writer import Writer
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.layout import Transpose

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperationCall:
    """A call of `OH_NNModel_AddOperation`; tensors are told by their place in `Calls`.

    Attributes:
        code: the operator.
        parameters: the tensors that are its parameters.
        inputs: those that it reads.
        outputs: those that it makes.
    """

    code: OH_NN_OperationType
    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(slots=True)
class Calls:
    """The calls that build a model: its tensors, then its operations, then what goes in and out.

    Attributes:
        tensors: the tensors, each with its elements if it is a constant.
        operations: the operations, each after those that make what it reads.
        inputs: the tensors that are the model's inputs.
        outputs: those that are its outputs.
    """

    tensors: list[tuple[OH_NN_Tensor, Array | None]] = field(default_factory=list)
    operations: list[OperationCall] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def replay(self) -> OH_NNModel:
        """Make the calls; the model is finished.

        Raises:
            Error: a call fails; the message is the interface's.
        """
        model = _checked_value(OH_NNModel_Construct())
        try:
            for index, (tensor, value) in enumerate(self.tensors):
                _add_tensor(model, index, tensor, value)
            for call in self.operations:
                parts = (call.parameters, call.inputs, call.outputs)
                check(OH_NNModel_AddOperation(model, call.code, *parts))
            check(OH_NNModel_SpecifyInputsAndOutputs(model, self.inputs, self.outputs))
            check(OH_NNModel_Finish(model))
        except Error:
            OH_NNModel_Destroy(model)
            raise
        return model


def calls(model: Model) -> Calls:
    """Write a model out as calls.

    What NNRt has no operator for is written as the simpler operators that it decomposes into.

    Args:
        model: the model, with inputs and outputs in their order.

    Raises:
        UnsupportedError: it has no inputs, or an operation, a type or a use of one that NNRt has
            not; the message names it.
    """
    if not model.inputs or not model.outputs:
        raise UnsupportedError(f"{model.name!r}: NNRt has no models without inputs or outputs")
    writer = _Writer()
    inputs, outputs = writer.write(model)
    writer.calls.inputs, writer.calls.outputs = tuple(inputs), tuple(outputs)
    return writer.calls


class _Writer(Writer[tuple[OH_NN_OperationType, Entry]]):
    def __init__(self) -> None:
        super().__init__("NNRt")
        self.calls = Calls()

    def operation(self, operation: Operation) -> None:
        if isinstance(operation, Assign) and operation.outputs[0].type == operation.input.type:
            self.alias(operation.outputs[0], operation.input)
        else:
            super().operation(operation)

    def expressions(
        self, operation: Operator
    ) -> Iterator[tuple[tuple[OH_NN_OperationType, Entry], Expressed]]:
        refusal = None
        for code, entry in uses().get(type(operation), ()):
            try:
                expression = expressed(entry, operation)
            except UnsupportedError as error:
                refusal = refusal or error
                continue
            yield (code, entry), expression
        if refusal is not None:
            raise refusal

    def check(self, operand: Operand) -> None:
        described(operand.type)

    def declare(self, operand: Operand) -> None:
        self.calls.tensors.append((described(operand.type), operand.value))

    def call(self, key: tuple[OH_NN_OperationType, Entry], expression: Expressed) -> None:
        code, entry = key
        count = len(expression.inputs) - len(entry.parameters)
        inputs, parameters = expression.inputs[:count], expression.inputs[count:]
        while inputs[-1] is None:
            inputs = inputs[:-1]
        read = [self.index_of(_present(operand, code)) for operand in inputs]
        parameter_tensors = [
            self._parameter(operand, type_)
            for operand, type_ in zip(parameters, entry.parameters, strict=True)
            if operand is not None
        ]
        outputs = tuple(map(self.index_of, expression.outputs))
        self.calls.operations.append(
            OperationCall(code, tuple(parameter_tensors), tuple(read), outputs)
        )

    def copy_operation(self, operand: Operand, copy: Operand) -> Operator:
        type_, name = operand.type, f"{operand.name}.copied"
        if type_.quantization is None:
            return Cast(name, Cast.bind(name, (operand, type_.element_type), {}), (copy,))
        perm = tuple(range(len(type_.shape or ())))
        return Transpose(name, Transpose.bind(name, (operand, perm), {}), (copy,))

    def _parameter(self, operand: Operand, type_: OH_NN_TensorType) -> int:
        place = self.index_of(operand)
        tensor, value = self.calls.tensors[place]
        self.calls.tensors[place] = replace(tensor, type=type_), value
        return place


def _present(operand: Operand | None, code: OH_NN_OperationType) -> Operand:
    if operand is None:
        raise UnsupportedError(f"{code.name}: an input in front of others cannot be left out")
    return operand


def _add_tensor(model: OH_NNModel, index: int, tensor: OH_NN_Tensor, value: Array | None) -> None:
    desc = _checked_value(OH_NNTensorDesc_Create())
    check(OH_NNTensorDesc_SetDataType(desc, tensor.dataType))
    if tensor.dimensions:
        check(OH_NNTensorDesc_SetShape(desc, tensor.dimensions))
    check(OH_NNModel_AddTensorToModel(model, desc))
    check(OH_NNTensorDesc_Destroy(desc))
    if tensor.type:
        check(OH_NNModel_SetTensorType(model, index, tensor.type))
    if tensor.quantParam is not None:
        _set_quantization(model, index, tensor.quantParam)
    if value is not None:
        check(OH_NNModel_SetTensorData(model, index, value))


def _set_quantization(model: OH_NNModel, index: int, quantization: OH_NN_QuantParam) -> None:
    params = _checked_value(OH_NNQuantParam_Create())
    check(OH_NNQuantParam_SetScales(params, quantization.scale))
    check(OH_NNQuantParam_SetZeroPoints(params, quantization.zeroPoint))
    check(OH_NNQuantParam_SetNumBits(params, quantization.numBits))
    check(OH_NNModel_SetTensorQuantParams(model, index, params))
    check(OH_NNQuantParam_Destroy(params))


def _checked_value(handle: T | None) -> T:
    if handle is None:
        raise Error(last_error())
    return handle
