"""How an operator is written out in simpler ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set

from crosschip.ir import ElementType, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator
from crosschip.passes.recognition.parts import WIDE, Parts
from crosschip.passes.recognition.terms import Match, Term, Variable

Find = Callable[[Parts, Operator], "Replacement | None"]
"""Finds the operator whose last part an operation is; `None` if it is that of none."""


@dataclass(frozen=True)
class Replacement:
    """An operator that takes the place of its parts.

    Attributes:
        parts: the operations that compute it; the last one makes its output.
        operator: the operator.
        arguments: what fills its slots.
        before: new operations, which make some of that.
    """

    parts: Sequence[Operation]
    operator: type[Operator]
    arguments: Sequence[object]
    before: Sequence[Operation] = ()


class Pattern(ABC):
    """How an operator is written out.

    Attributes:
        last: the operators, one of which comes last.
        needs: the operators without which a model does not have it.
        types: the element types in which it is looked for.
    """

    last: Sequence[type[Operator]]
    needs: Set[type[Operator]] = frozenset()
    types: Set[ElementType] = WIDE

    @abstractmethod
    def find(self, parts: Parts, last: Operator) -> Replacement | None:
        """The operator whose last part an operation is; `None` if it is that of none."""


class Formula(Pattern):
    """An operator as a formula.

    Args:
        operator: the operator.
        arguments: what fills its slots: variables of the formula, and numbers.
        term: the formula.
        when: what else must be true of the operands and numbers.
        types: the element types in which it is looked for.
    """

    def __init__(
        self,
        operator: type[Operator],
        arguments: Sequence[object],
        term: Term,
        when: Callable[[Match], bool] = lambda _: True,
        types: Set[ElementType] = WIDE,
    ) -> None:
        self.last, self.needs, self.types = term.kinds, term.needs(), types
        self._operator, self._arguments, self._term, self._when = operator, arguments, term, when

    def __repr__(self) -> str:
        return self._operator.type

    def find(self, parts: Parts, last: Operator) -> Replacement | None:
        for match in self._term.matches(parts, last.outputs[0], Match()):
            if self._when(match):
                arguments = [
                    match[each] if isinstance(each, Variable) else each for each in self._arguments
                ]
                return Replacement(match.parts, self._operator, arguments)
        return None


class Searched(Pattern):
    """An operator that a function looks for, where no formula says all the ways to write it.

    Args:
        name: what is found.
        last: the operator that comes last.
        find: finds it.
    """

    def __init__(self, name: str, last: type[Operator], find: Find) -> None:
        self.last = (last,)
        self._name, self._find = name, find

    def __repr__(self) -> str:
        return self._name

    def find(self, parts: Parts, last: Operator) -> Replacement | None:
        return self._find(parts, last)
