"""The operators that a device lacks for some models, ranked by the benefit of adding them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from crosschip.hal import YES, Offer
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Model, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.decomposition import Ask
from crosschip.runtime.placement.placement import Placement, place

_DEVICE, _OTHER = "device", "elsewhere"


@dataclass(frozen=True, slots=True)
class MissingOperator:
    """An operator that a device declines, and the benefit of adding it after those ranked higher.

    Attributes:
        operator: the type of the operator; empty for the unchanged device.
        operations: the number of operations of that type in the models.
        reasons: why the device declines them, the most frequent first.
        share: the fraction of all multiply-adds that the device computes with the operator.
        taken: the fraction of all operations that the device runs with the operator.
        segments: the number of segments of the models with the operator.
    """

    operator: str
    operations: int
    reasons: tuple[str, ...]
    share: float
    taken: float
    segments: int


def rank_missing_operators(models: Sequence[Model], ask: Ask) -> list[MissingOperator]:
    """Rank the operators that a device lacks by the multiply-adds of their operations.

    Among operators without multiply-adds, the one whose operations are most often adjacent to
    supported ones comes first, because each adjacency saves the transfer of a tensor.

    Args:
        models: the models to run.
        ask: queries the device.

    Returns:
        First an entry for the unchanged device, then one for each operator that it declines.
    """
    new_operators: list[str] = []
    entries = [_entry(models, ask, new_operators, "", 0, ())]
    declined, edges = list(_declined_operations(models, ask)), list(_edges(models))
    while remaining := {operation.type for operation, _ in declined} - set(new_operators):
        best = max(
            sorted(remaining), key=lambda type_: _benefit(edges, declined, new_operators, type_)
        )
        new_operators.append(best)
        reasons = Counter(reason for operation, reason in declined if operation.type == best)
        details = tuple(reason for reason, _ in reasons.most_common())
        entries.append(_entry(models, ask, new_operators, best, reasons.total(), details))
    return entries


def _entry(
    models: Sequence[Model],
    ask: Ask,
    new_operators: Collection[str],
    operator: str,
    operations: int,
    reasons: tuple[str, ...],
) -> MissingOperator:
    placements = [_place_with(model, ask, new_operators) for model in models]
    work, count = Counter[bool](), Counter[bool]()
    for placement in placements:
        for segment in placement.segments:
            on_device = segment.device == _DEVICE
            work[on_device] += sum(map(multiply_adds, segment.operations))
            count[on_device] += len(segment.operations)
    return MissingOperator(
        operator,
        operations,
        reasons,
        _fraction(work),
        _fraction(count),
        sum(len(placement.segments) for placement in placements),
    )


def _fraction(of: Counter[bool]) -> float:
    return of[True] / of.total() if of.total() else 1.0


def _place_with(model: Model, ask: Ask, new_operators: Collection[str]) -> Placement:
    """Place a model on the device with additional operators and on one with all operators."""

    def more(part: Model) -> Offer:
        offer = ask(part)
        answers = [
            YES if operation.type in new_operators else answer
            for operation, answer in zip(part.operations, offer.answers, strict=True)
        ]
        return replace(offer, answers=answers)

    def everything(part: Model) -> Offer:
        return Offer([YES] * len(part.operations))

    return place(model, {_DEVICE: more, _OTHER: everything})


def _declined_operations(models: Sequence[Model], ask: Ask) -> Iterator[tuple[Operation, str]]:
    """Return the operations that the device does not run, even decomposed, with its reasons."""
    for model in models:
        answers = ask(model).answers
        placement = _place_with(model, ask, ())
        declined = {
            operation.name
            for segment in placement.segments
            if segment.device == _OTHER
            for operation in segment.operations
        }
        for operation, answer in zip(model.operations, answers, strict=True):
            if operation.name in declined:
                yield operation, answer.reason


def _edges(models: Sequence[Model]) -> Iterator[tuple[Operation, Operation]]:
    """Return the producer and the consumer of each tensor between operations."""
    for model in models:
        makers = {output: maker for maker in model.operations for output in maker.outputs}
        for operation in model.operations:
            for operand in operation.inputs:
                if operand is not None and operand in makers:
                    yield makers[operand], operation


def _benefit(
    edges: Sequence[tuple[Operation, Operation]],
    declined: Sequence[tuple[Operation, str]],
    new_operators: Collection[str],
    type_: str,
) -> tuple[int, int, int]:
    """Return the multiply-adds, saved transfers, and operations that adding an operator gains."""
    missing_operators = {
        id(operation) for operation, _ in declined if operation.type not in new_operators
    }
    gained = [operation for operation, _ in declined if operation.type == type_]
    stays = sum(
        not any(id(end) in missing_operators for end in ends if end.type != type_)
        for ends in edges
        if type_ in (ends[0].type, ends[1].type)
    )
    return sum(map(multiply_adds, gained)), stays, len(gained)
