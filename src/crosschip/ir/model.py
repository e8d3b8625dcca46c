"""Operands, operations and models.

All three are immutable once built: a pass makes new ones and shares whatever it does not change,
so a copy of a model shares its weights and models can be used from many threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, NamedTuple, Self

from crosschip.ir.elements import Elements
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import Frozen, set_field, setter
from crosschip.ir.types import Array, Quantization, TensorType


class Operand(Frozen):
    """A value in a model: an input, a constant, or the output of an operation.

    Attributes:
        name: what messages call it; not necessarily the only operand of the name.
        type: element type, shape and quantization.
        content: the elements of a constant, or what they can be had from, as a place in a file;
            `None` if it is none.
    """

    __slots__ = ("content", "name", "type")

    name: str
    type: TensorType
    content: Array | Elements | None

    def __init__(self, name: str, type: TensorType, value: Array | Elements | None = None) -> None:
        _set_operand_name(self, name)
        _set_operand_type(self, type)
        _set_operand_content(self, value)

    @property
    def value(self) -> Array | None:
        """The elements if this is a constant, never written to; large ones may be in a file.

        Those are read each time, unless somebody still holds them: keep what is used again, and
        do not ask for the value where `is_constant` or the type will do.

        Raises:
            ModelFileError: the file has changed since the model was loaded.
        """
        content = self.content
        return content.read() if isinstance(content, Elements) else content

    @property
    def is_constant(self) -> bool:
        """Tell whether the value is part of the model."""
        return self.content is not None

    def __repr__(self) -> str:
        return f"<Operand {self.name}: {self.type}{' constant' if self.is_constant else ''}>"


_set_operand_name = setter(Operand, "name")
_set_operand_type = setter(Operand, "type")
_set_operand_content = setter(Operand, "content")


class Origin(NamedTuple):
    """An operator of the file that a model was imported from.

    Attributes:
        type: the framework's name for the operator.
        inputs: the framework's names of the values that it reads.
        outputs: those of the values that it makes.
    """

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Operation(Frozen):
    """One use of an operator: the operands it reads and the operands it makes.

    The operators of `crosschip.ops` are its subclasses. What a subclass must answer is here, so
    that the builder, the printers and the passes need to know no operator.

    Attributes:
        name: what messages and placement reports call the operation; no other in the model has it.
        inputs: the operands in the order of the operator's slots; `None` where one is left out.
        outputs: the operands that it makes.
        output_quantization: the quantization that each output declares; one alone holds for all,
            none where the inputs decide.
    """

    __slots__ = ("_origins", "inputs", "name", "output_quantization", "outputs")

    type: ClassVar[str]
    name: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    output_quantization: tuple[Quantization | None, ...]

    # Tuples of text, unlike their subclasses, cost the garbage collector nothing.
    _origins: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]

    def __init__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        output_quantization: tuple[Quantization | None, ...] = (),
    ) -> None:
        _set_name(self, name)
        _set_origins(self, ())
        _set_inputs(self, inputs)
        _set_outputs(self, outputs)
        _set_output_quantization(self, output_quantization)

    @property
    def origins(self) -> tuple[Origin, ...]:
        """The operators of the file that it stands for, wholly or in part; none if of no file."""
        return tuple(map(Origin._make, self._origins))

    @property
    def bodies(self) -> tuple[Model, ...]:
        """The models that the operation runs; none but for control flow."""
        return ()

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        """Each operand that is present, with the name of the slot it fills."""
        raise NotImplementedError(f"{self.type} does not name its inputs")

    def infer(self) -> tuple[TensorType, ...]:
        """The types of the outputs, from those of the inputs and `output_quantization`.

        Raises:
            ModelError: an input breaks a rule of the operator; the message names the slot.
        """
        raise NotImplementedError(f"{self.type} does not infer its outputs")

    def with_inputs(
        self,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] | None = None,
    ) -> Self:
        """The same operation on other inputs, making the same outputs or the given ones."""
        new_outputs = self.outputs if outputs is None else outputs
        return type(self)(self.name, inputs, new_outputs, self.output_quantization).standing_for(
            self
        )

    def adapted(self, inputs: tuple[Operand | None, ...], *, widening: bool) -> Self:
        """Like `with_inputs`; types in bodies may only become wider if `widening` says so."""
        return self.with_inputs(inputs)

    def with_outputs(self, outputs: tuple[Operand, ...]) -> Self:
        """The same operation making other operands."""
        return self.with_inputs(self.inputs, outputs)

    def standing_for(self, *others: Operation) -> Self:
        """The operation itself, still in the making, as one in place of others of their origins."""
        origins = others[0]._origins
        if len(others) > 1:
            origins = tuple(dict.fromkeys(o for other in others for o in other._origins))
        _set_origins(self, origins)
        return self

    def coming_from(self, origins: Iterable[Origin]) -> Self:
        """The operation itself, still in the making, as one of these origins if it has none yet."""
        if not self._origins:
            _set_origins(self, tuple(map(tuple, origins)))
        return self

    def symbol(self, slot: str, operand: Operand) -> str | None:
        """The name of what a constant stands for, as `RELU`; `None` if it stands for itself."""
        return None

    def called(self, name: str) -> Self:
        """The same operation by another name."""
        renamed = object.__new__(type(self))
        for kind in type(self).__mro__:
            for field in getattr(kind, "__slots__", ()):
                set_field(renamed, field, getattr(self, field))
        set_field(renamed, "name", name)
        return renamed

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


_set_name = setter(Operation, "name")
_set_origins = setter(Operation, "_origins")
_set_inputs = setter(Operation, "inputs")
_set_outputs = setter(Operation, "outputs")
_set_output_quantization = setter(Operation, "output_quantization")


class Model(Frozen):
    """A program of operations, each after those whose outputs it reads.

    Attributes:
        name: what messages call the model.
        inputs: the operands the caller provides, by name.
        operations: in an order in which they can run.
        outputs: the operands the caller gets back, by name; any operand of the model may be one.
    """

    name: str
    inputs: Mapping[str, Operand]
    operations: tuple[Operation, ...]
    outputs: Mapping[str, Operand]

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Operand],
        operations: Iterable[Operation],
        outputs: Mapping[str, Operand],
    ) -> None:
        set_field(self, "name", name)
        set_field(self, "inputs", MappingProxyType(dict(inputs)))
        set_field(self, "operations", tuple(operations))
        set_field(self, "outputs", MappingProxyType(dict(outputs)))

    @cached_property
    def producers(self) -> Mapping[Operand, Operation]:
        """The operation that makes each operand, for operands that an operation makes."""
        return {output: operation for operation in self.operations for output in operation.outputs}

    @cached_property
    def uses(self) -> Mapping[Operand, int]:
        """The number of times that each operand is read, or handed out as a model output."""
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

    @cached_property
    def depth(self) -> int:
        """How many operations of control flow contain each other in the model."""
        bodies = (body for operation in self.operations for body in operation.bodies)
        return max((1 + body.depth for body in bodies), default=0)

    def verify(self) -> None:
        """Check every rule that a model keeps.

        Raises:
            ModelError: an operand is two inputs, is read before it is made or is made twice; two
                operations have one name; an operation breaks a rule of its operator or makes other
                types than it infers; a constant holds something else than its type says; or one of
                these is so in a body of control flow.
        """
        known = set(self.inputs.values())
        if len(known) < len(self.inputs):
            raise ModelError(f"{self.name}: two of the inputs {list(self.inputs)} are one operand")
        named: dict[str, Operation] = {}
        for operation in self.operations:
            where = f"{operation.type} {operation.name!r}"
            if named.setdefault(operation.name, operation) is not operation:
                other = named[operation.name]
                raise ModelError(f"{where}: {other.type} before it has the same name")
            for slot, operand in operation.named_inputs():
                if operand.is_constant:
                    _check_constant(operand)
                elif operand not in known:
                    raise ModelError(
                        f"{where}: {slot} reads {operand.name!r}, which nothing before it makes"
                    )
            _check_types(operation)
            for body in operation.bodies:
                try:
                    body.verify()
                except ModelError as error:
                    raise ModelError(f"{operation.name!r}: {error}") from None
            for output in operation.outputs:
                if output in known:
                    raise ModelError(f"{where} makes {output.name!r}, which is there already")
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
        if not type.fits(output.type):
            raise ModelError(
                f"{where}: {output.name!r} is declared as {output.type}, but the operator makes "
                f"{type}"
            )


def _check_constant(operand: Operand) -> None:
    """`ModelError` if a constant does not hold what it is declared to."""
    array, type_ = operand.content, operand.type
    assert array is not None, "it is constant"
    if array.shape != type_.shape or array.dtype != type_.element_type.dtype:
        held = f"{array.dtype.name}{list(array.shape)}"
        raise ModelError(f"constant {operand.name!r} is declared as {type_}, but holds {held}")
