"""The pass that replaces parts by composite operators."""

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
    """Replaces the parts of composite operators, matching from the model's outputs backwards.

    Only the last part's output may have readers outside the parts. The operator's output must have
    the type of that output.

    Attributes:
        patterns: the patterns, in order of precedence.
    """

    patterns: tuple[Pattern, ...]
    exact = False

    def rewrite(self, model: Model) -> Model:
        search = _Search(self.patterns, model)
        for operation in reversed(model.operations):
            spend()
            search.match(operation)
        return _replace_parts(model, search.matches, search.dropped) if search.matches else model

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        if len(after.operations) > len(before.operations):
            raise ModelError(f"{after.name!r} has got more operations")


class _Search:
    """The search for composite operators in a model.

    Attributes:
        matches: the matched operators, by their last parts.
        dropped: all parts of the matches.
    """

    def __init__(self, patterns: Sequence[Pattern], model: Model) -> None:
        parts: dict[Set[ElementType], Parts] = {}
        self._by_last: dict[type[Operation], list[tuple[Pattern, Parts]]] = defaultdict(list)
        present = {type(operation) for operation in model.operations}
        for pattern in patterns:
            if not pattern.needs <= present:
                continue
            pattern_parts = parts.setdefault(pattern.types, Parts(model, pattern.types))
            for kind in pattern.last:
                self._by_last[kind].append((pattern, pattern_parts))
        self.matches: dict[Operation, Replacement] = {}
        self.dropped: set[Operation] = set()

    def match(self, operation: Operation) -> None:
        """Try the patterns that can end in an operation."""
        for pattern, parts in self._by_last.get(type(operation), ()):
            if operation in self.dropped or not parts.is_plain(operation):
                continue
            try:
                replacement = pattern.find(parts, operation)
            except (ComputedParameter, UnknownRank):
                continue
            if replacement is None or not self.dropped.isdisjoint(replacement.parts):
                continue
            if parts.are_closed(replacement.parts) and _keeps_type(replacement):
                self.matches[operation] = replacement
                self.dropped.update(replacement.parts)


def _replace_parts(
    model: Model, matches: Mapping[Operation, Replacement], dropped: Set[Operation]
) -> Model:
    """Replace the parts of matches by composite operators."""
    rewriter = Rewriter(model)
    for operation in model.operations:
        if operation in matches:
            for new in matches[operation].before:
                rewriter.keep(rewriter.resolved(new))
            rewriter.emit(rewriter.resolved(_build(matches[operation])))
        elif operation not in dropped:
            rewriter.keep(rewriter.resolved(operation))
    return rewriter.finish()


def _build(match: Replacement) -> Operation:
    """Return the composite operation of a match."""
    last = match.parts[-1]
    inputs = match.operator.bind(last.name, match.arguments, {})
    return match.operator(last.name, inputs, last.outputs).standing_for(*match.parts)


def _keeps_type(match: Replacement) -> bool:
    """Return whether a match has the output type of its parts.

    Unknown dimensions may become known.
    """
    before = match.parts[-1].outputs[0].type
    try:
        (after,) = _build(match).infer()
    except ModelError:
        return False
    if before.shape is None or after.shape is None or not after.fits(before):
        return before == after
    pairs = zip(before.shape, after.shape, strict=True)
    return all(old == new or is_unknown(old) for old, new in pairs)
