"""Patterns: composite operators in terms of simpler ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence, Set

from crosschip.ir import ElementType, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator
from crosschip.passes.recognition.parts import WIDE, Parts
from crosschip.passes.recognition.terms import Match, Term, Variable

Find = Callable[[Parts, Operator], "Replacement | None"]
"""Matches the composite operator that ends in an operation; `None` if there is none."""


@dataclass(frozen=True)
class Replacement:
    """A composite operator that replaces its parts.

    Attributes:
        parts: the operations to replace; the last one produces the output.
        operator: the composite operator.
        arguments: the values of its slots.
        before: new operations that produce some of the arguments.
    """

    parts: Sequence[Operation]
    operator: type[Operator]
    arguments: Sequence[object]
    before: Sequence[Operation] = ()


class Pattern(ABC):
    """A way to spell out a composite operator.

    Attributes:
        last: the possible operators of the last part.
        needs: operators that all matches contain, to skip models without them.
        types: the element types that are matched.
    """

    last: Sequence[type[Operator]]
    needs: Set[type[Operator]] = frozenset()
    types: Set[ElementType] = WIDE

    @abstractmethod
    def find(self, parts: Parts, last: Operator) -> Replacement | None:
        """Return the composite operator that ends in an operation, or `None`."""


class Formula(Pattern):
    """A composite operator given by a formula.

    Args:
        operator: the operator.
        arguments: the values of its slots: variables of the formula, and numbers.
        term: the formula.
        when: a further condition on the operands and numbers.
        types: the element types that are matched.
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


class SearchPattern(Pattern):
    """A composite operator matched by a function, for which one formula is not enough.

    Args:
        name: the name for messages.
        last: the operator of the last part.
        find: the match function.
    """

    def __init__(self, name: str, last: type[Operator], find: Find) -> None:
        self.last = (last,)
        self._name, self._find = name, find

    def __repr__(self) -> str:
        return self._name

    def find(self, parts: Parts, last: Operator) -> Replacement | None:
        return self._find(parts, last)
