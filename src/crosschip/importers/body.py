"""Graphs and blocks of files as bodies of control flow: models that capture values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace

from crosschip.ir import ElementType, Model, Operand, Operation, TensorType, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import unknown
from crosschip.ir.type_joins import is_open, names_in, widen_type


class Captures:
    """The operands of the graphs around a body that it reads, and what it calls them."""

    def __init__(self) -> None:
        self.inside: dict[Operand, Operand] = {}

    def of(self, outside: Operand) -> Operand:
        """The operand of the body for one of outside; a constant is its own.

        Raises:
            UnsupportedError: it is no tensor.
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
    """A graph or block that has been imported by itself.

    Attributes:
        name: what to call it.
        inputs: what it takes.
        operations: in an order in which they can run.
        outputs: what it makes.
        captures: what it reads from outside besides.
    """

    name: str
    inputs: Sequence[Operand]
    operations: Sequence[Operation]
    outputs: Sequence[Operand]
    captures: Captures = field(repr=False)

    def model(self, captured: Iterable[Operand]) -> Model:
        """The body as a model that takes these operands of outside after its own inputs."""
        inside = self.captures.inside
        inputs = [*self.inputs]
        inputs += [inside.get(o) or Operand(o.name, o.type) for o in captured]
        return Model(self.name, _named(inputs), self.operations, _named(self.outputs))


OpenAxes = dict[str, list[frozenset[int] | None]]
"""The axes of each state of a loop whose sizes are open, by the loop; `None` if the rank is."""


def with_settled_state(
    import_body: Callable[[Sequence[TensorType]], Body],
    state: Sequence[TensorType],
    place: tuple[int, int],
    opened: OpenAxes,
    loop: str,
) -> Body:
    """The body of a loop, imported for types of its state that hold whatever it makes of it.

    Args:
        import_body: imports the body for types of the state.
        state: the types of the first state.
        place: where among its inputs, and where among its outputs the state begins.
        opened: what has been found out before; a loop in a loop is imported again and again.
        loop: what stands for the loop there.

    Raises:
        ModelError: it makes another element type of a state than it takes.
    """
    first_input, first_output = place
    known = opened.setdefault(loop, [frozenset()] * len(state))
    types = [_opened(type_, axes) for type_, axes in zip(state, known, strict=True)]
    effort = 0
    while True:
        body = import_body(types)
        result_types = [o.type for o in body.outputs[first_output:][: len(state)]]
        own = (o.type for o in body.inputs[first_input + len(state) :])
        outer = names_in([*state, *own, *(o.type for o in body.captures.inside)])
        wider = [
            widen_type(held, other, outer, effort)
            for held, other in zip(types, result_types, strict=True)
        ]
        if wider == types:
            return body
        types = wider
        effort += 1
        known[:] = [_open_axes(type_, outer) for type_ in types]


def _opened(type_: TensorType, axes: frozenset[int] | None) -> TensorType:
    shape = type_.shape
    if shape is None or axes is None:
        return replace(type_, shape=None, shape_value=None)
    opened = (unknown() if axis in axes else size for axis, size in enumerate(shape))
    return replace(type_, shape=tuple(opened), shape_value=None)


def _open_axes(type_: TensorType, outer: frozenset[str]) -> frozenset[int] | None:
    if type_.shape is None:
        return None
    return frozenset(axis for axis, size in enumerate(type_.shape) if is_open(size, outer))


def _named(operands: Iterable[Operand]) -> dict[str, Operand]:
    """The operands by their names, those that are taken told apart by a number."""
    named: dict[str, Operand] = {}
    for operand in operands:
        name, number = operand.name, 1
        while name in named:
            number += 1
            name = f"{operand.name}#{number}"
        named[name] = operand
    return named
