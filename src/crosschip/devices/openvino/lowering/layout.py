"""Reshapes, and operations without effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.devices.kits.limits import is_empty_list
from crosschip.ir import Builder, ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.rearranging import Roll, Tile
from crosschip.ops.standard.reduction import ReduceProd
from crosschip.ops.standard.slicing import Slice
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_LISTS: Mapping[type[Operator], str] = {
    Expand: "shape",
    Roll: "shifts",
    Slice: "starts",
    Tile: "repeats",
    Unsqueeze: "axes",
}
"""The slot with one number per affected axis."""


def input_itself(b: Builder, op: Operator) -> Sequence[Operand] | None:
    """Replace an operation along no axes, or on a scalar, by its input.

    Quirks `expanded-to-no-axes`, `repeats-along-no-axes`, `roll-along-no-axes`.
    """
    (output,), input, slot = op.outputs, op.inputs[0], _LISTS.get(type(op))
    assert input is not None, "it is required"
    is_nothing = slot is not None and is_empty_list(op.operand(slot))
    return (input,) if is_nothing or output.type.shape == () else None


def as_reshape(b: Builder, op: Flatten) -> Sequence[Operand]:
    """Replace FLATTEN by RESHAPE, with sizes of 0 taken literally."""
    sizes_or_minus_one = [
        size if isinstance(size, int) else -1 for size in op.outputs[0].type.shape or ()
    ]
    if sizes_or_minus_one.count(-1) < 2:
        return (b.add(Reshape, op.input, sizes_or_minus_one, allow_zero=True),)
    rank = len(op.input.type.shape or ())
    start, end = op.start_axis % rank, op.end_axis % rank + 1
    sizes = b.add(ShapeOf, op.input, ElementType.INT64)

    def part(first: int, last: int) -> Sequence[Operand]:
        return [b.add(Slice, sizes, (0,), (first,), (last,), (1,))] if first < last else []

    merged = b.add(ReduceProd, *part(start, end), keepdim=True)
    shape = b.add(Concat, [*part(0, start), merged, *part(end, rank)], 0)
    return (b.add(Reshape, op.input, shape, allow_zero=True),)


@dataclass(frozen=True)
class CancelUnsqueezes(Pass):
    """Removal of each SQUEEZE that undoes an UNSQUEEZE.

    OpenVINO converts one of them to a reshape before it looks for such pairs.

    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            producer = (
                rewriter.producer(operation.input) if isinstance(operation, Squeeze) else None
            )
            if isinstance(producer, Unsqueeze) and _axes(operation) == _axes(producer):
                rewriter.replace(operation.outputs[0], producer.input)
            else:
                rewriter.keep(operation)
        return rewriter.finish()


def _axes(op: Operation) -> Sequence[int]:
    """Return the inserted or removed axes, sorted, as axes of the larger tensor."""
    assert isinstance(op, Squeeze | Unsqueeze), "no other is asked about"
    tensor = op.input if isinstance(op, Squeeze) else op.outputs[0]
    rank = len(tensor.type.shape or ())
    return sorted(axis % rank for axis in op.axes or ())
