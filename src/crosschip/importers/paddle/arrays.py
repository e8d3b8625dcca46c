"""Arrays of tensors that a loop fills: each run of its body adds one tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from crosschip.importers.paddle.program import Block
from crosschip.ir import Operand, UnsupportedError
from crosschip.ir.dataclass import dataclass

_WRITES: Mapping[str, tuple[str, str]] = {
    "write_to_array": ("outputs", "Out"),
    "pd_op.array_write_": ("inputs", "Array"),
}
"""The operators that write to arrays, and the slots that hold the array."""


@dataclass
class Appended:
    """An array as the body of the loop sees it.

    Attributes:
        iteration: how often the body has run before, which is how many tensors there are.
        lengths: operands that are this number in a list.
        added: what this run adds.
    """

    iteration: Operand
    lengths: set[Operand] = field(default_factory=set)
    added: Operand | None = None


@dataclass(frozen=True)
class Stacked:
    """An array after the loop.

    Attributes:
        tensors: its tensors, one behind the other on a first axis.
    """

    tensors: Operand


def written_in(block: Block) -> Sequence[str]:
    """The arrays that the operators of a block write to, each once."""
    names: dict[str, None] = {}
    for operator in block.operators:
        if operator.type in _WRITES:
            side, slot = _WRITES[operator.type]
            names.update(dict.fromkeys(getattr(operator, side).get(slot, ())))
    return list(names)


def added(array: object, name: str) -> Operand:
    """What a run of a loop's body has added to an array.

    Raises:
        UnsupportedError: it has added nothing.
    """
    if not isinstance(array, Appended) or array.added is None:
        raise UnsupportedError(f"{name!r} is an array that a loop does not write to each time")
    return array.added
