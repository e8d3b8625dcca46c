"""Shapes that follow from other shapes, without computing them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from crosschip.ir import Dim, Dimension, Model, ModelError, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import product
from crosschip.ops import Operator
from crosschip.ops.definition.operator import UnknownRank, shape_value_of
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.ops.standard.layout import Reshape
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class ResolveShapes(Pass):
    """Lets `RESHAPE` keep sizes instead of computing them, and computes no sizes twice.

    1. The computed `shape` of a `RESHAPE` becomes a constant if each size is a number or that of
       the input on the same axis, for which 0 stands. One other size becomes -1, if the rest are
       positive numbers.
    2. Of operations that make the same sizes, each a number or an expression of named sizes, the
       first is left.

    Sizes about which nothing is known do not count if control flow or extension operations make
    them: those may be of a body that has been copied, and differ from copy to copy.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter, sizes = Rewriter(model), _Sizes()
        known: dict[Hashable, Operand] = {}
        for operation in map(rewriter.resolved, model.operations):
            spend()
            sizes.note(operation)
            key = sizes.key(operation)
            if key is not None and key in known:
                rewriter.replace(operation.outputs[0], known[key])
                continue
            resolved = sizes.resolved(operation)
            if resolved is None:
                rewriter.keep(operation)
            else:
                rewriter.emit(resolved)
            if key is not None:
                known[key] = rewriter.resolve(operation.outputs[0])
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        sizes = _Sizes()
        for operation in after.operations:
            sizes.note(operation)
            if sizes.resolved(operation) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} still computes its shape")


class _Sizes:
    """What is known of sizes, from one operation to the next."""

    def __init__(self) -> None:
        self._doubtful: set[str] = set()

    def note(self, operation: Operation) -> None:
        """Take notice of sizes that an operation makes."""
        if isinstance(operation, Operator):
            return
        for operand in operation.outputs:
            for size in operand.type.shape or ():
                if isinstance(size, Dimension):
                    self._doubtful.update(name for name in size.names if name.startswith("?"))

    def key(self, operation: Operation) -> Hashable:
        """What tells the sizes that an operation makes from others; `None` if it makes none.

        Where all are numbers, `FoldConstants` has something better.
        """
        if len(operation.outputs) != 1 or not isinstance(operation, Operator):
            return None
        type_ = operation.outputs[0].type
        sizes = type_.shape_value
        if sizes is None or type_.static_shape is None or not self._are_known(sizes):
            return None
        return type_.element_type, type_.static_shape, sizes

    def resolved(self, operation: Operation) -> Operation | None:
        """A `RESHAPE` by a constant in place of one by sizes; `None` if it is none, or stays."""
        if not isinstance(operation, Reshape):
            return None
        shape = self._constant_shape(operation)
        if shape is None:
            return None
        inputs = Reshape.bind(operation.name, (operation.input, shape), {})
        return operation.with_inputs(inputs)

    def _constant_shape(self, operation: Reshape) -> tuple[int, ...] | None:
        shape, computed = operation.input.type.shape, operation.operand("shape")
        if shape is None or computed is None or computed.is_constant:
            return None
        try:
            requested, zero_is_size = shape_value_of(computed), operation.allow_zero
        except (UnknownRank, ComputedParameter):
            return None
        if not self._are_known(requested) or (zero_is_size and 0 in requested):
            return None
        resolved = [
            size
            if isinstance(size, int)
            else 0
            if axis < len(shape) and size == shape[axis]
            else None
            for axis, size in enumerate(requested)
        ]
        if None in resolved:
            others = [size for size in resolved if size is not None]
            # Where a kept size is 0, nothing would follow from the others.
            if len(others) < len(resolved) - 1 or min(others, default=1) < 1:
                return None
            if product(shape) != product(tuple(requested)):
                return None
        return tuple(-1 if size is None else size for size in resolved)

    def _are_known(self, sizes: Sequence[Dim]) -> bool:
        return all(isinstance(size, int) or self._doubtful.isdisjoint(size.names) for size in sizes)
