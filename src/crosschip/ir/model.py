"""Operands, operations and models.

All of them are immutable: a pass builds new ones and shares all unchanged parts. So a copy of a
model shares its weights, and several threads can use a model at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from crosschip.ir.dimension import Dim, name_of
from crosschip.ir.elements import Elements
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import Frozen, set_field, setter
from crosschip.ir.types import Array, Quantization, TensorType

if TYPE_CHECKING:
    from crosschip.summary import Summary


class Operand(Frozen):
    """Value in a model: an input, a constant, or the output of an operation.

    Attributes:
        name: the name in messages; not necessarily unique.
        type: element type, shape and quantization.
        content: the elements of a constant or their location in a file; `None` if it is not a
            constant.
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
        """Return the elements of a constant as a read-only array, else `None`.

        Elements in a file are read at each access unless the array is still referenced: keep a
        reference to use them again, and use `is_constant` or the type where they suffice.

        Raises:
            ModelFileError: the file has changed since the model was loaded.
        """
        content = self.content
        return content.read() if isinstance(content, Elements) else content

    @property
    def is_constant(self) -> bool:
        """Return whether the value is part of the model."""
        return self.content is not None

    def __repr__(self) -> str:
        return f"<Operand {self.name}: {self.type}{' constant' if self.is_constant else ''}>"


_set_operand_name = setter(Operand, "name")
_set_operand_type = setter(Operand, "type")
_set_operand_content = setter(Operand, "content")


class Origin(NamedTuple):
    """Operator in the file that a model was imported from.

    Attributes:
        type: the framework's name of the operator.
        inputs: the framework's names of its inputs.
        outputs: the framework's names of its outputs.
    """

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Operation(Frozen):
    """Use of an operator: the operands that it reads and the operands that it outputs.

    The operators of `crosschip.ops` are subclasses. Their interface is here, so that the builder,
    the printers and the passes do not depend on operators.

    Attributes:
        name: the name in messages and placement reports; unique in the model.
        inputs: the operands in the order of the operator's slots; `None` for an omitted one.
        outputs: the output operands.
        output_quantization: the declared quantization of each output; a single one applies to all,
            an empty tuple leaves it to inference.
    """

    __slots__ = ("_origins", "inputs", "name", "output_quantization", "outputs")

    type: ClassVar[str]
    name: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand, ...]
    output_quantization: tuple[Quantization | None, ...]

    # The garbage collector does not track tuples of strings, but it tracks instances of subclasses.
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
        """Return the operators of the model file that the operation represents or is part of."""
        return tuple(map(Origin._make, self._origins))

    @property
    def bodies(self) -> tuple[Model, ...]:
        """Return the models that an operation of control flow runs; empty for other operations."""
        return ()

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        """Yield each present operand with the name of its slot."""
        raise NotImplementedError(f"{self.type} does not name its inputs")

    def infer(self) -> tuple[TensorType, ...]:
        """Return the output types, inferred from the input types and `output_quantization`.

        Raises:
            ModelError: an input breaks a rule of the operator; the message names the slot.
        """
        raise NotImplementedError(f"{self.type} does not infer its outputs")

    def multiply_adds(self) -> Dim:
        """Return the number of products that convolutions, matrix products and the like add up.

        It is 0 for operators whose work is not in such sums.
        """
        return 0

    def with_inputs(
        self, inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...] | None = None
    ) -> Self:
        """Return the same operation on other inputs and, if passed, with other outputs."""
        new_outputs = self.outputs if outputs is None else outputs
        return type(self)(self.name, inputs, new_outputs, self.output_quantization).standing_for(
            self
        )

    def adapt(self, inputs: tuple[Operand | None, ...], *, widening: bool) -> Self:
        """Like `with_inputs`; `widening` restricts types in bodies to become wider only."""
        return self.with_inputs(inputs)

    def with_outputs(self, outputs: tuple[Operand, ...]) -> Self:
        """Return the same operation with other outputs."""
        return self.with_inputs(self.inputs, outputs)

    def standing_for(self, *others: Operation) -> Self:
        """Copy the origins of the operations that this new one replaces; return `self`."""
        origins = others[0]._origins
        if len(others) > 1:
            origins = tuple(dict.fromkeys(o for other in others for o in other._origins))
        _set_origins(self, origins)
        return self

    def coming_from(self, origins: Iterable[Origin]) -> Self:
        """Set the origins of this new operation unless it has some; return the operation itself."""
        if not self._origins:
            _set_origins(self, tuple(map(tuple, origins)))
        return self

    def symbol(self, slot: str, operand: Operand) -> str | None:
        """Return the name of an enumerated constant, such as `RELU`; `None` for a plain value."""
        return None

    def with_name(self, name: str) -> Self:
        """Return the same operation with another name."""
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
    """Graph of operations in topological order.

    Attributes:
        name: the name in messages.
        inputs: the model's input operands by name.
        operations: the operations; each follows the producers of its inputs.
        outputs: the model's output operands by name; any operand of the model may be one.
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
        """Return the operation that outputs each operand, except for inputs and constants."""
        return {output: operation for operation in self.operations for output in operation.outputs}

    @cached_property
    def uses(self) -> Mapping[Operand, int]:
        """Return how often each operand is read or is a model output."""
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
        """Return the constants that the model uses, each once, in order of first use."""
        return tuple(operand for operand in self.uses if operand.is_constant)

    @cached_property
    def depth(self) -> int:
        """Return the nesting depth of control flow in the model."""
        bodies = (body for operation in self.operations for body in operation.bodies)
        return max((1 + body.depth for body in bodies), default=0)

    def verify(self) -> None:
        """Check all invariants of a model.

        Raises:
            ModelError: an operand is two inputs, is read before its producer runs, or has two
                producers; two operations have the same name; an operation breaks a rule of its
                operator or declares output types that differ from the inferred ones; a constant
                does not match its type; or a body of control flow breaks one of these rules.
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

    def summary(self, shapes: Mapping[str, Sequence[int | None] | int] | None = None) -> Summary:
        """Summarize inputs, outputs, open sizes, operators, parameters, arithmetic and memory.

        Args:
            shapes: shapes of inputs or open sizes, as for `crosschip.compile`; numbers then replace
                formulas.

        Raises:
            InputError: the shapes do not fit the model.
        """
        # By its name, since models do not depend on what is computed from them.
        summary: Summary = import_module("crosschip.summary").summarize(self, shapes)
        return summary

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __str__(self) -> str:
        from crosschip.ir.text import to_text

        return to_text(self)

    def __repr__(self) -> str:
        return (
            f"<Model {self.name}: {len(self.operations)} operations, "
            f"{list(self.inputs)} -> {list(self.outputs)}>"
        )


def _check_types(operation: Operation) -> None:
    """Raise ModelError if an operation breaks a rule or its declared outputs do not fit."""
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
    """Raise ModelError unless a constant's elements match its declared type."""
    array, type_ = operand.content, operand.type
    assert array is not None, "it is constant"
    if array.shape != type_.shape or array.dtype != type_.element_type.dtype:
        actual = f"{array.dtype.name}{list(array.shape)}"
        raise ModelError(f"constant {operand.name!r} is declared as {type_}, but holds {actual}")


class Deferred(Model):
    """Model of which only name, inputs and outputs are loaded until its operations are used.

    Args:
        name: the model's name, for messages.
        inputs: the model's input operands by name.
        outputs: the model's output operands by name.
        load: returns the model with its operations, on operands of its own.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Operand],
        outputs: Mapping[str, Operand],
        load: Callable[[], Model],
    ) -> None:
        set_field(self, "name", name)
        set_field(self, "inputs", MappingProxyType(dict(inputs)))
        set_field(self, "outputs", MappingProxyType(dict(outputs)))
        set_field(self, "_load", load)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:  # type: ignore[override]  # it is set once
        """Return the operations, on the operands of this model's inputs and outputs.

        Raises:
            ModelFileError: the file with the operations is missing or damaged.
        """
        loaded: Model = self._load()  # type: ignore[attr-defined]  # `set_field` has set it
        copies: dict[Operand, Operand] = {}
        for theirs, ours in ((loaded.inputs, self.inputs), (loaded.outputs, self.outputs)):
            copies.update(zip(theirs.values(), ours.values(), strict=True))
        sizes = _match_sizes(copies)
        return tuple(_copy_operation(operation, copies, sizes) for operation in loaded.operations)


def _copy_operation(
    operation: Operation, copies: dict[Operand, Operand], sizes: Mapping[str, Dim]
) -> Operation:
    """Return an operation on copies of its operands; add copies of its outputs to `copies`."""
    for output in operation.outputs:
        if output not in copies:
            copies[output] = Operand(output.name, output.type.substitute(sizes))
    return operation.with_inputs(
        tuple([None if o is None else copies.get(o, o) for o in operation.inputs]),
        tuple([copies[o] for o in operation.outputs]),
    )


def _match_sizes(copies: Mapping[Operand, Operand]) -> dict[str, Dim]:
    """Return this model's size for each anonymous size of the loaded one, which has fresh names."""
    sizes: dict[str, Dim] = {}
    for theirs, ours in copies.items():
        for size, own in zip(theirs.type.shape or (), ours.type.shape or (), strict=False):
            name = name_of(size)
            if name is not None and own != size:
                sizes.setdefault(name, own)
    return sizes
