"""The program of a Paddle model, in a common form for Paddle 2 and Paddle 3.

Operators, slots and attributes have their names in Paddle 2; see `dialect` for Paddle 3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from crosschip.ir import ElementType, Error, Origin
from crosschip.ir.dataclass import dataclass

MAX_DEPTH = 32
"""The maximum nesting depth of control flow."""
MAX_LEVELS = 8
"""The maximum number of LoD levels of a tensor."""

Scalar = bool | int | float | str | ElementType
Value = Scalar | tuple[Scalar, ...] | None
"""The value of an attribute; `None` for an undefined element type."""


class Attributes(Mapping[str, Value]):
    """Attributes by name, decoded on access, because most are never read.

    Args:
        raw: the attributes as stored in the file.
        decode: the function that decodes a value; raises `ModelError` or `UnsupportedError`.
    """

    __slots__ = ("_decode", "_raw")

    def __init__(self, raw: Mapping[str, Any], decode: Callable[[Any], Value]) -> None:
        self._raw = raw
        self._decode = decode

    def rename(self, names: Mapping[str, str]) -> Attributes:
        """Return the attributes, renamed by `names`."""
        if not names:
            return self
        return Attributes({names.get(n, n): raw for n, raw in self._raw.items()}, self._decode)

    def __getitem__(self, name: str) -> Value:
        return self._decode(self._raw[name])

    def get(self, name: str, default: Any = None, /) -> Any:
        return self[name] if name in self._raw else default

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


class Variable(NamedTuple):
    """A tensor declared in the program.

    Attributes:
        name: its name.
        element_type: its element type.
        shape: its shape; -1 for an unknown size.
        levels: the number of its LoD levels.
    """

    name: str
    element_type: ElementType
    shape: tuple[int, ...]
    levels: int = 0


class ParameterUse(Enum):
    """The use of a parameter's value."""

    OPERAND = "an operator reads the parameter"
    OUTPUT = "the parameter is an output of the program, and no operator reads it"


class Operator(NamedTuple):
    """An operator of a program or block.

    Attributes:
        number: its index in the block, for messages.
        label: its type in the file, for messages.
        type: its type in Paddle 2.
        name: the name of the operation to build.
        inputs: the names of its input variables, by slot.
        outputs: the names of its output variables, by slot.
        attributes: its attributes.
        blocks: the blocks of a control flow operator.
    """

    number: int
    label: str
    type: str
    name: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    attributes: Mapping[str, Value]
    blocks: Sequence[Block] = ()

    @property
    def origin(self) -> Origin:
        """The origin of the operations built for the operator."""
        return Origin(
            self.type,
            tuple([name for names in self.inputs.values() for name in names]),
            tuple([name for names in self.outputs.values() for name in names]),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a control flow operator; it can read the variables of outer blocks.

    Attributes:
        inputs: the block's arguments, in Paddle 3.
        operators: the operators, in execution order.
        outputs: the yielded variables, in Paddle 3.
    """

    inputs: Sequence[str]
    operators: Sequence[Operator]
    outputs: Sequence[str]


def all_operators(operators: Iterable[Operator]) -> Iterator[Operator]:
    """Iterate over operators and, recursively, those of their blocks."""
    for operator in operators:
        yield operator
        for block in operator.blocks:
            yield from all_operators(block.operators)


def _variables_read(operator: Operator) -> Iterator[str]:
    """Iterate over the variables that an operator, or an operator in its blocks, may read.

    The outputs of control flow count as read: a block that does not run leaves them unchanged.
    """
    for inner in all_operators((operator,)):
        for names in inner.inputs.values():
            yield from names
        if operator.blocks:
            for names in inner.outputs.values():
                yield from names
        for block in inner.blocks:
            yield from block.outputs


@dataclass(frozen=True)
class Program:
    """A model without the values of its parameters.

    Attributes:
        inputs: the inputs, in Paddle's order.
        parameters: the variables whose values are in the parameter file, by name.
        operators: the operators, in execution order.
        outputs: the variable of each output of the model, by the output's name.
    """

    inputs: Sequence[Variable]
    parameters: Mapping[str, Variable]
    operators: deque[Operator]
    outputs: Mapping[str, str]

    def with_input_shapes(self, shapes: Mapping[str, Sequence[int]]) -> Program:
        """Return the program with other shapes of inputs, by name."""
        if not shapes:
            return self
        inputs = [
            variable._replace(shape=tuple(shapes.get(variable.name, variable.shape)))
            for variable in self.inputs
        ]
        return replace(self, inputs=inputs)

    def parameter_uses(self) -> dict[str, ParameterUse]:
        """Return the use of each parameter whose value in the file is needed.

        Other parameters are not read, or are overwritten before they are read.
        """
        uses: dict[str, ParameterUse] = {}
        written: set[str] = set()
        for operator in self.operators:
            for name in _variables_read(operator):
                if name in self.parameters and name not in written:
                    uses[name] = ParameterUse.OPERAND
            written.update(*operator.outputs.values())
        for name in self.outputs.values():
            if name in self.parameters and name not in written:
                uses.setdefault(name, ParameterUse.OUTPUT)
        return uses

    def pop_operators(self) -> Iterator[Operator]:
        """Remove and yield the operators one by one, to free their memory during the import."""
        while self.operators:
            yield self.operators.popleft()


class NameCounter:
    """Generates unique names: a stem and a counter."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, stem: str) -> str:
        """Return the next of `stem_0`, `stem_1`, …."""
        count = self._counts.get(stem, 0)
        self._counts[stem] = count + 1
        return f"{stem}_{count}"


def prefix_error(where: str, error: Error) -> Error:
    """Return an error of the same class whose message begins with a location."""
    return type(error)(f"{where}: {error}")
