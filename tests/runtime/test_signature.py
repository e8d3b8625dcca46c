"""The check of what a caller passes, with messages that say what, where and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tests.modelling import float32, model_of

from crosschip.ir import (
    Builder,
    ElementType,
    InputError,
    Model,
    Operand,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.signature import Signature

N, S = symbol("N"), symbol("S")
UNKNOWN_RANK = TensorType(ElementType.FLOAT32, None)


def model(*types: TensorType) -> Model:
    return model_of(lambda b, *xs: xs, *types)


@pytest.fixture
def signature() -> Signature:
    """Of a model with an image and a vector of as many elements as there are images."""
    return Signature(model(float32(N, 3), float32(N)).inputs)


def image(n: int = 2) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros((n, 3), np.float32)


def vector(n: int = 2) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros(n, np.float32)


def test_arrays_come_out_as_they_are_in_the_order_of_the_model(signature: Signature) -> None:
    x, y = image(), vector()
    arranged = signature.arrange({"x1": y, "x0": x})
    assert arranged[0] is x
    assert arranged[1] is y


def test_every_call_is_checked(signature: Signature) -> None:
    for n in (2, 2, 5, 0, 2):
        signature.arrange({"x0": image(n), "x1": vector(n)})
    for _ in range(2):
        with pytest.raises(InputError):
            signature.arrange({"x0": image(5), "x1": vector(2)})
    signature.arrange({"x0": image(5), "x1": vector(5)})


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a name is missing": (
        lambda: {"x0": image()},
        "input 'x1' is missing; the model takes x0: float32[N, 3], x1: float32[N]",
    ),
    "a name is unknown": (
        lambda: {"x0": image(), "x1": vector(), "x2": vector()},
        "there is no input 'x2'; the model takes x0: float32[N, 3], x1: float32[N]",
    ),
    "a name is wrong": (
        lambda: {"image": image(), "x1": vector()},
        "there is no input 'image'; the model takes x0: float32[N, 3], x1: float32[N]",
    ),
    "no names": (lambda: {}, "input 'x0' is missing"),
    "a list of arrays": (
        lambda: [image(), vector()],
        "the inputs are of type list, but must be arrays by name: x0: float32[N, 3]",
    ),
    "an array": (lambda: image(), "the inputs are of type ndarray, but must be arrays by name"),
    "nothing": (lambda: None, "the inputs are of type NoneType, but must be arrays by name"),
    "a text": (lambda: "x0", "the inputs are of type str, but must be arrays by name"),
    "a size": (
        lambda: {"x0": np.zeros((2, 4), np.float32), "x1": vector()},
        "input 'x0' has shape [2, 4], but the model takes float32[N, 3]",
    ),
    "the rank": (
        lambda: {"x0": np.zeros(3, np.float32), "x1": vector()},
        "input 'x0' has shape [3], but the model takes float32[N, 3]",
    ),
    "a scalar": (
        lambda: {"x0": np.float32(1), "x1": vector()},
        "input 'x0' has shape [], but the model takes float32[N, 3]",
    ),
    "sizes that must agree": (
        lambda: {"x0": image(2), "x1": vector(3)},
        "input 'x1' has shape [3], but the model takes float32[N] where {'N': 2}",
    ),
    "the element type": (
        lambda: {"x0": image().astype(np.float64), "x1": vector()},
        "input 'x0' is float64, but the model takes float32[N, 3]; pass array.astype('float32')",
    ),
    "integers": (
        lambda: {"x0": image().astype(np.int32), "x1": vector()},
        "input 'x0' is int32, but the model takes float32[N, 3]; pass array.astype('float32')",
    ),
    "numbers of another shape": (
        lambda: {"x0": image(), "x1": [[1.0, 2.0]]},
        "input 'x1' has shape [1, 2], but the model takes float32[N]",
    ),
    "lists of unequal length": (
        lambda: {"x0": [[1], [2, 3]], "x1": vector()},
        "input 'x0' cannot be made an array",
    ),
    "no array": (lambda: {"x0": None, "x1": vector()}, "input 'x0' is object, but the model takes"),
    "text": (lambda: {"x0": image(), "x1": "abc"}, "input 'x1' is <U3, but the model takes"),
    "objects": (
        lambda: {"x0": np.array([object()]), "x1": vector()},
        "input 'x0' is object, but the model takes",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused(signature: Signature, what: str) -> None:
    make, message = REFUSED[what]
    with pytest.raises(InputError) as caught:
        signature.arrange(make())
    assert message in str(caught.value)


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused_after_a_call_that_did(
    signature: Signature, what: str
) -> None:
    signature.arrange({"x0": image(), "x1": vector()})
    with pytest.raises(InputError):
        signature.arrange(REFUSED[what][0]())
    signature.arrange({"x0": image(), "x1": vector()})


class Wrapped:
    """Something that is an array by NumPy's protocol, as a framework's tensors are."""

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return np.ones((2, 3), np.float32)


def test_what_numpy_takes_for_an_array_is_one(signature: Signature) -> None:
    for x in (Wrapped(), np.ones((2, 3), np.float32).view(np.matrix)):
        (first, _) = signature.arrange({"x0": x, "x1": vector()})
        assert type(first) is np.ndarray
        np.testing.assert_array_equal(first, np.ones((2, 3), np.float32))


def test_derived_sizes_are_checked() -> None:
    signature = Signature(model(float32(2 * N + 1), float32(N), float32(N // 2)).inputs)
    arrays = {"x0": vector(11), "x1": vector(5), "x2": vector(2)}
    signature.arrange(arrays)
    with pytest.raises(InputError, match=r"'x0' has shape \[12\].* where \{'N': 5\}"):
        signature.arrange({**arrays, "x0": vector(12)})
    with pytest.raises(InputError, match=r"'x2' has shape \[3\].* where \{'N': 5\}"):
        signature.arrange({**arrays, "x2": vector(3)})


def test_what_is_unknown_may_be_anything() -> None:
    signature = Signature(model(float32(unknown(), unknown()), UNKNOWN_RANK).inputs)
    for a, b in ((image(), vector()), (image(0), np.float32(1)), (np.zeros((7, 9), "f4"), image())):
        signature.arrange({"x0": a, "x1": b})
    with pytest.raises(InputError, match=r"float32\[\?, \?\]$"):
        signature.arrange({"x0": vector(), "x1": vector()})


@pytest.mark.parametrize("element_type", sorted(ALL_TYPES, key=str))
def test_every_element_type_is_told_from_every_other(element_type: ElementType) -> None:
    signature = Signature(model(TensorType(element_type, (2,))).inputs)
    for other in ALL_TYPES:
        array = np.zeros(2, other.dtype)
        if other is element_type:
            assert signature.arrange({"x0": array})[0] is array
        else:
            with pytest.raises(InputError, match=f"'x0' is {other}, but .*astype.'{element_type}'"):
                signature.arrange({"x0": array})


@pytest.mark.parametrize(
    "given",
    [
        np.array([["a", "日本"]], object),
        np.array([["a", "日本"]]),
        np.array([["a"], ["日本"]]).T,
        np.array([["a", "日本"]], np.dtypes.StringDType()),
        [["a", "日本"]],
    ],
    ids=["objects", "fixed width", "another order", "variable width", "list"],
)
def test_strings_come_out_as_objects(given: object) -> None:
    signature = Signature(model(TensorType(ElementType.STRING, (1, 2))).inputs)
    (array,) = signature.arrange({"x0": given})
    assert array.dtype == np.dtype(object)
    assert array.flags.c_contiguous
    assert array.tolist() == [["a", "日本"]]
    assert all(type(text) is str for text in array.flat)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            np.array(["a", 1], object),
            r"an element of type int, .* string\[2\]; make all of them str",
        ),
        (np.array(["a", None], object), "an element of type NoneType"),
        (np.array([b"a", b"b"]), r"'x0' is \|S1, but the model takes string\[2\]; pass an array"),
        (np.array([1.0, 2.0]), "is float64, but"),
        (np.array(["a", "b", "c"]), r"has shape \[3\]"),
        ("a", r"has shape \[\]"),
    ],
)
def test_what_is_no_string_is_refused(given: object, reason: str) -> None:
    signature = Signature(model(TensorType(ElementType.STRING, (2,))).inputs)
    with pytest.raises(InputError, match=reason):
        signature.arrange({"x0": given})


def test_text_is_no_number() -> None:
    signature = Signature(model(float32(2)).inputs)
    for given in (np.array(["1", "2"]), np.array([1, 2], object)):
        with pytest.raises(InputError, match=r"but the model takes float32\[2\]"):
            signature.arrange({"x0": given})


def test_scalars_and_arrays_without_elements() -> None:
    signature = Signature(model(float32(), float32(0, 3)).inputs)
    signature.arrange({"x0": np.float32(1), "x1": image(0)})
    signature.arrange({"x0": np.array(1, ml_dtypes.bfloat16).astype(np.float32), "x1": image(0)})
    with pytest.raises(InputError, match=r"'x0' has shape \[1\], but the model takes float32\[\]"):
        signature.arrange({"x0": vector(1), "x1": image(0)})


def test_a_model_without_inputs_takes_none() -> None:
    signature = Signature(model().inputs)
    assert signature.arrange({}) == []
    with pytest.raises(InputError, match="there is no input 'x'; the model takes none"):
        signature.arrange({"x": vector()})


def test_inputs_in_order_get_their_names(signature: Signature) -> None:
    x, y = image(), vector()
    assert signature.named([x, y], {}) == {"x0": x, "x1": y}
    assert signature.named([x], {"x1": y}) == {"x0": x, "x1": y}
    with pytest.raises(InputError, match=r"the model takes 2 inputs, not 1: x0: float32\[N, 3\]"):
        signature.named([x], {})
    with pytest.raises(InputError, match="the model takes 2 inputs, not 3"):
        signature.named([x, y, y], {})


def test_a_message_calls_an_input_by_the_name_that_the_caller_knows() -> None:
    internal = Operand("internal", float32(2))
    made = Operand("y", float32(2))
    outer = Model("m", {"x": internal}, [Relu("r", (internal,), (made,))], {"y": made})
    with pytest.raises(InputError, match="input 'x' has shape"):
        Signature(outer.inputs).arrange({"x": vector(3)})


def test_inputs_that_nothing_reads_are_checked_too() -> None:
    def make(b: Builder, x: Operand, unused: Operand) -> Operand:
        return b.add(Add, x, x)

    signature = Signature(model_of(make, float32(2), float32(S)).inputs)
    with pytest.raises(InputError, match="'x1' is missing"):
        signature.arrange({"x0": vector()})
    with pytest.raises(InputError, match="'x1' has shape"):
        signature.arrange({"x0": vector(), "x1": image()})
