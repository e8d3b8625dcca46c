"""One walk over a model that puts operators in the place of their parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from crosschip.ir import ElementType, Model, ModelError, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import is_unknown
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.slots import ComputedParameter
from crosschip.passes.base import Pass
from crosschip.passes.recognition.parts import Parts
from crosschip.passes.recognition.pattern import Pattern, Replacement
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class Recognize(Pass):
    """Puts operators in the place of their parts, from the outputs of the model on.

    Nothing but the parts reads what they make, except for the last of them, and the operator makes
    a tensor of the same type as that.

    Attributes:
        patterns: how the operators are written out; the first that fits counts.
    """

    patterns: tuple[Pattern, ...]
    exact = False

    def rewrite(self, model: Model) -> Model:
        search = _Search(self.patterns, model)
        for operation in reversed(model.operations):
            spend()
            search.end_with(operation)
        return _rewritten(model, search.matches, search.dropped) if search.matches else model

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        if len(after.operations) > len(before.operations):
            raise ModelError(f"{after.name!r} has got more operations")


class _Search:
    """The search for operators in a model.

    Attributes:
        matches: by their last parts, the operators that were recognized.
        dropped: all parts.
    """

    def __init__(self, patterns: Sequence[Pattern], model: Model) -> None:
        parts: dict[Set[ElementType], Parts] = {}
        self._by_last: dict[type[Operation], list[tuple[Pattern, Parts]]] = defaultdict(list)
        present = {type(operation) for operation in model.operations}
        for pattern in patterns:
            if not pattern.needs <= present:
                continue
            own = parts.setdefault(pattern.types, Parts(model, pattern.types))
            for kind in pattern.last:
                self._by_last[kind].append((pattern, own))
        self.matches: dict[Operation, Replacement] = {}
        self.dropped: set[Operation] = set()

    def end_with(self, operation: Operation) -> None:
        """Look for an operator whose last part an operation is."""
        for pattern, parts in self._by_last.get(type(operation), ()):
            if operation in self.dropped or not parts.is_plain(operation):
                continue
            try:
                one = pattern.find(parts, operation)
            except (ComputedParameter, UnknownRank):
                continue
            if one is None or not self.dropped.isdisjoint(one.parts):
                continue
            if parts.are_closed(one.parts) and _is_alike(one):
                self.matches[operation] = one
                self.dropped.update(one.parts)


def _rewritten(
    model: Model, matches: Mapping[Operation, Replacement], dropped: Set[Operation]
) -> Model:
    """The model with operators in place of their parts."""
    rewriter = Rewriter(model)
    for operation in model.operations:
        if operation in matches:
            for new in matches[operation].before:
                rewriter.keep(rewriter.resolved(new))
            rewriter.emit(rewriter.resolved(_whole(matches[operation])))
        elif operation not in dropped:
            rewriter.keep(rewriter.resolved(operation))
    return rewriter.finish()


def _whole(match: Replacement) -> Operation:
    """The operator in place of its parts."""
    last = match.parts[-1]
    inputs = match.operator.bind(last.name, match.arguments, {})
    return match.operator(last.name, inputs, last.outputs).standing_for(*match.parts)


def _is_alike(match: Replacement) -> bool:
    """Tell whether the operator makes a tensor of the type that its parts make.

    A size about which nothing is known may become known.
    """
    before = match.parts[-1].outputs[0].type
    try:
        (after,) = _whole(match).infer()
    except ModelError:
        return False
    if before.shape is None or after.shape is None or not after.fits(before):
        return before == after
    pairs = zip(before.shape, after.shape, strict=True)
    return all(old == new or is_unknown(old) for old, new in pairs)
