"""The program of a Paddle model file, in one form for Paddle 2 and Paddle 3.

Operators, slots and attributes have the names of Paddle 2, whose inputs are named; the reader of
Paddle 3 translates (see `dialect`).
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
"""So deep may control flow be nested."""
MAX_LEVELS = 8
"""The most levels of sequences (LoD) of a tensor."""

Scalar = bool | int | float | str | ElementType
Value = Scalar | tuple[Scalar, ...] | None
"""The value of an attribute; `None` if it is there but leaves open what it says."""


class Attributes(Mapping[str, Value]):
    """Attributes by name, each decoded when it is asked for: most never are.

    Args:
        raw: the attributes as the file has them.
        decode: makes the value of one; raises `ModelError` or `UnsupportedError` if it cannot.
    """

    __slots__ = ("_decode", "_raw")

    def __init__(self, raw: Mapping[str, Any], decode: Callable[[Any], Value]) -> None:
        self._raw = raw
        self._decode = decode

    def renamed(self, names: Mapping[str, str]) -> Attributes:
        """The same attributes, those in `names` under another name."""
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
    """A tensor that the file declares.

    Attributes:
        name: its name.
        element_type: the type of its elements.
        shape: its sizes; -1 stands for one that is not known.
        levels: how many levels of sequences (LoD) it has.
    """

    name: str
    element_type: ElementType
    shape: tuple[int, ...]
    levels: int = 0


class ParameterUse(Enum):
    """What the value of a parameter is needed for."""

    OPERAND = "an operator reads it"
    OUTPUT = "the program hands it out, and no operator reads it"


class Operator(NamedTuple):
    """One use of an operator.

    Attributes:
        number: its place in the file, for messages.
        label: what the file itself calls the operator, for messages.
        type: what Paddle 2 calls the operator.
        name: what the operation is to be called.
        inputs: the names of the variables that it reads, by slot.
        outputs: the names of the variables that it makes, by slot.
        attributes: its parameters.
        blocks: what it runs, if it is control flow.
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
        """The operator as what is built for it remembers it."""
        return Origin(
            self.type,
            tuple([name for names in self.inputs.values() for name in names]),
            tuple([name for names in self.outputs.values() for name in names]),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Operators that control flow runs; they see the variables around it.

    Attributes:
        inputs: the variables that it is given, in Paddle 3.
        operators: in the order in which they run.
        outputs: the variables that it hands back, in Paddle 3.
    """

    inputs: Sequence[str]
    operators: Sequence[Operator]
    outputs: Sequence[str]


def all_operators(operators: Iterable[Operator]) -> Iterator[Operator]:
    """The operators and those of the blocks that they run."""
    for operator in operators:
        yield operator
        for block in operator.blocks:
            yield from all_operators(block.operators)


def _read_by(operator: Operator) -> Iterator[str]:
    """The variables that an operator, or one in its blocks, may read.

    What control flow writes counts as read: a block that does not run leaves the value as it was.
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
    """A model as its file describes it, without the parameters' values.

    Attributes:
        inputs: what the caller provides, in Paddle's order.
        parameters: the variables whose values are in the parameter file, by name.
        operators: in the order in which they run.
        outputs: the variable that each output of the model is, by the output's name.
    """

    inputs: Sequence[Variable]
    parameters: Mapping[str, Variable]
    operators: deque[Operator]
    outputs: Mapping[str, str]

    def reshaped(self, shapes: Mapping[str, Sequence[int]]) -> Program:
        """The program with other sizes of inputs, by name."""
        if not shapes:
            return self
        inputs = [
            variable._replace(shape=tuple(shapes.get(variable.name, variable.shape)))
            for variable in self.inputs
        ]
        return replace(self, inputs=inputs)

    def parameter_uses(self) -> dict[str, ParameterUse]:
        """Compute what the values of parameters in the file are needed for.

        Those that are left out are of no use: nothing reads them, or an operator writes them first,
        such as shapes that only training has a use for.
        """
        uses: dict[str, ParameterUse] = {}
        written: set[str] = set()
        for operator in self.operators:
            for name in _read_by(operator):
                if name in self.parameters and name not in written:
                    uses[name] = ParameterUse.OPERAND
            written.update(*operator.outputs.values())
        for name in self.outputs.values():
            if name in self.parameters and name not in written:
                uses.setdefault(name, ParameterUse.OUTPUT)
        return uses

    def take_operators(self) -> Iterator[Operator]:
        """The operators, none of which is kept: what is built from them takes their place."""
        while self.operators:
            yield self.operators.popleft()


class Numbering:
    """Names that are not given twice: a stem and how often it has been asked for."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def next(self, stem: str) -> str:
        """The next of `stem_0`, `stem_1`, …."""
        count = self._counts.get(stem, 0)
        self._counts[stem] = count + 1
        return f"{stem}_{count}"


def within(where: str, error: Error) -> Error:
    """An error of the same kind, with the place where it was met in front of its message."""
    return type(error)(f"{where}: {error}")
