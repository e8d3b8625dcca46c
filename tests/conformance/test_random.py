"""Random cases: always the same ones, all valid, everywhere in an operator's space, and shrunk."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.conformance.planted import FAULTS, device

from crosschip.conformance import case_of, random_cases, run_cases
from crosschip.conformance.cases import use_at
from crosschip.conformance.claims import Claims
from crosschip.conformance.draw import Draw
from crosschip.conformance.extremes import extreme_run, one_signed_run
from crosschip.conformance.judge import Verdict, judge
from crosschip.conformance.random_changes import RANDOM_CHANGES
from crosschip.conformance.sampling import random_use
from crosschip.conformance.shrinking import cost, follow_path, shrink, simpler_uses
from crosschip.conformance.uses import Use, draws, is_valid, use_of
from crosschip.devices.reference import ReferenceDevice
from crosschip.ir import ElementType, TensorType
from crosschip.ops import examples_of, operator_named, operators
from crosschip.ops.definition.examples import random

SOME = 300


@pytest.mark.parametrize("name", ["CONV_2D", "GATHER", "LSTM", "RANGE", "CONCAT"])
def test_a_seed_always_leads_to_the_same_use(name: str) -> None:
    for number in range(20):
        first, second = (random_use(operator_named(name), f"7-{number}") for _ in range(2))
        assert str(first) == str(second)
    assert str(first) != str(random_use(operator_named(name), "8-19"))


@pytest.mark.parametrize("name", operators())
def test_random_uses_are_valid_and_go_where_examples_do_not(name: str) -> None:
    operator = operator_named(name)
    uses = [random_use(operator, f"0-{number}") for number in range(15)]
    assert all(is_valid(use) for use in uses)
    assert len({str(use) for use in uses}) > 10
    own = {str(use_of(operator, example)) for example in examples_of(operator)}
    assert sum(str(use) in own for use in uses) < 5


def test_numbers_do_not_ask_for_too_much() -> None:
    """The size of a RANGE follows from its numbers, whether the model knows them or not."""
    for seed in range(500):
        use = use_at(f"RANGE/random/70001-{seed}")
        for arguments in (use.arguments, *({**use.arguments, **run} for run in use.runs)):
            values = {name: draw.value for name, draw in draws(arguments).items()}
            given = [values.get(name) for name in ("start", "end", "step")]
            start, end, step = (math.nan if n is None else float(n.item()) for n in given)
            if math.isfinite(start + end + step) and step:
                assert (end - start) / step <= 2**17 + 1


def test_conditions_of_all_kinds_meet() -> None:
    found: Counter[str] = Counter()
    for number in range(SOME):
        use = random_use(operator_named("CONV_2D"), f"0-{number}")
        found.update(conditions(use))
    assert not {name for name in CONDITIONS if not found[name]}, found
    assert found["open sizes"] > SOME / 5


CONDITIONS = (
    *("open sizes", "loaded", "run again", "constant", "computed", "quantized", "quantized output"),
    *("NaN", "empty", "strides", "dilations", "group", "uneven pads", "fused", "float16"),
)


def conditions(use: Use) -> set[str]:
    given: dict[str, Any] = {n: v for n, v in use.arguments.items() if not isinstance(v, Draw)}
    found = draws(use.arguments)
    pads = given.get("pads", (0, 0, 0, 0))
    return {
        name
        for name, holds in {
            "open sizes": use.named,
            "loaded": use.loaded,
            "run again": bool(use.runs),
            "constant": any(draw.constant for draw in found.values()),
            "computed": any(name in found for name in ("pads", "strides", "group", "dilations")),
            "quantized": any(draw.type.quantization for draw in found.values()),
            "quantized output": "quantization" in given,
            "NaN": any(np.isnan(draw.specials).any() for draw in found.values()),
            "empty": any(0 in (draw.type.shape or ()) for draw in found.values()),
            "strides": max(given.get("strides", (1,))) > 1,
            "dilations": max(given.get("dilations", (1,))) > 1,
            "group": given.get("group", 1) > 1,
            "uneven pads": len(set(pads)) > 1,
            "fused": bool(given.get("fuse_code")),
            "float16": any(d.type.element_type is ElementType.FLOAT16 for d in found.values()),
        }.items()
        if holds
    }


def test_every_move_is_made_and_often_valid() -> None:
    random, tried, accepted = Random(0), Counter[str](), Counter[str]()
    for operator in operators().values():
        use = use_of(operator, examples_of(operator)[0])
        for _, move in RANDOM_CHANGES:
            for _ in range(4):
                moved = move(use, random)
                if moved is not None:
                    tried[move.__name__] += 1
                    accepted[move.__name__] += is_valid(moved)
    for _, move in RANDOM_CHANGES:
        assert accepted[move.__name__] > 0.15 * tried[move.__name__] > 0, move.__name__


def test_ids_of_random_cases_lead_back_to_them() -> None:
    ids = [case.id for case in random_cases(SOME, seed=3)]
    assert len(ids) == len(set(ids)) >= SOME
    assert {id.partition("/")[0] for id in ids} == set(operators())
    for id in ids[:20]:
        case = case_of(id)
        assert case.id == id
        assert case.variation is not None
    for wrong in ("ADD/random/0-0~x", "ADD/random/0-0~99999", "NO_SUCH/random/0-0"):
        with pytest.raises(KeyError):
            case_of(wrong)


def test_the_reference_agrees_with_inference() -> None:
    """And refuses what it refuses in a good way."""
    results = [judge(case_of(c.id), ReferenceDevice(), Claims()) for c in random_cases(SOME, 1)]
    assert not [result for result in results if result.verdict is not Verdict.PASS]


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_nothing_fails_on_an_engine(name: str) -> None:
    report = run_cases(name, random_cases(SOME, 1), timeout=30)
    assert not [f"{entry.id}: {entry.detail} {entry.smallest}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["pass"] > SOME / 5


def test_special_elements_are_there_and_one_is_first_or_last() -> None:
    draw = Draw(TensorType(ElementType.FLOAT32, (3, 4)), -1, 1, specials=(np.nan, np.inf))
    for seed in range(20):
        array = draw.array(np.random.default_rng(seed))
        assert np.isnan(array).any()
        assert np.isnan(array[0, 0]) or np.isnan(array[-1, -1])
    one = Draw(TensorType(ElementType.FLOAT32, ()), specials=(np.nan, np.inf))
    assert np.isnan(one.array(np.random.default_rng(0)))


@pytest.mark.parametrize("dtype", [ElementType.FLOAT32, ElementType.BFLOAT16, ElementType.INT8])
def test_ascending_elements_stay_in_order(dtype: ElementType) -> None:
    sample = random(3, 5, dtype=dtype, low=-90, high=90, ascending=True)
    changed = [
        replace(Draw.of(sample), specials=(np.inf, -np.inf)),
        *extreme_run({"input": sample}, 1).values(),
        *one_signed_run({"input": sample}).values(),
    ]
    assert len(changed) == 3
    for each in (sample, *changed):
        array = each.array(np.random.default_rng(0)).astype(np.float64)
        assert (array[:, 1:] >= array[:, :-1]).all()


def failing(name: str) -> tuple[str, Use]:
    """The first random case in which a fault shows, and its use."""
    fault, faulty = FAULTS[name], device(FAULTS[name])
    for case in random_cases(1500, 0, fault.operator):
        if judge(case_of(case.id), faulty, Claims()).verdict is Verdict.FAIL:
            return case.id, use_at(case.id)
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "most"),
    [("stride_and_uneven_pads", 110), ("negative_index_on_a_later_axis", 80)],
)
def test_a_failure_is_shrunk_to_the_smallest_that_fails_alike(name: str, most: float) -> None:
    id, use = failing(name)
    faulty = device(FAULTS[name])

    def fails(way: object) -> bool:
        assert isinstance(way, list)
        return judge(case_of(f"{id}~{'.'.join(map(str, way))}"), faulty, Claims()).verdict is (
            Verdict.FAIL
        )

    way = shrink(use, fails, tries=400)
    smallest = follow_path(use, way)
    assert fails(way)
    assert cost(smallest) < min(most, cost(use))
    assert not smallest.named
    assert not smallest.loaded
    assert not smallest.runs
    for index, candidate in enumerate(simpler_uses(smallest)):
        if cost(candidate) < cost(smallest) and is_valid(candidate):
            assert not fails([*way, index])


def test_shrinking_ends_when_its_tries_do() -> None:
    _, use = failing("stride_and_uneven_pads")
    asked = []

    def fails(way: object) -> bool:
        asked.append(way)
        return False

    assert shrink(use, fails, tries=5) == []
    assert len(asked) == 5


def test_a_run_reports_the_smallest_use_and_its_id() -> None:
    report = run_cases(
        "tests.conformance.defects:dilations_ignored", random_cases(60, 0, "CONV_2D")
    )
    smallest = [entry.smallest for entry in report.failed if entry.smallest]
    assert smallest
    id = smallest[0].partition(": ")[0]
    assert "CONV_2D(" in smallest[0]
    assert f"{use_at(id)}" in smallest[0]
    again = run_cases("tests.conformance.defects:dilations_ignored", [case_of(id)])
    assert [entry.id for entry in again.failed] == [id]
