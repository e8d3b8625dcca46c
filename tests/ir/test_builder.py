"""The builder rejects invalid operations with the operator and the slot."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.modelling import float32

from crosschip.ir import (
    Builder,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ir.types import NUMBERS
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import LeakyRelu, Relu, Sigmoid, Softmax
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose
from crosschip.ops.standard.quantization import Quantize

N = symbol("N")
UNKNOWN_RANK = TensorType(ElementType.FLOAT32, None)


@pytest.fixture
def b() -> Builder:
    return Builder("m")


@pytest.fixture
def x(b: Builder) -> Operand:
    return b.input("x", float32(N, 3))


def filters(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.zeros(shape, np.float32)


def test_a_model_as_it_was_built(b: Builder, x: Operand) -> None:
    hidden = b.add(Add, x, b.constant(np.float32(1)), name="shift")
    b.output("y", b.add(Relu, hidden, outputs=["result"]))
    model = b.build()
    assert list(model.inputs) == ["x"]
    assert [operation.name for operation in model.operations] == ["shift", "relu_0"]
    assert model.outputs["y"].name == "result"
    assert model.outputs["y"].type == float32(N, 3)
    assert model.producers[hidden] is model.operations[0]
    assert model.uses[hidden] == 1
    model.verify()


def test_a_built_model_does_not_grow_with_its_builder(b: Builder, x: Operand) -> None:
    b.output("y", b.add(Relu, x))
    model = b.build()
    b.output("z", b.add(Relu, x))
    assert len(model.operations) == 1
    assert list(model.outputs) == ["y"]


def test_an_array_is_a_constant_without_a_copy(b: Builder) -> None:
    weights = filters(100, 100)
    assert b.constant(weights).value is weights


REFUSED: list[tuple[Callable[[Builder, Operand], object], str]] = [
    (lambda b, x: b.add(Add, x), "ADD.input1: is required"),
    (lambda b, x: b.add(Add, 1.0, x), "ADD.input0: a plain value has no operand before it"),
    (lambda b, x: b.add(Relu, x, alpha=1), "RELU.alpha: no such slot; there are input"),
    (lambda b, x: b.add(Relu, x, input=x), "RELU.input: is given twice"),
    (lambda b, x: b.add(Relu, x, x), "RELU: takes 1 arguments, not 2"),
    (lambda b, x: b.add(Relu, "x"), "RELU.input: a plain value"),
    (
        lambda b, x: b.add(Sigmoid, b.input("i", TensorType(ElementType.INT32, (2,)))),
        "SIGMOID.input: takes bfloat16, float16, float32, float64, not int32",
    ),
    (
        lambda b, x: b.add(Add, x, b.input("d", TensorType(ElementType.FLOAT64, (3,)))),
        "ADD.input1: is float64, but must be float32 like input0",
    ),
    (
        lambda b, x: b.add(Add, b.input("i", TensorType(ElementType.INT32, (2,))), 1.5),
        "ADD.input1: 1.5 is not of the element type int32",
    ),
    (
        lambda b, x: b.add(Add, b.input("u", TensorType(ElementType.UINT8, (2,))), 300),
        "ADD.input1: 300 is not of the element type uint8",
    ),
    (lambda b, x: b.add(Add, x, "abc"), "ADD.input1: could not convert string"),
    (lambda b, x: b.add(Add, x, filters(4)), "ADD.input1: shapes .* do not broadcast"),
    (lambda b, x: b.add(Add, x, x, fuse_code=9), "ADD.fuse_code: 9 is not a valid Fuse"),
    (lambda b, x: b.add(LeakyRelu, x, [1.0, 2.0]), "LEAKY_RELU.alpha: takes one value"),
    (lambda b, x: b.add(Softmax, x, 1.0), "SOFTMAX.axis: takes int32, int64, not float64"),
    (lambda b, x: b.add(Softmax, x, True), "SOFTMAX.axis: takes int32, int64, not bool"),
    (lambda b, x: b.add(Softmax, x, 2), r"SOFTMAX.axis: 2 is not in \[-2, 2\)"),
    (lambda b, x: b.add(Transpose, x, [[0], [0, 1]]), "TRANSPOSE.perm: .*inhomogeneous"),
    (lambda b, x: b.add(Transpose, x, [[0, 1]]), "TRANSPOSE.perm: takes a list, not a tensor"),
    (lambda b, x: b.add(Transpose, x, "ab"), "transpose_0.perm"),
    (lambda b, x: b.add(Transpose, x, (0, 0)), "TRANSPOSE.perm: .* names an axis twice"),
    (lambda b, x: b.add(Transpose, x, (0,)), "TRANSPOSE.perm: has 1 axes, but the input has 2"),
    (lambda b, x: b.add(Reshape, x, (2**70,)), "reshape_0.shape"),
    (lambda b, x: b.add(Concat, x, 0), "CONCAT.parts: takes a list of operands"),
    (lambda b, x: b.add(Concat, [x, 1.0], 0), "CONCAT.parts: takes a list of operands"),
    (lambda b, x: b.add(Concat, [], 0), "CONCAT.parts: is required"),
    (
        lambda b, x: b.add(Conv2D, b.input("i", float32(1, N, 8, 8)), filters(4, 2, 3, 3), group=0),
        "CONV_2D.group: 0 is not positive",
    ),
    (
        lambda b, x: b.add(Conv2D, b.input("i", float32(1, 3, 8, 8)), filters(4, 2, 3, 3)),
        "CONV_2D.filter: .*: 3 and 2 differ",
    ),
    (
        lambda b, x: b.add_all(
            Split,
            b.input("i", UNKNOWN_RANK),
            0,
            b.input("sizes", TensorType(ElementType.INT32, (N,))),
        ),
        "SPLIT.split: must be a list of known length",
    ),
    (
        lambda b, x: b.add(Quantize, b.input("i", UNKNOWN_RANK), 1, (1, 2)),
        "QUANTIZE.input: its rank must be known",
    ),
    (lambda b, x: b.add(Quantize, x, 1, b.input("s", float32(1))), "QUANTIZE.scale is computed"),
    (lambda b, x: b.add(Quantize, x, 1, (0.0,)), "QUANTIZE.scale: every scale must be a positive"),
    (
        lambda b, x: b.add(Cast, x, b.input("t", TensorType(ElementType.INT32, (1,)))),
        "CAST.dtype is computed when the model runs, but must be constant",
    ),
    (lambda b, x: b.add(Cast, x, 99), "CAST.dtype: 99 is not the code of an element type"),
]


@pytest.mark.parametrize(("add", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_a_broken_rule_is_told_with_operator_and_slot(
    b: Builder, x: Operand, add: Callable[[Builder, Operand], object], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        add(b, x)
    assert not b.operations, "what was refused must not be in the model"


def test_the_message_names_the_operation(b: Builder, x: Operand) -> None:
    with pytest.raises(ModelError, match=r"^'head/prob': SOFTMAX\.axis"):
        b.add(Softmax, x, 7, name="head/prob")


@pytest.mark.parametrize("perm", [(1, 0), [1, 0], np.array([1, 0]), np.array([1, 0], np.int32)])
def test_a_list_may_be_given_in_any_form(b: Builder, x: Operand, perm: object) -> None:
    assert b.add(Transpose, x, perm).type == float32(3, N)


def test_an_array_of_one_is_a_list_of_one(b: Builder, x: Operand) -> None:
    assert b.add(Reshape, x, np.array([-1])).type == float32(3 * N)


@pytest.mark.parametrize("axes", [(), [], np.array([]), np.array([], np.int64)])
def test_an_empty_list_may_be_given_in_any_form(b: Builder, axes: object) -> None:
    one = b.input("one", float32(1, 3, 1))
    assert b.add(Squeeze, one, axes).type == float32(3)


def test_a_whole_number_will_do_for_a_real(b: Builder, x: Operand) -> None:
    b.add(LeakyRelu, x, alpha=1)
    (operation,) = b.operations
    assert isinstance(operation, LeakyRelu)
    assert operation.alpha == 1.0


@pytest.mark.parametrize("code", [Fuse.RELU6, 3, np.int64(3)])
def test_a_choice_may_be_given_by_number(b: Builder, x: Operand, code: object) -> None:
    b.add(Add, x, x, fuse_code=code)
    (operation,) = b.operations
    assert isinstance(operation, Add)
    assert operation.fused is Fuse.RELU6


@pytest.mark.parametrize("element_type", sorted(NUMBERS, key=str))
def test_a_plain_number_is_of_the_type_of_the_operand_before_it(element_type: ElementType) -> None:
    b = Builder()
    b.add(Add, b.input("x", TensorType(element_type, (2,))), 1)
    constant = b.operations[0].inputs[1]
    assert constant is not None
    assert constant.type == TensorType(element_type, ())


@pytest.mark.parametrize("value", ["text", object(), [[1], [1, 2]], 1j, np.zeros(2, ">f4")])
def test_a_constant_that_no_operand_can_hold_is_refused(b: Builder, value: object) -> None:
    with pytest.raises(ModelError, match="constant 'weights'"):
        b.constant(value, "weights")  # type: ignore[arg-type]  # that is the point


def test_two_inputs_or_outputs_of_one_name_are_refused(b: Builder, x: Operand) -> None:
    with pytest.raises(ModelError, match="'m' has two inputs called 'x'"):
        b.input("x", float32(1))
    b.output("y", x)
    with pytest.raises(ModelError, match="'m' has two outputs called 'y'"):
        b.output("y", x)


def test_made_up_names_are_told_apart(b: Builder, x: Operand) -> None:
    made = [b.add(Relu, x) for _ in range(3)]
    assert len({operand.name for operand in made}) == 3


def test_operations_of_one_name_are_told_apart(b: Builder, x: Operand) -> None:
    b.add(Relu, x, name="relu_1")
    for name in ("a", "a", "", "", "a_1", "a"):
        b.add(Relu, x, name=name)
    names = [operation.name for operation in b.operations]
    assert names == ["relu_1", "a", "a_1", "relu_0", "relu_2", "a_1_1", "a_2"]
    b.build().verify()


def test_names_that_are_taken_elsewhere_are_not_given(x: Operand) -> None:
    taken = {"part.relu_0", "mine"}
    b = Builder(prefix="part.", used_names=taken)
    b.add(Relu, x)
    b.add(Relu, x, name="mine")
    assert [operation.name for operation in b.operations] == ["part.relu_1", "mine_1"]
    assert taken == {"part.relu_0", "mine", "part.relu_1", "mine_1"}


def test_an_operation_from_elsewhere_needs_a_name_of_its_own(b: Builder, x: Operand) -> None:
    b.add(Relu, x, name="a")
    with pytest.raises(ModelError, match="there are two operations called 'a'; rename one"):
        b.append(Relu("a", (x,), (Operand("y", x.type),)))


def test_each_output_may_declare_a_quantization(b: Builder) -> None:
    fine, coarse = Quantization((0.1,)), Quantization((0.7,))
    x = b.input("q", TensorType(ElementType.INT8, (4,), fine))
    parts = b.add_all(Split, x, 0, (1, 3), quantization=(coarse, None))
    assert [part.type.quantization for part in parts] == [coarse, fine]
    parts = b.add_all(Split, x, 0, (1, 3), quantization=coarse)
    assert [part.type.quantization for part in parts] == [coarse, coarse]
    with pytest.raises(ModelError, match="SPLIT: declares 3 quantizations for 2 outputs"):
        b.add_all(Split, x, 0, (1, 3), quantization=(coarse, None, None))
    b.build().verify()


def test_operands_can_be_renamed(b: Builder, x: Operand) -> None:
    first = b.add(Relu, x, name="a")
    last = b.add(Relu, first, name="b")
    b.add(Relu, x, name="c")
    kept = b.operations[2]
    renamed = b.rename({first: "p", last: "q"})
    assert [operand.name for operand in renamed.values()] == ["p", "q"]
    assert b.operations[1].inputs == b.operations[0].outputs == (renamed[first],)
    assert b.operations[2] is kept
    b.build().verify()


def test_several_outputs_have_names_of_their_own(b: Builder, x: Operand) -> None:
    first, second = b.add_all(Split, x, 1, (1, 2), name="cut", outputs=["left"])
    assert (first.name, second.name) == ("left", "cut.1")
    assert (first.type, second.type) == (float32(N, 1), float32(N, 2))


def test_an_operation_that_asks_for_too_little_of_an_axis_is_refused(b: Builder) -> None:
    with pytest.raises(ModelError, match=r"SPLIT\.split"):
        b.add_all(Split, b.input("i", float32(5)), 0, (2, 2))
