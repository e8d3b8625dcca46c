"""Callers' wishes for a placement hold, on any graph and any devices, or are an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import asks, chain
from tests.runtime.test_segments import assert_convex, assert_sound, graph, graphs

from crosschip.hal import YES, Group, Offer, Rule, Support
from crosschip.ir import Model, Operation, UnsupportedError
from crosschip.lowering.decomposition import Ask
from crosschip.ops.standard.activation import Relu, Sigmoid, Swish, Tanh
from crosschip.runtime.placement.constraints import AllowedDevices, Constraints
from crosschip.runtime.placement.placement import Placement, place
from crosschip.runtime.placement.segments import cut_segments

Declined = Mapping[str, frozenset[str]]
"""The names of the operations that each device declines."""


def device(declined: frozenset[str]) -> Ask:
    return asks(lambda o: Support.no(o, "", "no") if o.name in declined else YES)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Model, Declined, Constraints]:
    """A graph, devices of which the last runs everything, and constraints."""
    model = graph(draw(graphs(most=12)))
    names = st.frozensets(st.sampled_from([o.name for o in model.operations]))
    declined = {"a": draw(names), "b": draw(names), "c": frozenset[str]()}
    chosen = st.lists(st.sampled_from("abc"), min_size=1, unique=True)
    allowed_devices = {
        operation: AllowedDevices(tuple(draw(chosen)), "the test says so")
        for operation in model.operations
        if draw(st.integers(0, 3)) == 0
    }
    most = draw(st.none() | st.integers(1, 4))
    return model, declined, Constraints(allowed_devices, draw(st.integers(1, 4)), most)


def owners(placement: Placement) -> list[str]:
    return [decision.device or "" for decision in placement.decisions]


def may_run(name: str, operation: Operation, declined: Declined, constraints: Constraints) -> bool:
    home = constraints.allowed_devices.get(operation)
    return operation.name not in declined[name] and (home is None or name in home.devices)


@given(cases())
def test_every_operation_runs_once_where_it_may(case: tuple[Model, Declined, Constraints]) -> None:
    model, declined, constraints = case
    devices = {name: device(names) for name, names in declined.items()}
    homeless = [
        operation
        for operation in model.operations
        if not any(may_run(name, operation, declined, constraints) for name in devices)
    ]
    placement = place(model, devices, constraints=constraints, partial=True)
    most = constraints.max_segments or len(placement.segments)
    if homeless or len(placement.segments) > most:
        with pytest.raises(UnsupportedError, match=r"none of the devices|does not go in"):
            place(model, devices, constraints=constraints)
        assert homeless or not any(
            all(may_run(name, operation, declined, constraints) for operation in model.operations)
            for name in devices
        )
        return
    placement.check()
    found = owners(placement)
    assert_sound(model, found, placement.segments)
    assert_convex(model, placement.segments)
    for operation, owner in zip(model.operations, found, strict=True):
        assert may_run(owner, operation, declined, constraints)
    if constraints.max_segments is not None:
        assert len(placement.segments) <= constraints.max_segments


@given(cases())
def test_a_small_segment_stays_only_where_no_move_makes_fewer(
    case: tuple[Model, Declined, Constraints],
) -> None:
    model, declined, constraints = case
    constraints = replace(constraints, max_segments=None)
    devices = {name: device(names) for name, names in declined.items()}
    try:
        placement = place(model, devices, constraints=constraints)
    except UnsupportedError:
        return
    found = owners(placement)
    index = {operation: number for number, operation in enumerate(model.operations)}
    for segment in placement.segments:
        if len(segment.operations) >= constraints.min_segment:
            continue
        for other in devices:
            if all(may_run(other, o, declined, constraints) for o in segment.operations):
                moved = list(found)
                for operation in segment.operations:
                    moved[index[operation]] = other
                assert len(cut_segments(model, moved)) >= len(placement.segments)


@given(cases())
def test_without_limits_the_first_device_that_may_runs_it(
    case: tuple[Model, Declined, Constraints],
) -> None:
    model, declined, constraints = case
    devices = {name: device(names) for name, names in declined.items()}
    placement = place(
        model, devices, constraints=Constraints(constraints.allowed_devices), partial=True
    )
    expected = [
        next((name for name in devices if may_run(name, operation, declined, constraints)), "")
        for operation in model.operations
    ]
    assert owners(placement) == expected


@given(cases())
def test_strict_is_an_error_just_where_a_device_declines(
    case: tuple[Model, Declined, Constraints],
) -> None:
    model, declined, constraints = case
    devices = {name: device(names) for name, names in declined.items()}
    constraints = Constraints(constraints.allowed_devices, strict=True)
    as_wanted = True
    for operation in model.operations:
        home = constraints.allowed_devices.get(operation)
        first = next(name for name in devices if home is None or name in home.devices)
        as_wanted &= operation.name not in declined[first]
    if as_wanted:
        place(model, devices, constraints=constraints)
    else:
        with pytest.raises(UnsupportedError):
            place(model, devices, constraints=constraints)


def without(*types: str, rule: Rule = Rule.FAILURE) -> Ask:
    """A device that declines these operators; unless by another rule, in every form."""
    return asks(lambda o: Support.no(o, "", "not here", rule) if o.type in types else YES)


def types_on(placement: Placement, device: str) -> list[str]:
    return [decision.type for decision in placement.decisions if decision.device == device]


def test_strict_says_which_operations_fell_back_and_why() -> None:
    model = chain(Relu, Tanh, Sigmoid)
    devices = {"a": without("TANH"), "b": without()}
    with pytest.raises(UnsupportedError) as caught:
        place(model, devices, constraints=Constraints(strict=True))
    assert str(caught.value).splitlines() == [
        "net: 1 of its operations are not placed on the first device, as `strict` requires:",
        "  tanh_0 (TANH) goes to b: a: TANH: not here; b: supported",
    ]
    place(chain(Relu, Swish), devices, constraints=Constraints(strict=True))


def test_what_is_only_decomposed_is_no_fallback() -> None:
    devices = {"a": without("SWISH", rule=Rule.OPERATOR), "b": without()}
    placement = place(chain(Swish), devices, constraints=Constraints(strict=True))
    assert [o.type for o in placement.model.operations] == ["SIGMOID", "MUL"]


def test_a_small_segment_joins_those_around_it_and_says_so() -> None:
    model = chain(Relu, Tanh, Relu, Tanh, Tanh, Tanh)
    devices = {"a": without("TANH"), "b": without()}
    plain = place(model, devices)
    assert len(plain.segments) == 4
    placement = place(model, devices, constraints=Constraints(min_segment=2))
    assert [segment.device for segment in placement.segments] == ["b"]
    assert placement.decisions[0].reasons["a"] == ("RELU: joins a segment on b, as the caller asks")
    assert not [d for d in placement.fallbacks if d.type == "RELU"]


def test_small_segments_that_alternate_join_on_a_third_device() -> None:
    devices = {"a": without("TANH"), "b": without("RELU"), "c": without()}
    model = chain(Relu, Tanh, Relu, Tanh)
    assert len(place(model, devices).segments) == 4
    placement = place(model, devices, constraints=Constraints(min_segment=2))
    assert owners(placement) == ["c"] * 4


def test_a_small_segment_stays_where_nobody_else_takes_it() -> None:
    devices = {"a": without("TANH"), "b": without("RELU")}
    placement = place(chain(Relu, Tanh, Tanh), devices, constraints=Constraints(min_segment=3))
    assert [segment.device for segment in placement.segments] == ["a", "b"]


def test_too_many_segments_that_cannot_be_joined_are_an_error() -> None:
    devices = {"a": without("TANH"), "b": without("RELU")}
    model = chain(Relu, Tanh, Relu)
    with pytest.raises(
        UnsupportedError, match=r"does not go in 2 segments; the fewest found are 3"
    ):
        place(model, devices, constraints=Constraints(max_segments=2))
    shown = place(model, devices, constraints=Constraints(max_segments=2), partial=True)
    assert len(shown.segments) == 3
    with pytest.raises(UnsupportedError, match="does not go in 2"):
        shown.check()


def test_fewest_segments_leave_a_device_out_if_they_must() -> None:
    model = chain(Relu, Tanh, Sigmoid, Relu, Tanh, Sigmoid)
    devices = {"a": without("TANH", "SIGMOID"), "b": without("RELU", "SIGMOID"), "c": without()}
    placement = place(model, devices, constraints=Constraints(max_segments=1))
    assert types_on(placement, "c") == [operation.type for operation in model.operations]


def test_a_group_is_not_torn_apart_for_fewer_segments() -> None:
    def grouping(model: Model) -> Offer:
        return Offer([YES] * len(model.operations), [Group([0, 2], "they are fused")])

    devices = {"a": without("TANH"), "b": grouping}
    model = chain(Relu, Tanh, Relu)
    placement = place(model, devices, constraints=Constraints(min_segment=2))
    assert owners(placement) == ["a", "b", "a"]


def test_a_home_keeps_an_operation_off_other_devices_in_every_form() -> None:
    model = chain(Swish)
    (swish,) = model.operations
    devices = {"a": without("SWISH", rule=Rule.OPERATOR), "b": without()}
    placement = place(
        model, devices, constraints=Constraints({swish: AllowedDevices(("b",), "pinned")})
    )
    (decision,) = placement.decisions
    assert decision.device == "b"
    assert decision.verdicts["a"].support.rule is Rule.CALLER
    assert placement.fallbacks == []
    with pytest.raises(UnsupportedError, match="pinned"):
        place(
            model,
            {"a": without()},
            constraints=Constraints({swish: AllowedDevices(("b",), "pinned")}),
        )
