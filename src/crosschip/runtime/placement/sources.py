"""The source operators of a model: the operators of its file, with the operations for each.

Passes merge operators, and importers expand them. Operators and operations that are connected by
merging or expansion are one source, which is placed as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from crosschip.ir import Model, Operation, Origin
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True)
class Source:
    """One operator of the file, or several that passes merged.

    Attributes:
        origins: the operators of the file.
        operations: the operations for them, including those in bodies of control flow.
    """

    origins: tuple[Origin, ...]
    operations: Sequence[Operation]

    @cached_property
    def whole(self) -> Origin:
        """The source as one operator: the type of its first, and the inputs and outputs of all."""
        if len(self.origins) == 1:
            return self.origins[0]
        inputs = dict.fromkeys(name for origin in self.origins for name in origin.inputs)
        outputs = dict.fromkeys(name for origin in self.origins for name in origin.outputs)
        return Origin(
            self.origins[0].type,
            tuple([name for name in inputs if name not in outputs]),
            tuple([name for name in outputs if name not in inputs]),
        )

    @property
    def forms(self) -> Sequence[Origin]:
        """The operators that entries may name: each of the source's operators, and the whole."""
        return self.origins if len(self.origins) == 1 else (self.whole, *self.origins)

    @property
    def line(self) -> str:
        """The line in the list of operators: `conv2d:x,conv2d_0.w_0:conv2d_0.tmp_0`."""
        return line_of(self.whole)


def line_of(origin: Origin) -> str:
    """Format an operator as `type:inputs:outputs`, with names separated by commas."""
    return f"{origin.type}:{','.join(origin.inputs)}:{','.join(origin.outputs)}"


def origins_of(operation: Operation) -> tuple[Origin, ...]:
    """Return the file's operators that an operation comes from; itself if it has none."""
    if operation.origins:
        return operation.origins
    inputs = tuple([operand.name for operand in operation.inputs if operand is not None])
    return (Origin(operation.type, inputs, tuple([o.name for o in operation.outputs])),)


def sources_of(model: Model) -> Sequence[Source]:
    """Return the sources of a model, in the order of its operations."""
    origins_in: list[list[Origin]] = []
    operations_in: list[list[Operation]] = []
    number_of: dict[Origin, int] = {}
    merged_into: dict[int, int] = {}
    for operation in walk_operations(model):
        origins = origins_of(operation)
        numbers = {
            _resolve(merged_into, number_of[origin]) for origin in origins if origin in number_of
        }
        number = min(numbers, default=len(origins_in))
        if not numbers:
            origins_in.append([])
            operations_in.append([])
        for other in sorted(numbers - {number}):
            merged_into[other] = number
            origins_in[number] += origins_in[other]
            operations_in[number] += operations_in[other]
        for origin in origins:
            if origin not in number_of:
                number_of[origin] = number
                origins_in[number].append(origin)
        operations_in[number].append(operation)
    return [
        Source(tuple(origins), operations_in[number])
        for number, origins in enumerate(origins_in)
        if number not in merged_into
    ]


def _resolve(merged_into: dict[int, int], number: int) -> int:
    while number in merged_into:
        number = merged_into[number]
    return number
