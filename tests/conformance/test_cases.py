"""The cases: each with an id of its own that leads back to it, all valid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.lanes import NIGHTLY, quick_kit

from crosschip.conformance import Case, all_cases, case_of
from crosschip.conformance.claims import Claims, claims_of
from crosschip.conformance.judge import Verdict, judge
from crosschip.conformance.tolerance import difference, sensitivity, tolerance
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.ir import Array, Builder, ElementType, InputError, Quantization, TensorType
from crosschip.ops import operators
from crosschip.ops.definition.examples import Sample, samples
from crosschip.ops.standard.activation import Gelu
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Round


@pytest.fixture(scope="module")
def kit(pytestconfig: pytest.Config) -> Sequence[Case]:
    """The quick kit; in the nightly lane the whole one, which takes a minute to generate."""
    return list(all_cases()) if pytestconfig.getoption(NIGHTLY) else quick_kit()


def test_no_two_have_one_id(kit: Sequence[Case]) -> None:
    counts = Counter(case.id for case in kit)
    assert set(counts.values()) == {1}


def test_every_operator_has_valid_invalid_and_loaded_ones(kit: Sequence[Case]) -> None:
    kinds: dict[str, set[str]] = {}
    for case in kit:
        kind = "invalid" if case.invalid else "loaded" if case.loaded else "valid"
        kinds.setdefault(case.operator, set()).add(kind)
    for name in operators():
        assert kinds[name] == {"valid", "invalid", "loaded"}, name


def test_an_id_leads_back_to_its_case() -> None:
    for case in all_cases("CONV_2D"):
        assert repr(case_of(case.id)) == repr(case)
    with pytest.raises(KeyError):
        case_of("CONV_2D/0/no-such-variation")
    with pytest.raises(KeyError):
        case_of("CONV_2D/0/float16,no-such-setting")
    with pytest.raises(KeyError):
        case_of("CONV_2D/999/float16,dynamic")
    with pytest.raises(KeyError):
        case_of("NO_SUCH_OPERATOR/0/plain")


def test_cases_can_be_chosen() -> None:
    assert {case.operator for case in all_cases("ADD")} == {"ADD"}
    assert {case.element_type for case in all_cases("ADD", "int32")} == {"int32"}
    names = ["ADD", "GATHER", "SOFTMAX"]
    quick, whole = (len(list(all_cases(names, quick=quick))) for quick in (True, False))
    assert quick < whole / 3


def test_every_operator_is_in_the_quick_kit(kit: Sequence[Case]) -> None:
    assert set(operators()) < {case.operator for case in kit}


def test_a_seed_makes_other_elements_but_not_other_cases() -> None:
    case = case_of("ADD/0/plain")
    assert case.seed(1) == case.seed(1) != case.seed(2)
    assert case.seed(1) != case_of("ADD/1/plain").seed(1)


@pytest.mark.nightly
def test_the_reference_passes() -> None:
    """The ordinary lane has `test_devices`, with a part of the rows of settings."""
    device = ReferenceDevice()
    results = [judge(case, device, Claims()) for case in quick_kit()]
    bad = [result for result in results if result.verdict is not Verdict.PASS]
    lacking = {"DEVICE/submit/after", "DEVICE/submit/many", "DEVICE/session/carried"}
    assert {result.id for result in bad} == lacking
    assert {result.verdict for result in bad} == {Verdict.UNSUPPORTED}


FLOAT = TensorType(ElementType.FLOAT32, (3,))


@pytest.mark.parametrize(
    ("actual", "wrong"),
    [
        ([1, 2, 3], ""),
        ([1, 2, 3 + 2e-6], ""),
        ([1, 2, 3.001], "1 of 3 elements are wrong, the first at [2]"),
        ([1, 2], "has shape [2], not [3]"),
        ([1, np.nan, 3], "the first at [1]: nan instead of 2.0"),
        ([np.inf, 2, 3], "the first at [0]: inf instead of 1.0"),
    ],
)
def test_differences(actual: list[float], wrong: str) -> None:
    made, expected = np.array(actual, np.float32), np.array([1, 2, 3], np.float32)
    found = difference(made, expected, FLOAT, tolerance(FLOAT, [expected]))
    assert found == wrong or (wrong and wrong in found)


def test_what_is_infinite_or_nan_must_be_so() -> None:
    expected = np.array([np.inf, np.nan, 3], np.float32)
    assert difference(expected.copy(), expected, FLOAT, 1e-6) == ""
    assert difference(-expected, expected, FLOAT, 1e-6)
    assert difference(np.array([np.inf, 0, 3], np.float32), expected, FLOAT, 1e-6)


def test_integers_are_exact_and_quantized_ones_one_step() -> None:
    expected = np.array([1, 2, 3], np.int8)
    plain = TensorType(ElementType.INT8, (3,))
    quantized = TensorType(ElementType.INT8, (3,), Quantization((0.1,)))
    assert difference(expected + np.int8(1), expected, plain, tolerance(plain, []))
    assert not difference(expected + np.int8(1), expected, quantized, 0)
    assert difference(expected + np.int8(2), expected, quantized, 0)


def test_a_type_and_the_order_in_memory_count() -> None:
    expected = np.ones((2, 3), np.float32)
    type_ = TensorType(ElementType.FLOAT32, (2, 3))
    assert "type float64" in difference(expected.astype(np.float64), expected, type_, 1)
    assert "not C-contiguous" in difference(np.asfortranarray(expected), expected, type_, 1)


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


def test_a_sum_that_cancels_may_be_off_by_its_roundings() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (3,)))
    b.output("y", b.add(ReduceSum, x))
    model = b.build()
    inputs = [np.array([1, -1, 1e-6], np.float32)]
    wanted = ReferenceProgram(model).run(inputs)
    (moved,) = sensitivity(model, inputs, {"x"}, wanted)
    assert 1e-7 < moved < 1e-5
    assert sensitivity(model, inputs, (), wanted) == [0.0]


def test_steps_are_rounded_where_the_whole_is_not() -> None:
    """Below 0, GELU's `1 + erf(…)` cancels in float32."""
    b = Builder()
    b.output("y", b.add(Gelu, b.input("x", TensorType(ElementType.FLOAT32, ()))))
    model, inputs = b.build(), [scalar(-3.9)]
    (wanted,) = ReferenceProgram(model).run(inputs)
    (moved,) = sensitivity(model, inputs, {"x"}, [wanted])
    assert 1e-5 < moved / abs(float(wanted)) < 1e-2


def test_ties_and_limits_are_left_alone() -> None:
    """A device that rounds 2.5 up must not be excused by what 2.5000001 becomes."""
    b = Builder()
    b.output("y", b.add(Round, b.input("x", TensorType(ElementType.FLOAT32, ()))))
    model, inputs = b.build(), [scalar(2.5)]
    assert sensitivity(model, inputs, (), [scalar(2)]) == [0.0]
    assert sensitivity(model, inputs, {"x"}, [scalar(2)]) == [1.0]


def sample_of(id: str) -> Sample:
    """The first tensor of a case."""
    variation = case_of(id).variation
    assert variation is not None
    _, sample = next(samples(variation.arguments))
    return sample


def test_integers_in_the_place_of_nan_and_infinities_are_0() -> None:
    own, integers = sample_of("EQUAL/4/plain").value, sample_of("EQUAL/4/int64").value
    assert own is not None
    assert integers is not None
    assert not np.isfinite(own).all()
    np.testing.assert_array_equal(integers, np.where(np.isfinite(own), own, 0))


def test_reals_in_the_place_of_integers_fit_any_integer_type() -> None:
    own, reals = sample_of("CAST/3/plain"), sample_of("CAST/3/float16")
    assert (own.low, own.high) == (-999, 999)
    assert (reals.low, reals.high) == (0, 127)


def test_claims(tmp_path: Path) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text(
        '[[exclude]]\ncase = "ADD/*/float16"\nreason = "see issue 7"\n'
        '[[accuracy]]\noperator = "EXP"\ntype = "float16"\ntolerance = 0.01\n'
    )
    claims = claims_of(ReferenceDevice, path)
    assert claims.exclusion("ADD/0/float16") == "see issue 7"
    assert claims.exclusion("ADD/0/plain") == ""
    assert claims.accuracy("EXP", "float16") == 0.01
    assert claims.accuracy("EXP", "float32") is None
    result = judge(case_of("ADD/0/float16"), ReferenceDevice(), claims)
    assert (result.verdict, result.detail) == (Verdict.EXCLUDED, "see issue 7")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[exclude]", "cannot be read"),
        ('exclude = "all"', "must be written as [[exclude]]"),
        ('[[exclude]]\ncase = "ADD/0/plain"', "needs a 'reason'"),
        ('[[exclude]]\nreason = "because"', "needs a 'case'"),
        ('[[accuracy]]\noperator = "EXP"\ntolerance = 2', "needs a 'tolerance' in [0, 1)"),
    ],
)
def test_claims_that_say_nothing_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "conformance.toml"
    path.write_text(content)
    with pytest.raises(InputError) as refusal:
        claims_of(ReferenceDevice, path)
    assert message in str(refusal.value)
    assert str(path) in str(refusal.value)
