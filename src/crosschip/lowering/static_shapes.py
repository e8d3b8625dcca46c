"""A model as it is in a run, where every size is known, and what follows from sizes is, too."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.hal import CompileError
from crosschip.ir import Array, Model, ModelError, Operand, Operation, TensorType
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import name_of
from crosschip.ops import Operator
from crosschip.ops.standard.creation import Rank, ShapeOf

_MOST_SIZES = 4096
"""The most elements computed while sizes are fixed, so that parameters may depend on them."""


class DependsOnData(ModelError):
    """A size is not known although all those of inputs are."""


@dataclass(frozen=True, slots=True)
class FixedModel:
    """A model for some shapes of its inputs.

    Attributes:
        model: the operations that are left, all sizes of which are numbers, but those of outputs
            that depend on data where there is only one operation. Constants that are no sizes are
            the same operands as before.
        reads: the places of the inputs that it reads, in order.
        makes: for each output its place among those of `model`, or its elements.
    """

    model: Model
    reads: tuple[int, ...]
    makes: tuple[int | Array, ...]


def fix_sizes(
    model: Model, shapes: Sequence[tuple[int, ...]], held: Mapping[Operand, Array], who: str
) -> FixedModel:
    """The model for inputs of these shapes.

    Args:
        model: with open sizes.
        shapes: for each input.
        held: the elements of inputs that hold sizes.
        who: begins messages.

    Raises:
        CompileError: an operation breaks a rule with these shapes, or a size depends on data that
            is not an output of the only operation.
    """
    alone = len(model.operations) == 1
    fixing = Fixing(sizes_of(model, shapes))
    for operand, shape in zip(model.inputs.values(), shapes, strict=True):
        fixing.take(operand, shape, held.get(operand))
    operations = []
    for operation in model.operations:
        try:
            remaining = fixing.follow(operation, alone=alone)
        except ModelError as error:
            text = f"{who}: {operation.name!r}: {error}"
            raise CompileError(text, [operation]) from None
        if remaining is not None:
            operations.append(remaining)
    return _joined(model, fixing, operations)


def _joined(model: Model, fixing: Fixing, operations: Sequence[Operation]) -> FixedModel:
    """The model that is left: inputs as they are read, outputs in the order of the model."""
    input_indices = {fixing[operand]: index for index, operand in enumerate(model.inputs.values())}
    read = dict.fromkeys(
        o
        for operation in operations
        for o in operation.inputs
        if o is not None and o in input_indices
    )
    wanted = [fixing[operand] for operand in model.outputs.values()]
    results = {operand for operation in operations for operand in operation.outputs}
    computed = [operand for operand in dict.fromkeys(wanted) if operand in results]
    places = {operand: index for index, operand in enumerate(computed)}
    names = list(model.inputs)
    return FixedModel(
        Model(
            model.name,
            {names[input_indices[operand]]: operand for operand in read if not operand.is_constant},
            operations,
            {f"output{index}": operand for index, operand in enumerate(computed)},
        ),
        tuple(input_indices[operand] for operand in read if not operand.is_constant),
        tuple(_source(operand, places) for operand in wanted),
    )


def _source(operand: Operand, places: Mapping[Operand, int]) -> int | Array:
    value = operand.value
    return places[operand] if value is None else value


class Fixing:
    """Operations in order, on operands whose sizes are known.

    Args:
        sizes: the values of named sizes; those that operations show are added.
    """

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self._now: dict[Operand, Operand] = {}
        self._known: set[Operand] = set()

    def __getitem__(self, operand: Operand) -> Operand:
        """The operand that one of the model has become."""
        return self._now.get(operand, operand)

    def __contains__(self, operand: Operand) -> bool:
        """Tell whether an operand of the model has been met."""
        return operand in self._now

    def take(self, operand: Operand, shape: tuple[int, ...], held: Array | None = None) -> None:
        """Give an operand a shape, and its elements if it holds sizes and these are known."""
        type_ = replace(operand.type, shape=shape, shape_value=None)
        elements = operand.type.substitute(self.sizes).shape_value
        if held is None and elements is not None and all(isinstance(s, int) for s in elements):
            held = np.array(elements, type_.element_type.dtype).reshape(shape)
        now = Operand(operand.name, type_, held)
        self._now[operand] = now
        if held is not None:
            self._known.add(now)

    def standing(self, operation: Operation) -> Operation:
        """The operation on what its inputs have become."""
        return operation.with_inputs(
            tuple(None if o is None else self._now.get(o, o) for o in operation.inputs)
        )

    def follow(self, operation: Operation, *, alone: bool = False) -> Operation | None:
        """The operation on what its inputs have become; `None` if only constants come of it.

        Args:
            operation: one of the model.
            alone: whether no other follows, so that sizes of its outputs may depend on data.

        Raises:
            DependsOnData: a size does, and may not.
            ModelError: it breaks a rule.
        """
        now = self.standing(operation)
        types = now.infer()
        is_open = any(type_.static_shape is None for type_ in types)
        if (is_open and not (alone and is_data_dependent(now))) or has_open_bodies(now):
            raise DependsOnData(f"{operation.type}: a size depends on data, and must be known here")
        values: Sequence[Array | None] = [None] * len(types)
        if not is_open and _describes_sizes(now, self._known) and _are_few(types):
            assert isinstance(now, Operator), "others describe no sizes"
            values = now.kernel()([elements_or_zeros(operand) for operand in now.inputs])
        outputs = tuple(
            Operand(output.name, type_, value)
            for output, type_, value in zip(operation.outputs, types, values, strict=True)
        )
        self._known.update(output for output in outputs if output.is_constant)
        for output, now_output in zip(operation.outputs, outputs, strict=True):
            self._now[output] = now_output
            self._learn(output, now_output.type.static_shape or ())
        if outputs and all(output.is_constant for output in outputs):
            return None
        return now.with_outputs(outputs)

    def _learn(self, operand: Operand, shape: tuple[int, ...]) -> None:
        for size, number in zip(operand.type.shape or (), shape, strict=False):
            name = name_of(size)
            if name is not None:
                self.sizes.setdefault(name, number)


def sizes_of(model: Model, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The sizes that the types of a model's inputs have names for, for these shapes."""
    sizes: dict[str, int] = {}
    for operand, shape in zip(model.inputs.values(), shapes, strict=True):
        for size, number in zip(operand.type.shape or (), shape, strict=False):
            name = name_of(size)
            if name is not None:
                sizes[name] = number
    return sizes


def is_data_dependent(operation: Operation) -> bool:
    """Tell whether a size of an operation's outputs shows in a run only."""
    return isinstance(operation, Operator) and operation.data_dependent


def has_open_bodies(operation: Operation) -> bool:
    """Tell whether an operation holds a body in which some size or number of axes is open."""
    return any(
        output.type.static_shape is None
        for body in operation.bodies
        for inner in walk_operations(body)
        for output in inner.outputs
    )


def _describes_sizes(operation: Operation, known: Collection[Operand]) -> bool:
    """Tell whether an operation's results follow from shapes, and from the operands in `known`."""
    if isinstance(operation, ShapeOf | Rank):
        return True
    read = [operand for operand in operation.inputs if operand is not None]
    return (
        isinstance(operation, Operator)
        and any(operand in known for operand in read)
        and all(operand in known or operand.is_constant for operand in read)
    )


def _are_few(types: Sequence[TensorType]) -> bool:
    return all(math.prod(type_.static_shape or ()) <= _MOST_SIZES for type_ in types)


def elements_or_zeros(operand: Operand | None) -> Array | None:
    """The elements that an operand holds; any of its shape if only that counts."""
    if operand is None:
        return None
    held = operand.value
    if held is not None:
        return held
    nothing = np.zeros((), operand.type.element_type.dtype)
    return np.broadcast_to(nothing, operand.type.static_shape or ())
