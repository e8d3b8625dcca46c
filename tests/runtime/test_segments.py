"""Cutting into segments: sound on any graph, and as few as there can be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32
from tests.random_models import Example, examples

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ops.standard.joining import Concat
from crosschip.runtime.placement.segments import Segment, cut_segments, segments_of

Sources = Sequence[Sequence[int]]
"""For each operation of a graph, the earlier operations that it reads from."""


def graph(sources: Sources) -> Model:
    """A model whose operations read from each other like that."""
    b = Builder("graph")
    x = b.input("x", float32(1))
    made: list[Operand] = []
    for reads in sources:
        made.append(b.add(Concat, [made[i] for i in reads] or [x], 0))
    read = {i for reads in sources for i in reads}
    for i, operand in enumerate(made):
        if i not in read:
            b.output(f"y{i}", operand)
    return b.build()


@st.composite
def graphs(draw: st.DrawFn, most: int) -> Sources:
    """Directed graphs without cycles."""
    count = draw(st.integers(1, most))
    reads = [st.sets(st.integers(0, i - 1), max_size=3) for i in range(1, count)]
    return [[], *(sorted(draw(earlier)) for earlier in reads)]


def assignments(count: int, devices: str) -> st.SearchStrategy[str]:
    """A device for each of so many operations."""
    return st.text(devices, min_size=count, max_size=count)


@st.composite
def placed(draw: st.DrawFn, most: int, devices: str) -> tuple[Sources, str]:
    """A graph, and the device of each of its operations."""
    sources = draw(graphs(most))
    return sources, draw(assignments(len(sources), devices))


def fewest(sources: Sources, devices: str) -> int:
    """The least number of runs over all orders, by trying them all."""

    @cache
    def after(done: frozenset[int], last: str) -> int:
        ready = [i for i in range(len(devices)) if i not in done and done.issuperset(sources[i])]
        return min((after(done | {i}, devices[i]) + (devices[i] != last) for i in ready), default=0)

    return after(frozenset(), "")


def assert_sound(model: Model, owners: Sequence[str], segments: Sequence[Segment]) -> None:
    """Every operation once, each segment on one device, in an order in which they can run."""
    owner = dict(zip(model.operations, owners, strict=True))
    operations = [o for segment in segments for o in segment.model.operations]
    assert len(operations) == len(model.operations)
    assert set(operations) == set(model.operations)
    ready = set(model.inputs.values())
    for segment in segments:
        assert {owner[o] for o in segment.model.operations} == {segment.device}
        assert set(segment.inputs) <= ready
        assert tuple(segment.model.inputs.values()) == segment.inputs
        assert tuple(segment.model.outputs.values()) == segment.outputs
        segment.model.verify()
        ready.update(segment.outputs)
    assert {o for o in model.outputs.values() if not o.is_constant} <= ready


def assert_convex(model: Model, segments: Sequence[Segment]) -> None:
    """No path leaves a segment and comes back to it."""
    home = {o: i for i, s in enumerate(segments) for o in s.model.operations}
    left: dict[Operation, set[int]] = {}
    for operation in model.operations:
        behind: set[int] = set()
        for operand in operation.inputs:
            producer = None if operand is None else model.producers.get(operand)
            if producer is not None:
                behind |= left[producer]
                if home[producer] != home[operation]:
                    behind.add(home[producer])
        assert home[operation] not in behind
        left[operation] = behind


@given(placed(most=30, devices="abcd"))
def test_segments_are_sound_and_convex(case: tuple[Sources, str]) -> None:
    sources, devices = case
    model = graph(sources)
    segments = segments_of(model, devices)
    assert_sound(model, devices, segments)
    assert_convex(model, segments)


@given(examples(quantized=True), st.data())
def test_segments_of_real_operations_are_sound(example: Example, data: st.DataObject) -> None:
    model = example.model
    devices = data.draw(assignments(len(model.operations), "abc"))
    segments = segments_of(model, devices)
    assert_sound(model, devices, segments)
    assert_convex(model, segments)


@given(placed(most=9, devices="ab"))
def test_with_two_devices_no_order_has_fewer_segments(case: tuple[Sources, str]) -> None:
    sources, devices = case
    model = graph(sources)
    assert len(cut_segments(model, devices)) == fewest(sources, devices)


@given(placed(most=9, devices="abc"))
def test_with_three_devices_no_order_has_fewer_segments(case: tuple[Sources, str]) -> None:
    sources, devices = case
    model = graph(sources)
    assert len(cut_segments(model, devices)) == fewest(sources, devices)


@pytest.mark.parametrize(
    ("sources", "devices", "runs"),
    [
        ([[]], "a", ["a"]),
        ([[], [], []], "aba", ["aa", "b"]),
        ([[], [0], [1], [2]], "abba", ["a", "bb", "a"]),
        ([[], [0], [0], [1, 2]], "aabb", ["aa", "bb"]),
        ([[], [0], [1], [0], [3], [2, 4]], "abaaba", ["aaa", "bb", "a"]),
        ([[], [0], [1], [2], [0], [4]], "abcbcb", ["a", "b", "cc", "bb"]),
    ],
)
def test_small_graphs(sources: Sources, devices: str, runs: list[str]) -> None:
    model = graph(sources)
    found = ["".join(devices[node] for node in run) for run in cut_segments(model, devices)]
    assert len(found) == len(runs) == fewest(sources, devices)
    assert all(len(set(run)) == 1 for run in found)


@pytest.mark.parametrize(
    ("sources", "devices"),
    [
        ([[], [0], [1], [0], [0, 3], [2], [1, 2, 3, 5]], "bceacdb"),
        ([[], [], [], [], [0, 1], [3, 4], [1, 2, 3], [2], [1, 2, 3, 5]], "abdaebaac"),
        ([[], [], [], [0], [0, 3], [], [1], [0, 2, 3, 4], [3, 4], []], "abcedaaecc"),
    ],
)
def test_graphs_in_which_a_state_is_first_reached_by_a_detour(
    sources: Sources, devices: str
) -> None:
    model = graph(sources)
    assert len(cut_segments(model, devices)) == fewest(sources, devices)


def test_a_model_without_operations_has_no_segments() -> None:
    assert segments_of(graph([]), []) == ()


def test_what_two_segments_read_is_handed_on_once() -> None:
    model = graph([[], [0], [0], [0, 1, 2]])
    first, second, third = segments_of(model, "abba")
    assert first.outputs == second.inputs == model.operations[0].outputs
    made = [operation.outputs[0] for operation in model.operations]
    assert set(second.outputs) == {made[1], made[2]}
    assert set(third.inputs) == set(made[:3])
    assert third.outputs == (made[3],)


@given(placed(8, "abc"))
def test_dialects_are_kept_apart_like_devices(drawn: tuple[Sources, str]) -> None:
    sources, words = drawn
    model = graph(sources)
    apart = cut_segments(model, ["one"] * len(words), words)
    as_devices = cut_segments(model, words)
    assert apart == as_devices
    assert len(cut_segments(model, ["one"] * len(words))) == 1


def test_segments_take_inputs_in_the_order_of_the_model() -> None:
    """So that where there is one segment, it takes just what the model does."""
    b = Builder("graph")
    x, y, z = (b.input(name, float32(1)) for name in "xyz")
    late, early = b.add(Concat, [z, y], 0), b.add(Concat, [x, z], 0)
    inner = b.add(Concat, [late, early], 0)
    b.output("a", b.add(Concat, [inner, y], 0))
    model = b.build()
    (whole,) = segments_of(model, "aaaa")
    assert whole.inputs == (x, y, z)
    first, second = segments_of(model, "aaab")
    assert first.inputs == (x, y, z)
    assert second.inputs == (y, inner)


def test_segments_make_outputs_in_the_order_of_the_model() -> None:
    """So that where there is one segment, what it makes is handed out as it is."""
    b = Builder("graph")
    x, y = (b.input(name, float32(1)) for name in "xy")
    first, second = b.add(Concat, [x, y], 0), b.add(Concat, [y, x], 0)
    inner = b.add(Concat, [first, second], 0)
    last = b.add(Concat, [inner, x], 0)
    for name, operand in (("a", last), ("b", second), ("c", first)):
        b.output(name, operand)
    model = b.build()
    (whole,) = segments_of(model, "aaaa")
    assert whole.outputs == (last, second, first)
    start, end = segments_of(model, "aaab")
    assert start.outputs == (second, first, inner)
    assert end.outputs == (last,)
