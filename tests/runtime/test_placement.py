"""The choice of who runs what, and its reasons."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import asks, chain, close, float32, model_of, outputs_of
from tests.random_models import Example, examples

from crosschip.hal import YES, Group, Offer, Rule, Support
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    Operand,
    Operation,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ir.types import FLOATS
from crosschip.lowering.decomposition import Ask
from crosschip.ops import Operator
from crosschip.ops.definition.kinds import Elementwise
from crosschip.ops.definition.slots import Fuse, tensor
from crosschip.ops.standard.activation import HardSwish, LeakyRelu, Relu, Sigmoid, Swish, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Flatten
from crosschip.ops.standard.matrix import FullyConnected
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.runtime.placement.placement import Placement, place


def only(*types: str) -> Ask:
    """A device that runs operators of these types and no other."""
    return asks(lambda o: YES if o.type in types else Support.no(o, "", "not implemented"))


def without(*types: str, fuses: bool = True) -> Ask:
    """A device that runs all operators but those of these types."""

    def supports(operation: Operation) -> Support:
        if operation.type in types:
            return Support.no(operation, "", "not implemented")
        if isinstance(operation, Operator) and operation.fused is not Fuse.NONE and not fuses:
            return Support.no(operation, "fuse_code", "not here")
        return YES

    return asks(supports)


everything = without()


def where(placement: Placement) -> list[tuple[str, str]]:
    return [(o.type, s.device) for s in placement.segments for o in s.model.operations]


def test_each_operation_goes_to_the_first_device_that_runs_it() -> None:
    model = chain(Relu, Tanh, Sigmoid)
    placement = place(model, {"a": only("TANH"), "b": only("RELU", "TANH"), "c": everything})
    assert [(d.name, d.type, d.device) for d in placement.decisions] == [
        ("relu_0", "RELU", "b"),
        ("tanh_0", "TANH", "a"),
        ("sigmoid_0", "SIGMOID", "c"),
    ]
    assert [segment.device for segment in placement.segments] == ["b", "a", "c"]


def test_reasons_are_those_of_the_devices_that_were_asked() -> None:
    model = chain(Tanh)
    devices = {
        "a": only("RELU"),
        "b": asks(lambda o: Support(True, detail="in hardware")),
        "c": everything,
    }
    (decision,) = place(model, devices).decisions
    assert decision.reasons == {"a": "TANH: not implemented", "b": "in hardware"}
    (decision,) = place(model, devices, ask_all=True).decisions
    assert decision.device == "b"
    assert decision.reasons["c"] == "supported"


def test_no_device_is_asked_in_vain() -> None:
    def refuse(operation: Operation) -> Support:
        raise AssertionError("the first device runs it")

    place(chain(Relu), {"a": everything, "b": asks(refuse)})


def test_what_a_device_declines_is_decomposed_for_it() -> None:
    model = chain(Swish)
    placement = place(model, {"a": only("SIGMOID", "MUL"), "b": everything})
    assert where(placement) == [("SIGMOID", "a"), ("MUL", "a")]
    (decision,) = placement.decisions
    assert (decision.type, decision.device) == ("SWISH", "a")
    assert decision.reasons == {"a": "decomposed into SIGMOID, MUL, since SWISH: not implemented"}
    assert [part.type for part in decision.parts] == ["SIGMOID", "MUL"]


def test_a_decomposition_that_a_device_runs_only_in_part_is_not_for_it() -> None:
    model = chain(Swish)
    placement = place(model, {"a": only("SIGMOID"), "b": everything})
    assert where(placement) == [("SWISH", "b")]


def test_parts_are_decomposed_further() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        weights, bias = np.ones((2, 3), np.float32), np.ones(2, np.float32)
        return b.add(FullyConnected, x, weights, bias, fuse_code=Fuse.RELU)

    model = model_of(make, float32(1, 3))
    placement = place(model, {"a": only("MAT_MUL", "ADD", "CLIP")})
    assert where(placement) == [("MAT_MUL", "a"), ("ADD", "a"), ("CLIP", "a")]
    x = {"x0": np.array([[-5, 1, 1]], np.float32)}
    assert outputs_of(placement.model, x)["y0"].tolist() == [[0, 0]]


@pytest.mark.parametrize("fuse", [Fuse.RELU, Fuse.RELU1, Fuse.RELU6])
def test_an_activation_that_a_device_does_not_fuse_is_split_off(fuse: Fuse) -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, x, fuse_code=fuse)

    placement = place(model_of(make, float32(5)), {"a": without(fuses=False)})
    assert where(placement) == [("ADD", "a"), ("CLIP", "a")]
    (decision,) = placement.decisions
    assert decision.reasons["a"] == "decomposed into ADD, CLIP, since ADD.fuse_code: not here"
    x = np.array([-5, -0.25, 0.25, 2, 50], np.float32)
    low, high = {Fuse.RELU: (0, np.inf), Fuse.RELU1: (-1, 1), Fuse.RELU6: (0, 6)}[fuse]
    result = outputs_of(placement.model, {"x0": x})["y0"]
    np.testing.assert_array_equal(result, np.clip(2 * x, low, high))


def test_a_fused_activation_stays_where_the_device_fuses() -> None:
    model = model_of(lambda b, x: b.add(Add, x, x, fuse_code=Fuse.RELU), float32(5))
    assert where(place(model, {"a": everything})) == [("ADD", "a")]


class Pair(Elementwise):
    """The input, twice: its decomposition hands on what it was given."""

    __slots__ = ()
    type = "PAIR"  # without registering it: it is no standard operator
    input = tensor(FLOATS)

    def output_count(self) -> int:
        return 2

    def infer(self) -> tuple[TensorType, ...]:
        return super().infer() * 2

    def reference(self, input: Array) -> list[Array]:
        return [input, input]

    def decompose(self, b: Builder) -> list[Operand]:
        return [self.input, self.input]


class Twin(Pair):
    """The input's sigmoid, twice: both outputs of its decomposition are one operand."""

    __slots__ = ()
    type = "TWIN"

    def reference(self, input: Array) -> list[Array]:
        return [1 / (1 + np.exp(-input))] * 2

    def decompose(self, b: Builder) -> list[Operand]:
        return [b.add(Sigmoid, self.input, name="without our prefix")] * 2


@pytest.mark.parametrize("double", [Pair, Twin])
def test_a_decomposition_may_hand_on_an_operand_or_hand_it_out_twice(double: type[Pair]) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        left, right = b.add_all(double, x)
        return b.add(Relu, left), right, left

    model = model_of(make, float32(2))
    placement = place(model, {"a": without("PAIR", "TWIN")})
    placement.model.verify()
    x = {"x0": np.array([-1, 1], np.float32)}
    expected = outputs_of(model, x)
    for name, array in outputs_of(placement.model, x).items():
        np.testing.assert_array_equal(array, expected[name])


def test_a_model_that_no_device_runs_is_refused_with_every_reason_once() -> None:
    model = chain(Tanh, Relu, Tanh, Sigmoid)
    with pytest.raises(UnsupportedError) as caught:
        place(model, {"a": only("RELU", "SWISH"), "b": only("CLIP")})
    assert str(caught.value).splitlines() == [
        "net: none of the devices runs 3 of its operations; "
        "add a device that does (`reference` runs every standard operator):",
        "  2 x a: TANH: not implemented; b: TANH: not implemented",
        "  1 x a: SIGMOID: not implemented; b: SIGMOID: not implemented",
    ]


def test_what_no_device_runs_is_left_out_on_request() -> None:
    model = chain(Relu, Tanh, Relu)
    no = asks(lambda o: YES if o.type == "RELU" else Support.no(o, "input", "too large"))
    placement = place(model, {"a": no, "b": only("RELU")}, ask_all=True, partial=True)
    assert where(placement) == [("RELU", "a"), ("RELU", "a")]
    assert [o.type for o in placement.model.operations] == ["RELU", "TANH", "RELU"]
    (decision,) = placement.unplaced
    assert (decision.name, decision.device, decision.parts) == ("tanh_0", None, ())
    assert decision.reasons == {"a": "TANH.input: too large", "b": "TANH: not implemented"}
    assert [refusal.slot for refusal in decision.refusals] == ["input", ""]
    assert "a runs 2, nobody runs 1; main reason" in placement.summary()
    with pytest.raises(UnsupportedError, match=r"1 x a: TANH\.input: too large; b: TANH"):
        placement.check()
    place(model, {"a": everything}, partial=True).check()


def test_a_long_list_of_reasons_is_cut() -> None:
    def decline(operation: Operation) -> Support:
        return Support.no(operation, "input", f"number {operation.name}")

    with pytest.raises(UnsupportedError, match="and 5 more kinds"):
        place(chain(*[Tanh] * 15), {"a": asks(decline)})


def test_what_is_known_to_fail_is_not_tried_again_in_any_form() -> None:
    model = chain(Swish, HardSwish)
    no = Support(False, "SWISH", "", Rule.FAILURE, "it crashed")
    refusals = {"a": {"swish_0": no}}
    placement = place(model, {"a": everything, "b": everything}, refusals)
    assert where(placement) == [("SWISH", "b"), ("HARD_SWISH", "a")]
    assert placement.decisions[0].reasons == {"a": "SWISH: it crashed", "b": "supported"}


def test_what_cannot_be_decomposed_before_it_runs_is_declined() -> None:
    unknown_rank = TensorType(ElementType.FLOAT32, None)
    ones = np.ones(3, np.float32)

    def normalize(b: Builder, x: Operand) -> Operand:
        return b.add(BatchNormalization, x, ones, ones, ones, ones)

    def leak(b: Builder, x: Operand, alpha: Operand) -> Operand:
        return b.add(LeakyRelu, x, alpha)

    for model in (
        model_of(normalize, unknown_rank),
        model_of(lambda b, x: b.add(Flatten, x), unknown_rank),
        model_of(leak, float32(2), float32(1)),
    ):
        device = without(model.operations[0].type)
        with pytest.raises(UnsupportedError, match="not implemented"):
            place(model, {"a": device})


@pytest.mark.parametrize("element_type", [ElementType.FLOAT16, ElementType.BFLOAT16], ids=str)
def test_a_decomposition_keeps_the_element_type(element_type: ElementType) -> None:
    ones = np.ones(3, np.float32)
    model = model_of(
        lambda b, x: b.add(BatchNormalization, x, ones, ones, ones, ones),
        TensorType(element_type, (1, 3)),
    )
    placement = place(model, {"a": without("BATCH_NORMALIZATION")})
    placement.model.verify()
    assert placement.model.outputs["y0"].type.element_type is element_type


def test_statistics_that_make_no_sense_are_no_reason_to_warn() -> None:
    ones = np.ones(3, np.float32)
    bad = np.array([-1, 0, 1e-45], np.float32)
    model = model_of(
        lambda b, x: b.add(BatchNormalization, x, ones, ones, ones, bad, epsilon=0.0),
        float32(1, 3),
    )
    placement = place(model, {"a": without("BATCH_NORMALIZATION")})
    x = {"x0": np.ones((1, 3), np.float32)}
    np.testing.assert_array_equal(
        np.isfinite(outputs_of(placement.model, x)["y0"]), np.isfinite(outputs_of(model, x)["y0"])
    )


def test_one_line_sums_up_where_a_model_went() -> None:
    model = chain(Relu, Tanh, Tanh, Swish)
    a = without("TANH", "SWISH")
    assert place(model, {"a": everything}).summary() == "4 operations in 1 segments: a runs 4"
    assert place(model, {"a": a, "b": everything}).summary() == (
        "4 operations in 3 segments: a runs 2, b runs 2; main reason (2): TANH: not implemented"
    )


def test_what_later_devices_say_is_no_reason_for_the_choice() -> None:
    model = chain(Relu, Tanh)
    devices = {"a": everything, "b": everything, "c": only("RELU")}
    placement = place(model, devices, ask_all=True)
    assert placement.summary() == "2 operations in 1 segments: a runs 2"


def test_a_model_without_operations_is_placed() -> None:
    placement = place(model_of(lambda b, x: x, float32(2)), {"a": everything})
    assert placement.segments == ()
    assert placement.decisions == ()


TYPES = [
    "CONV_2D",
    "BATCH_NORMALIZATION",
    "FULLY_CONNECTED",
    "HARD_SWISH",
    "FLATTEN",
    "RELU",
    "ADD",
]


@given(examples(), st.sets(st.sampled_from(TYPES)), st.sets(st.sampled_from(TYPES)), st.booleans())
def test_a_placed_model_computes_the_same(
    example: Example, a: Collection[str], b: Collection[str], fuses: bool
) -> None:
    devices = {"a": without(*a, fuses=fuses), "b": without(*b), "c": everything}
    placement = place(example.model, devices)
    placement.model.verify()
    assert [d.name for d in placement.decisions] == [o.name for o in example.model.operations]
    parts = [part for decision in placement.decisions for part in decision.parts]
    assert parts == list(placement.model.operations)
    owner = {part: d.device for d in placement.decisions for part in d.parts}
    for segment in placement.segments:
        for operation in segment.model.operations:
            assert owner[operation] == segment.device
        assert all(devices[segment.device](segment.model).answers)
    expected = outputs_of(example.model, example.inputs)
    for name, array in outputs_of(placement.model, example.inputs).items():
        close(array, expected[name])


def grouping(*types: str) -> Ask:
    """A device that runs operators of these types, together or not at all, and no other."""

    def ask(model: Model) -> Offer:
        answers = only(*types)(model).answers
        members = [index for index, answer in enumerate(answers) if answer]
        return Offer(answers, [Group(members, "they are fused")])

    return ask


def test_a_group_goes_to_its_device_as_a_whole() -> None:
    placement = place(chain(Tanh, Relu, Sigmoid), {"a": grouping("RELU", "TANH"), "b": everything})
    assert where(placement) == [("TANH", "a"), ("RELU", "a"), ("SIGMOID", "b")]


def test_a_group_of_which_another_device_has_a_part_is_broken_up() -> None:
    devices = {"a": only("RELU"), "b": grouping("RELU", "TANH"), "c": everything}
    placement = place(chain(Tanh, Relu), devices)
    assert where(placement) == [("TANH", "c"), ("RELU", "a")]
    tanh = placement.decisions[0].verdicts["b"].support
    assert (tanh.rule, tanh.operator) == (Rule.GROUP, "TANH")
    assert "they are fused" in tanh.reason


def test_a_group_that_does_not_fit_in_one_segment_is_broken_up() -> None:
    """A part between its members runs elsewhere, so they cannot run without a break."""
    devices = {"a": grouping("RELU", "TANH"), "b": everything}
    placement = place(chain(Tanh, Sigmoid, Relu), devices)
    assert where(placement) == [("TANH", "b"), ("SIGMOID", "b"), ("RELU", "b")]


def test_a_group_with_a_member_that_failed_is_broken_up() -> None:
    no = Support(False, "RELU", "", Rule.FAILURE, "it crashed")
    devices = {"a": grouping("RELU", "TANH"), "b": everything}
    placement = place(chain(Tanh, Relu), devices, {"a": {"relu_0": no}})
    assert {device for _, device in where(placement)} == {"b"}


def test_a_convolution_in_a_model_of_open_size_is_split_too() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Conv2D, x, np.ones((1, 1, 1, 1), np.float32), fuse_code=Fuse.RELU6)

    model = model_of(make, float32(symbol("N"), 1, symbol("H"), 2))
    placement = place(model, {"a": without(fuses=False)})
    assert where(placement) == [("CONV_2D", "a"), ("CLIP", "a")]
    assert placement.model.outputs["y0"].type == model.outputs["y0"].type
