"""The names of one graph: the operands that they stand for, and what the file says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from crosschip.importers.body import Captures
from crosschip.importers.onnx.opaque import type_proto
from crosschip.importers.onnx.shared import REFUSALS, Shared, at
from crosschip.importers.onnx.tensors import text, texts
from crosschip.ir import Array, ModelError, ModelFileError, Operand, constant
from crosschip.onnx_messages import (
    NodeProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)


class Names:
    """The names that are visible in a graph: its own, and those of the graphs around it.

    Args:
        shared: what all graphs of the model have in common.
        outer: the names of the graph around it, if they are visible here.
        captures: takes note of what is read from `outer`, if this is a body of control flow.
    """

    def __init__(
        self, shared: Shared, outer: Names | None = None, captures: Captures | None = None
    ) -> None:
        self._shared = shared
        self._outer = outer
        self._captures = captures
        self._operands: dict[str, Operand | None] = {}
        self._tensors: Sequence[TensorProto] = ()
        self._initializers: dict[str, int] = {}
        self._not_computed: dict[str, NodeProto] = {}
        self._computed: dict[str, NodeProto] = {}
        self._declared: dict[str, TypeProto] = {}

    def define(self, name: str, operand: Operand | None) -> None:
        """Say what a name stands for; `None` for an optional input that is left out."""
        self._operands[name] = operand

    def initialize(self, tensors: Sequence[TensorProto]) -> None:
        """Tensors of the file that names stand for.

        Raises:
            ModelFileError: two have one name.
        """
        self._tensors = tensors
        for number, name in enumerate(texts([tensor.name for tensor in tensors])):
            if self._initializers.setdefault(name, number) != number:
                raise ModelFileError(f"two initializers are called {name!r}")

    def declare(self, values: Iterable[ValueInfoProto]) -> None:
        """The types that the file says names have; looked at where nothing else is known."""
        self._declared.update((text(value.name), value.type) for value in values)

    def operand(self, name: str) -> Operand:
        """The operand of a name; an initializer is read when it is first asked for.

        Raises:
            ModelError: nothing makes it.
        """
        operand = self.optional(name)
        if operand is None:
            raise ModelError(f"{name!r} is left out, but needed")
        return operand

    def optional(self, name: str) -> Operand | None:
        """Like `operand`, with `None` for an input of a function that is left out."""
        if name in self._operands:
            return self._operands[name]
        number = self._initializers.get(name)
        if number is not None:
            try:
                operand = self.constant(self._tensors[number], name)
            except REFUSALS as error:
                raise at(f"initializer {name!r}", error) from None
            self._operands[name] = operand
            return operand
        if name in self._not_computed:
            self._compute(name)
            return self._operands[name]
        if self._outer is not None:
            outside = self._outer.optional(name)
            if self._captures is None or outside is None or self.strings(outside):
                return outside
            return self._captures.of(outside)
        raise ModelError(f"{name!r} is read, but nothing before makes it")

    def constant(self, tensor: TensorProto, name: str) -> Operand:
        """The operand for a tensor of the file: a constant, unless it is of strings."""
        if tensor.data_type != TensorProto.STRING:
            return constant(self._shared.reader.content(tensor), name)
        operand = Operand(name, self._shared.reader.strings(tensor))
        self._shared.strings[operand] = tensor
        return operand

    def strings(self, operand: Operand) -> TensorProto | None:
        """The tensor of strings of the file that an operand stands for, if it does."""
        return self._shared.strings.get(operand)

    def type_of(self, operand: Operand) -> TypeProto:
        """The type of an operand as ONNX writes it."""
        return self._shared.containers.get(operand) or type_proto(operand.type)

    def contain(self, operand: Operand, type_: TypeProto) -> None:
        """Keep the type of an operand that is no tensor."""
        self._shared.containers[operand] = type_

    def array(self, tensor: TensorProto) -> Array:
        """The elements of a tensor of the file."""
        return self._shared.reader.array(tensor)

    def dense(self, tensor: SparseTensorProto) -> Array:
        """The elements of a tensor of the file that is stored without its zeros."""
        return self._shared.reader.dense(tensor)

    def forget(self, gone: Set[Operand]) -> None:
        """Take back what names here and around have been computed to stand for, of these."""
        for name in [name for name in self._computed if self._operands[name] in gone]:
            self._not_computed[name] = self._computed.pop(name)
            del self._operands[name]
        if self._outer is not None:
            self._outer.forget(gone)

    def _compute(self, name: str) -> None:
        """Make an output that the function of its node left out."""
        raise NotImplementedError(f"{name!r} cannot be computed")
