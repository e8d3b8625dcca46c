"""Names of one graph: their operands, initializers and declared types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from crosschip.importers.body import Captures
from crosschip.importers.locations import REFUSALS, prefix_error
from crosschip.importers.onnx.opaque import type_proto
from crosschip.importers.onnx.shared import Shared
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
    """Names that are visible in a graph: its own, and those of the enclosing graphs.

    Args:
        shared: the state that all graphs of the model share.
        outer: the names of the enclosing graph, if they are visible.
        captures: records what is read from `outer`, in a body of control flow.
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
        """Bind a name to an operand; `None` for an omitted optional input."""
        self._operands[name] = operand

    def initialize(self, tensors: Sequence[TensorProto]) -> None:
        """Bind names to the file's initializers.

        Raises:
            ModelFileError: two initializers have the same name.
        """
        self._tensors = tensors
        for number, name in enumerate(texts([tensor.name for tensor in tensors])):
            if self._initializers.setdefault(name, number) != number:
                raise ModelFileError(f"two initializers are called {name!r}")

    def declare(self, values: Iterable[ValueInfoProto]) -> None:
        """Record the declared types, which are used where type inference has no result."""
        self._declared.update((text(value.name), value.type) for value in values)

    def operand(self, name: str) -> Operand:
        """Return the operand of a name; initializers are read on first use.

        Raises:
            ModelError: no node defines the name.
        """
        operand = self.optional(name)
        if operand is None:
            raise ModelError(f"{name!r} is left out, but needed")
        return operand

    def optional(self, name: str) -> Operand | None:
        """Return the operand of a name; `None` for an omitted input of a function."""
        if name in self._operands:
            return self._operands[name]
        number = self._initializers.get(name)
        if number is not None:
            try:
                operand = self.constant(self._tensors[number], name)
            except REFUSALS as error:
                raise prefix_error(f"initializer {name!r}", error) from None
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
        """Return an operand for a tensor of the file: a constant, unless it holds strings."""
        if tensor.data_type != TensorProto.STRING:
            return constant(self._shared.reader.content(tensor), name)
        operand = Operand(name, self._shared.reader.strings(tensor))
        self._shared.strings[operand] = tensor
        return operand

    def strings(self, operand: Operand) -> TensorProto | None:
        """Return the string tensor that an operand stands for; `None` for other operands."""
        return self._shared.strings.get(operand)

    def type_of(self, operand: Operand) -> TypeProto:
        """Return the type of an operand as an ONNX `TypeProto`."""
        return self._shared.containers.get(operand) or type_proto(operand.type)

    def contain(self, operand: Operand, type_: TypeProto) -> None:
        """Record the type of an operand that is a sequence, map or optional value."""
        self._shared.containers[operand] = type_

    def array(self, tensor: TensorProto) -> Array:
        """Return the elements of a tensor of the file."""
        return self._shared.reader.array(tensor)

    def dense(self, tensor: SparseTensorProto) -> Array:
        """Return the elements of a sparse tensor of the file."""
        return self._shared.reader.dense(tensor)

    def forget(self, operands: Set[Operand]) -> None:
        """Unbind names, here and in enclosing graphs, that were computed to be these operands."""
        for name in [name for name in self._computed if self._operands[name] in operands]:
            self._not_computed[name] = self._computed.pop(name)
            del self._operands[name]
        if self._outer is not None:
            self._outer.forget(operands)

    def _compute(self, name: str) -> None:
        """Add an operation for an output that its node's import function omitted."""
        raise NotImplementedError(f"{name!r} cannot be computed")
