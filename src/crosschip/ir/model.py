"""Operands, operations and models.

All three are immutable once built: a pass makes new ones and shares whatever it does not change,
so a copy of a model shares its weights and models can be used from many threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Self

from crosschip.ir.errors import ModelError
from crosschip.ir.types import Array, TensorType


class Operand:
    """A value in a model: an input, a constant, or the output of an operation.

    Attributes:
        name: what messages call it; not necessarily the only operand of the name.
        type: element type, shape and quantization.
        value: the elements if this is a constant (possibly memory-mapped, never written to).
    """

    __slots__ = ("name", "type", "value")

    def __init__(self, name: str, type: TensorType, value: Array | None = None) -> None:
        self.name = name
        self.type = type
        self.value = value

    @property
    def is_constant(self) -> bool:
        """Whether the value is part of the model."""
        return self.value is not None

    def __repr__(self) -> str:
        return f"<Operand {self.name}: {self.type}{' constant' if self.is_constant else ''}>"


class Operation:
    """One use of an operator: the operands it reads and the operands it makes.

    The operators of `crosschip.ops` are its subclasses. What a subclass must answer is here, so
    that the builder, the printers and the passes need to know no operator.

    Attributes:
        name: what messages and placement reports call the operation.
        inputs: the operands in the order of the operator's slots; `None` where one is left out.
        outputs: the operands that it makes.
    """

    __slots__ = ("inputs", "name", "outputs")

    type: ClassVar[str]

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.outputs = outputs

    @property
    def bodies(self) -> tuple[Model, ...]:
        """The models that the operation runs; none but for control flow."""
        return ()

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        """Each operand that is present, with the name of the slot it fills."""
        raise NotImplementedError(f"{self.type} does not name its inputs")

    def infer(self) -> tuple[TensorType, ...]:
        """The types of the outputs, from those of the inputs.

        A quantization that the outputs already have is kept where inputs are quantized.

        Raises:
            ModelError: an input breaks a rule of the operator; the message names the slot.
        """
        raise NotImplementedError(f"{self.type} does not infer its outputs")

    def with_inputs(
        self,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] | None = None,
    ) -> Operation:
        """The same operation on other inputs, making the same outputs or the given ones."""
        return type(self)(self.name, inputs, self.outputs if outputs is None else outputs)

    def called(self, name: str) -> Self:
        """The same operation by another name."""
        renamed = copy(self)
        renamed.name = name
        return renamed

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


class Model:
    """A program of operations, each after those whose outputs it reads.

    Attributes:
        name: what messages call the model.
        inputs: the operands the caller provides, by name.
        operations: in an order in which they can run.
        outputs: the operands the caller gets back, by name; any operand of the model may be one.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Operand],
        operations: Iterable[Operation],
        outputs: Mapping[str, Operand],
    ) -> None:
        self.name = name
        self.inputs = MappingProxyType(dict(inputs))
        self.operations = tuple(operations)
        self.outputs = MappingProxyType(dict(outputs))

    @cached_property
    def producers(self) -> Mapping[Operand, Operation]:
        """The operation that makes each operand, for operands that an operation makes."""
        return {output: operation for operation in self.operations for output in operation.outputs}

    @cached_property
    def uses(self) -> Mapping[Operand, int]:
        """How often each operand is read by operations or handed out as a model output."""
        counts: dict[Operand, int] = {}
        for operation in self.operations:
            for operand in operation.inputs:
                if operand is not None:
                    counts[operand] = counts.get(operand, 0) + 1
        for operand in self.outputs.values():
            counts[operand] = counts.get(operand, 0) + 1
        return counts

    @cached_property
    def constants(self) -> tuple[Operand, ...]:
        """Every constant that the model uses, once, in order of first use."""
        return tuple(operand for operand in self.uses if operand.is_constant)

    def check(self) -> None:
        """Verify the whole model.

        Raises:
            ModelError: an operand is two inputs, is read before it is made or is made twice, or an
                operation breaks a rule of its operator or makes other types than it infers; or
                one of these is so in a body of control flow.
        """
        known = set(self.inputs.values())
        if len(known) < len(self.inputs):
            raise ModelError(f"{self.name}: two of the inputs {list(self.inputs)} are one operand")
        for operation in self.operations:
            for slot, operand in operation.named_inputs():
                if not operand.is_constant and operand not in known:
                    raise ModelError(
                        f"{operation.type} {operation.name!r}: {slot} reads {operand.name!r}, "
                        f"which nothing before it makes"
                    )
            _check_types(operation)
            for body in operation.bodies:
                try:
                    body.check()
                except ModelError as error:
                    raise ModelError(f"{operation.name!r}: {error}") from None
            for output in operation.outputs:
                if output in known:
                    raise ModelError(
                        f"{operation.type} {operation.name!r} makes {output.name!r}, which is "
                        f"there already"
                    )
                known.add(output)
        for name, operand in self.outputs.items():
            if not operand.is_constant and operand not in known:
                raise ModelError(f"model output {name!r} is {operand.name!r}, which nothing makes")

    def __str__(self) -> str:
        from crosschip.ir.text import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return (
            f"<Model {self.name}: {len(self.operations)} operations, "
            f"{list(self.inputs)} -> {list(self.outputs)}>"
        )


def _check_types(operation: Operation) -> None:
    """`ModelError` if an operation breaks a rule or does not make what it is declared to."""
    where = f"{operation.type} {operation.name!r}"
    try:
        inferred = operation.infer()
    except ModelError as error:
        raise ModelError(f"{operation.name!r}: {error}") from None
    if len(operation.outputs) != len(inferred):
        raise ModelError(
            f"{where}: has {len(operation.outputs)} outputs, but the operator makes {len(inferred)}"
        )
    for output, type in zip(operation.outputs, inferred, strict=True):
        if output.type.element_type is not type.element_type or _differ(output.type, type):
            raise ModelError(
                f"{where}: {output.name!r} is declared as {output.type}, but the operator makes "
                f"{type}"
            )


def _differ(declared: TensorType, inferred: TensorType) -> bool:
    """Whether the shapes are known not to be the same."""
    if declared.shape is None or inferred.shape is None:
        return False
    return len(declared.shape) != len(inferred.shape) or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(declared.shape, inferred.shape, strict=True)
    )
