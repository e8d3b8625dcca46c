"""Placements in tables and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crosschip.drawing.tables import Table, to_html
from crosschip.ir.text import legible
from crosschip.runtime.placement.costs import HOST, BlockCost, PlacementCosts
from crosschip.runtime.placement.labels import segment_number

if TYPE_CHECKING:
    from crosschip.ir import Model
    from crosschip.runtime.placement.decision import Decision
    from crosschip.runtime.placement.placement import Placement


def placement_tables(placement: Placement) -> Iterator[Table]:
    """Yield tables of the segments, the operations with reasons, settings and conditions."""
    strategies = placement.all_shape_strategies()
    segments = [
        (
            segment_number(placement, segment),
            segment.device,
            len(segment.operations),
            strategy,
            ", ".join(legible(operand.name) for operand in segment.inputs),
            ", ".join(legible(operand.name) for operand in segment.outputs),
        )
        for segment, strategy in zip(placement.all_segments(), strategies, strict=True)
    ]
    headings = ("segment", "device", "operations", "shapes", "reads", "makes")
    yield Table("Segments", headings, segments, ("operations",))
    alike = Counter(
        (
            decision.type,
            decision.device or "nobody",
            "\n".join(f"{name}: {text}" for name, text in decision.reasons.items()),
        )
        for decision in placement.all_decisions()
    )
    operations = [
        (type_, count, device, why) for (type_, device, why), count in sorted(alike.items())
    ]
    yield Table("Operations", ("operator", "count", "runs on", "why"), operations, ("count",))
    if placement.costs:
        yield from _cost_tables(placement.costs)
    settings = [
        (device, name, "nothing: its engine has no such modes" if value is None else value)
        for device, values in placement.settings.items()
        for name, value in values.items()
    ]
    if settings:
        yield Table("Settings of the engines", ("device", "setting", "value"), settings)
    if placement.conditions:
        conditions = [(each.device, each.of, each.low, each.high) for each in placement.conditions]
        columns = ("device", "of", "from", "to")
        yield Table("What devices need of each run", columns, conditions, columns[2:])


def _cost_tables(costs: PlacementCosts) -> Iterator[Table]:
    """Yield tables of the blocks, the transfers and the placements that were considered."""
    blocks = [
        (
            _block_name(block),
            block.device,
            f"{'~' if block.estimated else ''}{block.seconds * 1e3:.3f}",
            "\n".join(map(str, block.alternatives)),
        )
        for block in costs.blocks
    ]
    columns = ("block", "runs on", "ms", "elsewhere")
    yield Table("Costs of blocks (~ is an estimate)", columns, blocks, ("ms",))
    transfers = [
        (
            legible(each.operand),
            each.source,
            each.destination,
            each.bytes,
            f"{each.seconds * 1e3:.3f}",
        )
        for each in costs.transfers
        if HOST not in (each.source, each.destination)
    ]
    if transfers:
        ends = "operand", "from", "to", "bytes", "ms"
        yield Table("Transfers between devices", ends, transfers, ("bytes", "ms"))
    candidates = [
        (
            each.name,
            each.segments,
            f"{each.predicted_seconds * 1e3:.3f}",
            each.reason if each.seconds is None else f"{each.seconds * 1e3:.3f}",
        )
        for each in costs.candidates
    ]
    columns = ("placement", "segments", "predicted ms", "measured ms")
    yield Table("Placements that were considered", columns, candidates, columns[1:])


def _block_name(block: BlockCost) -> str:
    first, count = legible(block.operations[0]), len(block.operations)
    return first if count == 1 else f"{first} and {count - 1} more"


def placement_html(placement: Placement, heading: str) -> str:
    """Return a placement with the inputs and outputs of its model, for notebooks."""
    interface = [
        Table(
            title,
            ("name", "type"),
            [(legible(name), str(operand.type)) for name, operand in operands.items()],
        )
        for title, operands in (
            ("Inputs", placement.original.inputs),
            ("Outputs", placement.original.outputs),
        )
    ]
    tables = [*interface, *placement_tables(placement)]
    return to_html(heading, tables, [*placement_notes(placement), _PAGE])


_PAGE = 'placement.to_html("page.html") writes an interactive page of the graph'


def placement_notes(placement: Placement) -> Iterator[str]:
    """Yield sentences: the share of each device, mixed precision, and the choice by `"auto"`."""
    yield placement.summary()
    if placement.in_float:
        yield f"in float32, by the mixed precision: {', '.join(placement.in_float)}"
    if placement.choice:
        yield f"chosen by measurement: {placement.choice}"
    yield from map(str, placement.moves)


def avoided_quirks(placement: Placement) -> dict[str, dict[str, list[str]]]:
    """Return the quirks that each device avoids for the operators that it runs, by operator."""
    types: dict[str, set[str]] = {}
    for decision in placement.all_decisions():
        types.setdefault(decision.device or "", set()).update(part.type for part in decision.parts)
    return {
        device: {type_: list(lines) for type_, lines in quirks.items() if type_ in types[device]}
        for device, quirks in placement.quirks.items()
        if device in types
    }


def unplaced_text(model: Model, unplaced: Sequence[Decision]) -> str:
    """Return the message that no device runs some operations, with the reasons."""
    by_reasons = Counter(
        "; ".join(f"{device}: {reason}" for device, reason in decision.reasons.items())
        for decision in unplaced
    )
    lines = [f"  {count} x {reasons}" for reasons, count in by_reasons.most_common(10)]
    if len(by_reasons) > 10:
        lines.append(f"  and {len(by_reasons) - 10} more kinds")
    return (
        f"{model.name}: none of the devices runs {len(unplaced)} of its operations; "
        f"add a device that does (`reference` runs every standard operator):\n" + "\n".join(lines)
    )
