"""Conversion to narrower element types for devices that lack an element type.

Their capabilities list the type as narrowed, and not as supported. `narrowing` ensures that values
fit, as for devices that compute the type in fewer bits; inputs and outputs are converted in runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal.device import Device
from crosschip.hal.options import Options
from crosschip.hal.program import Program
from crosschip.hal.support import Offer, Rule, Support
from crosschip.ir import Array, ElementType, Model, Operand, Operation, TensorType
from crosschip.ir.errors import ModelError
from crosschip.ops import Operator
from crosschip.ops.definition.slots import ELEMENT_TYPE, Parameter

Types = Mapping[ElementType, ElementType]


class Retyping:
    """Queries, compiles and loads for a device in types that it supports.

    Args:
        device: the device.
        types: the narrower type for each missing one.
    """

    def __init__(self, device: Device, types: Types) -> None:
        self._device = device
        self._types = types

    def query(self, model: Model, options: Options) -> Offer:
        """Return the device's answers about a model in its types."""
        narrow = _Narrow(self._types)
        offer = self._device.query(narrow.model(model), options)
        answers = [
            Support.no(operation, "", narrow.refused[index], Rule.ELEMENT_TYPE)
            if index in narrow.refused
            else answer
            for index, (operation, answer) in enumerate(
                zip(model.operations, offer.answers, strict=True)
            )
        ]
        return replace(offer, answers=answers)

    def supports(self, operation: Operation, options: Options) -> Support:
        """Return the device's answer about an operation in its types."""
        narrow = _Narrow(self._types)
        converted = narrow.operation(operation)
        if narrow.refused:
            return Support.no(operation, "", narrow.refused[0], Rule.ELEMENT_TYPE)
        return self._device.supports(converted, options)

    def compile(self, model: Model, options: Options) -> Program:
        """Return a program for a model, compiled in the device's types."""
        narrow = _Narrow(self._types).model(model)
        return _Converting(self._device.compile(narrow, options), model, narrow)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Return a program for a model, loaded from a program in the device's types."""
        narrow = _Narrow(self._types).model(model)
        return _Converting(self._device.load(saved, narrow, options), model, narrow)


def retype(model: Model, types: Types) -> Model | None:
    """Return a model in other element types; `None` if an operation has no form in them.

    Inputs and outputs have the other types, too.
    """
    conversion = _Narrow(types)
    converted = conversion.model(model)
    return None if conversion.refused else converted


class _Narrow:
    """Conversion of models to narrower types.

    Attributes:
        refused: the reason for each operation that cannot be converted, by index.
    """

    def __init__(self, types: Types) -> None:
        self._types = types
        self._operands: dict[Operand, Operand] = {}
        self._count = 0
        self.refused: dict[int, str] = {}

    def model(self, model: Model) -> Model:
        """Return a model in narrower types."""
        inputs = {name: self._operand(operand) for name, operand in model.inputs.items()}
        operations = [self.operation(operation) for operation in model.operations]
        outputs = {name: self._operand(operand) for name, operand in model.outputs.items()}
        return Model(model.name, inputs, operations, outputs)

    def operation(self, operation: Operation) -> Operation:
        """Return an operation in narrower types."""
        parameters = self._parameters(operation) if isinstance(operation, Operator) else {}
        inputs = [
            parameters[index] if index in parameters else operand and self._operand(operand)
            for index, operand in enumerate(operation.inputs)
        ]
        outputs = tuple(map(self._operand, operation.outputs))
        narrow = operation.with_inputs(tuple(inputs), outputs)
        reason = self._mismatch(operation, narrow)
        if reason:
            self.refused[self._count] = reason
        self._count += 1
        return narrow

    def _mismatch(self, operation: Operation, narrow: Operation) -> str:
        """Return why an operation has no form in narrower types; empty if it has one."""
        operands = (*operation.inputs, *operation.outputs)
        touched = any(o is not None and o.type.element_type in self._types for o in operands)
        if not isinstance(narrow, Operator):
            return "has a type that the device lacks" if touched or operation.bodies else ""
        try:
            inferred = [type_.element_type for type_ in narrow.infer()]
        except ModelError as error:
            return str(error)
        declared = [output.type.element_type for output in narrow.outputs]
        return "" if inferred == declared else "makes a type that the device lacks"

    def _operand(self, operand: Operand) -> Operand:
        narrow_type = self._types.get(operand.type.element_type)
        if narrow_type is None:
            return operand
        if operand not in self._operands:
            type_ = replace(operand.type, element_type=narrow_type)
            value = operand.value
            # Values that do not fit are refused by `narrowing`.
            narrow_value = None if value is None else value.astype(narrow_type.dtype)
            self._operands[operand] = Operand(operand.name, type_, narrow_value)
        return self._operands[operand]

    def _parameters(self, operation: Operator) -> dict[int, Operand | None]:
        """Return parameter constants by index; element type parameters name the narrower type.

        Lists of numbers keep their element type: devices read them as attributes.
        """
        parameters: dict[int, Operand | None] = {}
        for slot in operation.slots:
            if not isinstance(slot, Parameter):
                continue
            operand = operation.inputs[slot.index]
            if operand is not None and operand.value is None:
                continue
            type_ = getattr(operation, slot.name) if slot.kind == ELEMENT_TYPE else None
            narrow_type = None if type_ is None else self._types.get(type_)
            if narrow_type is not None:
                code = np.array(narrow_type.code, np.int32)
                operand = Operand(slot.name, TensorType(ElementType.INT32, ()), code)
            parameters[slot.index % len(operation.inputs)] = operand
        return parameters


class _Converting(Program):
    """A program in narrower types, as one in the types of the original model.

    Args:
        program: the program.
        model: the original model.
        narrow: the model in narrower types.
    """

    def __init__(self, program: Program, model: Model, narrow: Model) -> None:
        self._program = program
        self.rules = program.rules
        self._inputs = _conversions(narrow.inputs, model.inputs)
        self._outputs = _conversions(model.outputs, narrow.outputs)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        arrays = list(inputs)
        for index, dtype in self._inputs:
            arrays[index] = arrays[index].astype(dtype)
        outputs = list(self._program.run(arrays))
        for index, dtype in self._outputs:
            outputs[index] = outputs[index].astype(dtype)
        return outputs

    def save(self) -> bytes | None:
        return self._program.save()

    def saving(self) -> Callable[[], Sequence[bytes | memoryview]] | None:
        return self._program.saving()

    def close(self) -> None:
        self._program.close()


def _conversions(
    targets: Mapping[str, Operand], sources: Mapping[str, Operand]
) -> list[tuple[int, np.dtype[np.generic]]]:
    """Return the indices of operands whose type changes, with the target element types."""
    return [
        (index, target.type.element_type.dtype)
        for index, (target, source) in enumerate(
            zip(targets.values(), sources.values(), strict=True)
        )
        if target.type.element_type is not source.type.element_type
    ]
