"""The interactive page of a placement: its data for `crosschip.drawing.html`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosschip.drawing.dot import colours_of
from crosschip.drawing.html.document import page
from crosschip.drawing.html.graph_data import GraphData
from crosschip.ir import Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.text import legible
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.placement.descriptions import avoided_quirks, placement_notes
from crosschip.runtime.placement.labels import labels_of, segment_number
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.profiling.timeline import timeline_data

if TYPE_CHECKING:
    from crosschip.runtime.profiling.profile import Profile


def placement_page(
    placement: Placement, path: str | Path | None = None, profile: Profile | None = None
) -> str | None:
    """Write the page of a placement, or return it if `path` is `None`.

    Args:
        placement: the placement.
        path: the file.
        profile: the profile of runs with this placement, for the time line and measured times.

    Raises:
        InputError: the file cannot be written.
    """
    text = page(placement.model.name, page_data(placement, profile))
    if path is None:
        return text
    write_user_file(path, [text.encode()])
    return None


def page_data(placement: Placement, profile: Profile | None = None) -> dict[str, Any]:
    """Return the data of the page of a placement, as JSON values; times are in seconds."""
    labels = labels_of(placement)
    graph = GraphData(placement.model, labels)
    counts = Counter(labels.group(operation) for operation in walk_operations(placement.model))
    counts.pop("", None)
    colours = colours_of(counts)
    numbers = list(dict.fromkeys(labels.segments.values()))
    return {
        "version": VERSION,
        "model": legible(placement.model.name),
        "notes": [legible(note) for note in [*placement_notes(placement), *_counts(placement)]],
        "problem": legible(placement.problem),
        "devices": [
            {"name": legible(group), "colour": colour, "operations": counts[group]}
            for group, colour in colours.items()
        ],
        "graph": graph.document(list(colours), numbers),
        "segments": _segments(placement, graph, numbers, list(colours)),
        "decisions": _decisions(placement, graph),
        "quirks": avoided_quirks(placement),
        "costs": _costs(placement, profile, graph),
        "profile": None if profile is None else _timeline(placement, profile, graph, numbers),
    }


def _counts(placement: Placement) -> Iterator[str]:
    """Yield a sentence if more or fewer operations run than the model has."""
    model, placed = len(placement.original.operations), len(placement.model.operations)
    if model != placed:
        yield f"{placed} operations run in place of {model}, since some are decomposed"


def _timeline(
    placement: Placement, profile: Profile, graph: GraphData, numbers: Sequence[str]
) -> dict[str, Any]:
    by_name = {operation.name: number for operation, number in graph.number.items()}

    def number_of(operation: Operation) -> int | None:
        number = graph.number.get(operation)
        return by_name.get(operation.name) if number is None else number

    position = {number: index for index, number in enumerate(numbers)}
    names = {s.name: position[segment_number(placement, s)] for s in placement.all_segments()}
    return timeline_data(profile, number_of, names)


def _segments(
    placement: Placement, graph: GraphData, numbers: Sequence[str], groups: Sequence[str]
) -> list[dict[str, Any]]:
    strategies = dict(
        zip(
            (segment.name for segment in placement.all_segments()),
            placement.all_shape_strategies(),
            strict=False,
        )
    )
    by_number = {segment_number(placement, s): s for s in placement.all_segments()}
    return [
        {
            "number": number,
            "device": groups.index(segment.device),
            "operations": len(segment.operations),
            "shapes": strategies.get(segment.name, ""),
            "inputs": [graph.value_number[o] for o in segment.inputs if o in graph.value_number],
            "outputs": [graph.value_number[o] for o in segment.outputs if o in graph.value_number],
        }
        for number in numbers
        for segment in [by_number[number]]
    ]


def _decisions(placement: Placement, graph: GraphData) -> dict[str, Any]:
    """Return the distinct verdicts of devices, and those about each operation."""
    number_of: dict[tuple[tuple[str, bool, str], ...], int] = {}
    of: list[int] = [-1] * len(graph.operations)
    originals: dict[int, str] = {}
    for decision in placement.all_decisions():
        verdicts = tuple(
            (device, bool(verdict), legible(verdict.text))
            for device, verdict in decision.verdicts.items()
        )
        number = number_of.setdefault(verdicts, len(number_of))
        for part in decision.parts or (decision.operation,):
            index = graph.number.get(part)
            if index is None:
                continue
            of[index] = number
            if part is not decision.operation:
                originals[index] = f"{decision.type} {legible(decision.name)}"
    return {
        "verdicts": [
            [{"device": d, "runs": runs, "text": text} for d, runs, text in verdicts]
            for verdicts in number_of
        ],
        "of": of,
        "originals": originals,
        "inFloat": list(placement.in_float),
        "order": list(placement.devices),
    }


def _costs(
    placement: Placement, profile: Profile | None, graph: GraphData
) -> dict[str, Any] | None:
    """Return the measured and estimated costs; `None` if there are none.

    An explained placement has none where the compiled one, which was profiled, has.
    """
    placements = [placement] if profile is None else [placement, profile.placement]
    costs = next((each.costs for each in placements if each.costs), None)
    if costs is None:
        return None
    by_name = {operation.name: graph.number[operation] for operation in placement.model.operations}
    values = {operand.name: number for operand, number in graph.value_number.items()}
    return {
        "blocks": [
            {
                "operations": [by_name[name] for name in block.operations if name in by_name],
                "device": legible(block.device),
                "seconds": block.seconds,
                "uncertainty": block.uncertainty,
                "estimated": block.estimated,
                "alternatives": [asdict(each) for each in block.alternatives],
            }
            for block in costs.blocks
        ],
        "transfers": [
            {
                **asdict(each),
                "operand": legible(each.operand),
                "value": values.get(each.operand, -1),
            }
            for each in costs.transfers
        ],
        "launches": dict(costs.launches),
        "memory": dict(costs.memory),
        "predicted": costs.predicted_seconds,
        "candidates": [asdict(candidate) for candidate in costs.candidates],
    }
