"""Simplification of computed shapes."""

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
    """Replaces computed target shapes of `RESHAPE`, and merges equal shape computations.

    1. The computed `shape` of a `RESHAPE` becomes a constant if each size is static or equals the
       input's size on the same axis, which 0 stands for. One other size becomes -1, if the rest are
       positive numbers.
    2. Of operations that compute the same sizes, as numbers or expressions over named dimensions,
       only the first is kept.

    Unknown dimensions that control flow or extension operations introduce are not compared: these
    may come from copies of one body and differ from copy to copy.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter, sizes = Rewriter(model), _Sizes()
        first_by_key: dict[Hashable, Operand] = {}
        for operation in map(rewriter.resolved, model.operations):
            spend()
            sizes.note(operation)
            key = sizes.key(operation)
            if key is not None and key in first_by_key:
                rewriter.replace(operation.outputs[0], first_by_key[key])
                continue
            resolved = sizes.resolved(operation)
            if resolved is None:
                rewriter.keep(operation)
            else:
                rewriter.emit(resolved)
            if key is not None:
                first_by_key[key] = rewriter.resolve(operation.outputs[0])
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        sizes = _Sizes()
        for operation in after.operations:
            sizes.note(operation)
            if sizes.resolved(operation) is not None:
                raise ModelError(f"{operation.type} {operation.name!r} still computes its shape")


class _Sizes:
    """The dimensions that can be compared, collected from one operation to the next."""

    def __init__(self) -> None:
        self._incomparable: set[str] = set()

    def note(self, operation: Operation) -> None:
        """Record the unknown dimensions that an operation introduces."""
        if isinstance(operation, Operator):
            return
        for operand in operation.outputs:
            for size in operand.type.shape or ():
                if isinstance(size, Dimension):
                    self._incomparable.update(name for name in size.names if name.startswith("?"))

    def key(self, operation: Operation) -> Hashable:
        """Return a key that is equal for equal size computations; `None` if there is none.

        Operations whose sizes are all static are left to `FoldConstants`.
        """
        if len(operation.outputs) != 1 or not isinstance(operation, Operator):
            return None
        type_ = operation.outputs[0].type
        sizes = type_.shape_value
        if sizes is None or type_.static_shape is None or not self._are_comparable(sizes):
            return None
        return type_.element_type, type_.static_shape, sizes

    def resolved(self, operation: Operation) -> Operation | None:
        """Return a `RESHAPE` with a constant shape in place of a computed one, else `None`."""
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
        if not self._are_comparable(requested) or (zero_is_size and 0 in requested):
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
            fixed_sizes = [size for size in resolved if size is not None]
            # -1 is not determined if a kept size is 0.
            if len(fixed_sizes) < len(resolved) - 1 or min(fixed_sizes, default=1) < 1:
                return None
            if product(shape) != product(tuple(requested)):
                return None
        return tuple(-1 if size is None else size for size in resolved)

    def _are_comparable(self, sizes: Sequence[Dim]) -> bool:
        return all(
            isinstance(size, int) or self._incomparable.isdisjoint(size.names) for size in sizes
        )
