"""Import of graphs and blocks as bodies of control flow: models with captured operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from crosschip.ir import ElementType, Model, Operand, Operation, TensorType, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import unknown
from crosschip.ir.type_joins import is_open, names_in, widen_type


class Captures:
    """Operands of the enclosing graphs that a body reads, mapped to the body's inputs for them."""

    def __init__(self) -> None:
        self.inside: dict[Operand, Operand] = {}

    def of(self, outside: Operand) -> Operand:
        """Return the body's operand for one of an enclosing graph; constants stay the same.

        Raises:
            UnsupportedError: the operand is no tensor.
        """
        if outside.is_constant:
            return outside
        if outside.type.element_type is ElementType.OBJECT:
            raise UnsupportedError(f"reads {outside.name!r}, which is no tensor")
        if outside not in self.inside:
            self.inside[outside] = Operand(outside.name, outside.type)
        return self.inside[outside]


@dataclass(frozen=True)
class Body:
    """Graph or block that has been imported separately.

    Attributes:
        name: the name of the model to build.
        inputs: the declared inputs.
        operations: the operations, in topological order.
        outputs: the outputs.
        captures: the operands read from enclosing graphs.
    """

    name: str
    inputs: Sequence[Operand]
    operations: Sequence[Operation]
    outputs: Sequence[Operand]
    captures: Captures = field(repr=False)

    def model(self, captured: Iterable[Operand]) -> Model:
        """Build a model whose inputs are the body's, then one for each captured operand."""
        inside = self.captures.inside
        inputs = [*self.inputs]
        inputs += [inside.get(o) or Operand(o.name, o.type) for o in captured]
        return Model(self.name, _unique_names(inputs), self.operations, _unique_names(self.outputs))


OpenAxes = dict[str, list[frozenset[int] | None]]
"""By loop, the dynamic axes of each state operand; `None` for a dynamic rank."""


def import_widened_body(
    import_body: Callable[[Sequence[TensorType]], Body],
    state: Sequence[TensorType],
    state_indices: tuple[int, int],
    open_axes: OpenAxes,
    loop: str,
) -> Body:
    """Import a loop body with state types that hold in all iterations.

    The types are widened until the body's outputs fit its inputs.

    Args:
        import_body: imports the body for given types of the state.
        state: the types of the initial state.
        state_indices: the index of the first state among the body's inputs and among its outputs.
        open_axes: widened axes from earlier imports; nested loops are imported repeatedly.
        loop: the key of the loop in `open_axes`.

    Raises:
        ModelError: the body returns a state with another element type than its input.
    """
    first_input, first_output = state_indices
    loop_axes = open_axes.setdefault(loop, [frozenset()] * len(state))
    types = [_widen_type(type_, axes) for type_, axes in zip(state, loop_axes, strict=True)]
    effort = 0
    while True:
        body = import_body(types)
        result_types = [o.type for o in body.outputs[first_output:][: len(state)]]
        other_types = (o.type for o in body.inputs[first_input + len(state) :])
        outer = names_in([*state, *other_types, *(o.type for o in body.captures.inside)])
        wider = [
            widen_type(current, result, outer, effort)
            for current, result in zip(types, result_types, strict=True)
        ]
        if wider == types:
            return body
        types = wider
        effort += 1
        loop_axes[:] = [_open_axes(type_, outer) for type_ in types]


def _widen_type(type_: TensorType, axes: frozenset[int] | None) -> TensorType:
    shape = type_.shape
    if shape is None or axes is None:
        return replace(type_, shape=None, shape_value=None)
    opened = (unknown() if axis in axes else size for axis, size in enumerate(shape))
    return replace(type_, shape=tuple(opened), shape_value=None)


def _open_axes(type_: TensorType, outer: frozenset[str]) -> frozenset[int] | None:
    if type_.shape is None:
        return None
    return frozenset(axis for axis, size in enumerate(type_.shape) if is_open(size, outer))


def _unique_names(operands: Iterable[Operand]) -> dict[str, Operand]:
    """Return the operands by name, with a numeric suffix where a name is already in use."""
    named: dict[str, Operand] = {}
    for operand in operands:
        name, number = operand.name, 1
        while name in named:
            number += 1
            name = f"{operand.name}#{number}"
        named[name] = operand
    return named
