"""Static shape propagation: models for given input shapes, with size computations folded."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal import CompileError
from crosschip.ir import Array, Model, ModelError, Operand, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import name_of
from crosschip.ops import Operator
from crosschip.ops.standard.creation import Rank, ShapeOf

_MAX_VALUES = 4096
"""The maximum number of elements of an output that is computed while shapes are fixed."""


class DependsOnData(ModelError):
    """A size is not known although all input shapes are."""


@dataclass(frozen=True, slots=True)
class FixedModel:
    """A model for some shapes of its inputs.

    Attributes:
        model: the remaining operations, with static shapes. Only outputs of a single operation may
            be data-dependent. Constants that hold no sizes are the original operands.
        reads: the indices of the inputs that `model` reads, in order.
        makes: the index among the outputs of `model`, or the elements, of each original output.
    """

    model: Model
    reads: tuple[int, ...]
    makes: tuple[int | Array, ...]


def fix_sizes(
    model: Model,
    shapes: Sequence[tuple[int, ...]],
    size_values: Mapping[Operand, Array],
    prefix: str,
) -> FixedModel:
    """Return the model for given input shapes.

    Args:
        model: the model with dynamic dimensions.
        shapes: the shape of each input.
        size_values: the elements of inputs that hold sizes.
        prefix: the beginning of error messages.

    Raises:
        CompileError: an operation breaks a rule with these shapes, or a size depends on data and is
            not one of the only operation's outputs.
    """
    alone = len(model.operations) == 1
    fixing = Fixing({})
    for operand, shape in zip(model.inputs.values(), shapes, strict=True):
        fixing.record_sizes(operand, shape)
    for operand, shape in zip(model.inputs.values(), shapes, strict=True):
        fixing.take(operand, shape, size_values.get(operand))
    operations = []
    for operation in model.operations:
        try:
            remaining = fixing.follow(operation, alone=alone)
        except ModelError as error:
            text = f"{prefix}: {operation.name!r}: {error}"
            raise CompileError(text, [operation]) from None
        if remaining is not None:
            operations.append(remaining)
    return _remaining_model(model, fixing, operations)


def _remaining_model(model: Model, fixing: Fixing, operations: Sequence[Operation]) -> FixedModel:
    """Return the remaining model, with the inputs that it reads and the outputs it computes."""
    input_indices = {fixing[operand]: index for index, operand in enumerate(model.inputs.values())}
    read = dict.fromkeys(
        o
        for operation in operations
        for o in operation.inputs
        if o is not None and o in input_indices
    )
    outputs = [fixing[operand] for operand in model.outputs.values()]
    results = {operand for operation in operations for operand in operation.outputs}
    computed = [operand for operand in dict.fromkeys(outputs) if operand in results]
    output_indices = {operand: index for index, operand in enumerate(computed)}
    names = list(model.inputs)
    return FixedModel(
        Model(
            model.name,
            {names[input_indices[operand]]: operand for operand in read if not operand.is_constant},
            operations,
            {f"output{index}": operand for index, operand in enumerate(computed)},
        ),
        tuple(input_indices[operand] for operand in read if not operand.is_constant),
        tuple(output_indices[o] if (value := o.value) is None else value for o in outputs),
    )


class Fixing:
    """Static shape propagation through operations in order.

    Args:
        sizes: the values of named dimensions; dimensions that operations introduce are added.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self._fixed: dict[Operand, Operand] = {}
        self._known: set[Operand] = set()

    def __getitem__(self, operand: Operand) -> Operand:
        """Return the static operand for an operand of the model."""
        return self._fixed.get(operand, operand)

    def __contains__(self, operand: Operand) -> bool:
        """Return whether an operand of the model has a static one."""
        return operand in self._fixed

    def take(self, operand: Operand, shape: tuple[int, ...], value: Array | None = None) -> None:
        """Fix the shape of an input, and its elements if it holds sizes and these are known."""
        type_ = replace(operand.type, shape=shape, shape_value=None)
        sizes = operand.type.substitute(self.sizes).shape_value
        if value is None and sizes is not None and all(isinstance(s, int) for s in sizes):
            value = np.array(sizes, type_.element_type.dtype).reshape(shape)
        fixed = Operand(operand.name, type_, value)
        self._fixed[operand] = fixed
        if value is not None:
            self._known.add(fixed)

    def resolved(self, operation: Operation) -> Operation:
        """Return the operation on static operands."""
        return operation.with_inputs(
            tuple(None if o is None else self._fixed.get(o, o) for o in operation.inputs)
        )

    def follow(self, operation: Operation, *, alone: bool = False) -> Operation | None:
        """Return the operation on static operands; `None` if its outputs are constants.

        Args:
            operation: an operation of the model.
            alone: whether the model has no other operation, so that outputs may be data-dependent.

        Raises:
            DependsOnData: an output size depends on data.
            ModelError: the operation breaks a rule.
        """
        fixed = self.resolved(operation)
        types = fixed.infer()
        is_open = any(type_.static_shape is None for type_ in types)
        if (is_open and not (alone and is_data_dependent(fixed))) or has_open_bodies(fixed):
            raise DependsOnData(f"{operation.type}: a size depends on data, and must be known here")
        values: Sequence[Array | None] = [None] * len(types)
        sizes_are_few = all(math.prod(t.static_shape or ()) <= _MAX_VALUES for t in types)
        if not is_open and _describes_sizes(fixed, self._known) and sizes_are_few:
            assert isinstance(fixed, Operator), "_describes_sizes requires it"
            values = fixed.kernel()([elements_or_zeros(operand) for operand in fixed.inputs])
        outputs = tuple(
            Operand(output.name, type_, value)
            for output, type_, value in zip(operation.outputs, types, values, strict=True)
        )
        self._known.update(output for output in outputs if output.is_constant)
        for output, fixed_output in zip(operation.outputs, outputs, strict=True):
            self._fixed[output] = fixed_output
            self.record_sizes(output, fixed_output.type.static_shape or ())
        if outputs and all(output.is_constant for output in outputs):
            return None
        return fixed.with_outputs(outputs)

    def record_sizes(self, operand: Operand, shape: tuple[int, ...]) -> None:
        """Record the values of an operand's named dimensions."""
        for size, number in zip(operand.type.shape or (), shape, strict=False):
            name = name_of(size)
            if name is not None:
                self.sizes.setdefault(name, number)


def is_data_dependent(operation: Operation) -> bool:
    """Return whether an operation's output shapes depend on data."""
    return isinstance(operation, Operator) and operation.data_dependent


def has_open_bodies(operation: Operation) -> bool:
    """Return whether an operation has a body with a dynamic shape or unknown rank."""
    return any(
        output.type.static_shape is None
        for body in operation.bodies
        for inner in walk_operations(body)
        for output in inner.outputs
    )


def _describes_sizes(operation: Operation, known: Collection[Operand]) -> bool:
    """Return whether an operation's results follow from shapes and the operands in `known`."""
    if isinstance(operation, ShapeOf | Rank):
        return True
    read = [operand for operand in operation.inputs if operand is not None]
    return (
        isinstance(operation, Operator)
        and any(operand in known for operand in read)
        and all(operand in known or operand.is_constant for operand in read)
    )


def elements_or_zeros(operand: Operand | None) -> Array | None:
    """Return an operand's elements; zeros of its shape if these are not known."""
    if operand is None:
        return None
    value = operand.value
    if value is not None:
        return value
    zero = np.zeros((), operand.type.element_type.dtype)
    return np.broadcast_to(zero, operand.type.static_shape or ())
