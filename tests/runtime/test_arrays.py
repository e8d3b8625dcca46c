"""Inputs as callers have them: other layouts, other libraries' tensors, plain numbers."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto
from tests.modelling import float32, model_of

import crosschip
from crosschip.ir import Builder, ElementType, InputError, TensorType
from crosschip.ir.types import ALL_TYPES, FLOATS, INTEGERS
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.arrays import as_array

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Subclass(np.ndarray[Any, Any]):
    """A subclass of NumPy's arrays."""


class WithArray:
    """A tensor that is an array by NumPy's protocol."""

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return X


class WithDLPack:
    """A tensor that other libraries can look into."""

    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return X.__dlpack_device__()


class Raising:
    """A tensor that is on a device, or needs a gradient."""

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise RuntimeError("Can't call numpy() on this\nfor a long reason")


class RaisingDLPack:
    """The same of a library without NumPy."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("is on an accelerator")

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def unaligned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same elements one byte off."""
    held = np.empty(array.nbytes + 1, np.uint8)
    held[1:] = np.frombuffer(array.tobytes(), np.uint8)
    elements: np.ndarray[Any, Any] = held[1:].view(array.dtype)
    return elements.reshape(array.shape)


def read_only() -> np.ndarray[Any, Any]:
    array = X.copy()
    array.flags.writeable = False
    return array


TAKEN: dict[str, Callable[[], Any]] = {
    "in Fortran's order": lambda: np.asfortranarray(X),
    "transposed": lambda: X.T.copy().T,
    "every other element": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "backwards": lambda: X[::-1].copy()[::-1],
    "byte-swapped": lambda: X.astype(">f4"),
    "byte-swapped and transposed": lambda: X.T.astype(">f4").T,
    "read-only": read_only,
    "unaligned": lambda: unaligned(X),
    "subclass": lambda: X.view(Subclass),
    "subclass, transposed": lambda: X.T.copy().view(Subclass).T,
    "matrix": lambda: X.view(np.matrix),
    "masked, with nothing masked": lambda: np.ma.masked_array(X, mask=False),
    "__array__": WithArray,
    "__dlpack__": WithDLPack,
    "buffer": lambda: X.data,
    "lists": lambda: X.tolist(),
    "lists of integers": lambda: X.astype(int).tolist(),
    "tuples": lambda: tuple(map(tuple, X.tolist())),
    "a list of arrays": lambda: list(X),
    "a list of ranges": lambda: [range(3), range(3, 6)],
}


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("what", TAKEN)
def test_what_is_taken_gives_the_same_on_every_device(device: str, what: str) -> None:
    model = model_of(lambda b, x: b.add(Add, x, np.float32(1)), float32(2, 3))
    with crosschip.compile(model, device, cache=False) as compiled:
        for outputs in (compiled.run({"x0": TAKEN[what]()})["y0"], compiled(TAKEN[what]())):
            np.testing.assert_array_equal(outputs, X + 1, strict=True)


@pytest.mark.parametrize("what", TAKEN)
def test_what_is_taken_becomes_a_plain_array(what: str) -> None:
    array = as_array(TAKEN[what](), float32(2, 3))
    assert type(array) is np.ndarray
    assert array.dtype is np.dtype(np.float32)
    assert array.flags.c_contiguous
    assert array.flags.aligned
    np.testing.assert_array_equal(array, X)


@pytest.mark.parametrize("what", ["read-only", "subclass", "__array__", "__dlpack__", "buffer"])
def test_what_lies_right_in_memory_is_not_copied(what: str) -> None:
    made = TAKEN[what]()
    array = as_array(made, float32(2, 3))
    assert np.shares_memory(array, made if isinstance(made, np.ndarray) else X)


def test_what_the_caller_has_is_not_written_to() -> None:
    model = model_of(lambda b, x: b.add(Add, x, np.float32(1)), float32(2, 3))
    swapped = X.astype(">f4")
    with crosschip.compile(model, "reference", cache=False) as compiled:
        compiled(swapped)
    assert swapped.tolist() == X.tolist()


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("alike", [np.longlong, np.intc, ">i8", "<i8"])
def test_types_that_are_alike(device: str, alike: Any) -> None:
    type_ = ElementType.INT32 if alike is np.intc else ElementType.INT64
    model = model_of(lambda b, x: b.add(Add, x, x), TensorType(type_, (3,)))
    devices = dict.fromkeys([device, "reference"])
    with crosschip.compile(model, list(devices), cache=False) as compiled:
        found = compiled.run({"x0": np.array([1, -2, 2**30 - 1], alike)})["y0"]
    assert found.tolist() == [2, -4, 2**31 - 2]
    assert as_array(np.zeros(3, alike), TensorType(type_, (3,))).dtype is type_.dtype


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "wider": (lambda: X.astype(np.float64), r"is float64, .*; pass array.astype\('float32'\)"),
    "integers": (lambda: X.astype(np.int32), "is int32, but the model takes"),
    "a scalar of NumPy's": (lambda: np.float64(1), "is float64, but"),
    "__array__ raises": (Raising, r"cannot be made an array: Can't call numpy\(\) on this \(Raisi"),
    "__dlpack__ raises": (RaisingDLPack, "cannot be made an array: is on an accelerator"),
    "masked": (
        lambda: np.ma.masked_array(X, mask=X > 3),
        r"has masked elements; pass array\.filled",
    ),
    "text in a list": (lambda: [["a", "b"]], "is <U1, but the model takes"),
    "complex numbers": (lambda: [[1j]], "is complex128, but"),
    "bytes": (lambda: b"abc", r"is \|S3, but"),
    "a dictionary": (lambda: {"x": 1}, "is object, but"),
    "beyond any integer": (lambda: [2**70], "is object, but"),
    "too large": (lambda: [1.0, 1e39], r"holds 1e\+39, but the model takes float32"),
    "an integer that is rounded": (lambda: [2**24 + 1], "holds 16777217, but"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_fit_is_refused(what: str) -> None:
    make, reason = REFUSED[what]
    with pytest.raises(InputError, match=reason):
        as_array(make(), float32(2, 3))


def test_what_raised_is_the_cause() -> None:
    model = model_of(lambda b, x: b.add(Add, x, x), float32(2, 3))
    with (
        crosschip.compile(model, "reference", cache=False) as compiled,
        pytest.raises(InputError, match=r"^input 'x0' cannot be made an array") as caught,
    ):
        compiled(Raising())
    assert isinstance(caught.value.__cause__, RuntimeError)


NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**64), 2**65),
    st.sampled_from([v for n in (7, 8, 15, 16, 31, 32, 63, 64) for v in (2**n, -(2**n), 2**n - 1)]),
    st.floats(width=64),
    st.integers(-300, 300).map(float),
)


@given(st.sampled_from(sorted(INTEGERS | {ElementType.BOOL}, key=str)), NUMBERS)
def test_integers_hold_a_number_exactly_or_refuse_it(type_: ElementType, number: Any) -> None:
    if type_ is ElementType.BOOL:
        low, high = 0, 1
    else:
        low, high = np.iinfo(type_.dtype).min, np.iinfo(type_.dtype).max
    fits = number == number and abs(number) < 2**66 and int(number) == number
    fits = fits and low <= number <= high
    # NumPy makes floats of what no integer type of its own holds.
    if fits:
        assert as_array([number], TensorType(type_, (1,))).tolist() == [number]
    else:
        with pytest.raises(InputError):
            as_array([number], TensorType(type_, (1,)))


@given(st.sampled_from(sorted(FLOATS, key=str)), st.floats(width=64))
def test_floats_round_a_number_to_the_nearest_or_refuse_it(type_: ElementType, number: Any) -> None:
    with np.errstate(all="ignore"):
        nearest = np.array([number]).astype(type_.dtype)
    if np.isfinite(number) and not np.isfinite(nearest.astype(np.float64)[0]):
        with pytest.raises(InputError, match="holds"):
            as_array([number], TensorType(type_, (1,)))
    else:
        found = as_array([number], TensorType(type_, (1,)))
        np.testing.assert_array_equal(found.view(np.uint8), nearest.view(np.uint8))


@pytest.mark.parametrize("type_", sorted(ALL_TYPES, key=str))
def test_every_type_takes_a_plain_one(type_: ElementType) -> None:
    (found,) = as_array((1,), TensorType(type_, (1,))).astype(np.float64)
    assert found == 1
    assert as_array([], TensorType(type_, (0,))).dtype is type_.dtype


@pytest.mark.parametrize(
    ("type_", "number"),
    [
        (ElementType.INT4, 8),
        (ElementType.UINT4, -1),
        (ElementType.UINT2, 4),
        (ElementType.FLOAT8E4M3FN, 1000.0),
        (ElementType.FLOAT8E5M2, 1e9),
        (ElementType.FLOAT8E8M0, -1.0),
    ],
)
def test_narrow_types_refuse_what_they_cannot_hold(type_: ElementType, number: float) -> None:
    with pytest.raises(InputError, match=f"holds {number}"):
        as_array([number], TensorType(type_, (1,)))


class NarrowTensor:
    """A tensor like PyTorch's, in a type that NumPy does not know; onnxruntime holds it."""

    def __init__(self, array: np.ndarray[Any, Any], onnx_type: int) -> None:
        import onnxruntime

        bits = array.view(f"u{array.itemsize}")
        make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        self._held = make(bits, onnx_type)._ortvalue

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def __dlpack__(self) -> Any:
        return self._held.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._held.__dlpack_device__()


@pytest.mark.parametrize("device", ["reference", "onnxruntime"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()], ids=str)
def test_tensors_of_bfloat16(device: str, shape: tuple[int, ...]) -> None:
    type_ = TensorType(ElementType.BFLOAT16, shape)
    numbers = np.random.default_rng(1).normal(size=shape).astype(type_.element_type.dtype)
    tensor = NarrowTensor(numbers, TensorProto.BFLOAT16)
    model = model_of(lambda b, x: b.add(Add, x, x), type_)
    devices = list(dict.fromkeys([device, "reference"]))
    with crosschip.compile(model, devices, cache=False) as compiled:
        np.testing.assert_array_equal(compiled(tensor), numbers + numbers, strict=True)


@pytest.mark.parametrize("engine", ["onnxruntime"])
def test_what_a_view_looks_into_stays(engine: str) -> None:
    numbers = np.arange(6, dtype=np.float32).astype(ElementType.BFLOAT16.dtype)
    array = as_array(
        NarrowTensor(numbers, TensorProto.BFLOAT16), TensorType(ElementType.BFLOAT16, (6,))
    )
    gc.collect()
    assert array.tolist() == numbers.tolist()


@pytest.mark.parametrize("engine", ["onnxruntime"])
def test_a_tensor_of_another_narrow_type_is_named(engine: str) -> None:
    tensor = NarrowTensor(np.zeros(2, ElementType.BFLOAT16.dtype), TensorProto.BFLOAT16)
    with pytest.raises(InputError, match=r"is bfloat16, .*; pass array.astype\('float32'\)"):
        as_array(tensor, float32(2))


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    narrow = torch.from_numpy(X.T.copy()).T.bfloat16()
    expected = X.astype(ElementType.BFLOAT16.dtype)
    found = as_array(narrow, TensorType(ElementType.BFLOAT16, (2, 3)))
    np.testing.assert_array_equal(found, expected, strict=True)
    for tensor in (torch.from_numpy(X), torch.from_numpy(X.T.copy()).T):
        np.testing.assert_array_equal(as_array(tensor, float32(2, 3)), X)
    with pytest.raises(InputError, match=r"requires grad.*\(Tensor\)"):
        as_array(torch.from_numpy(X.copy()).requires_grad_(), float32(2, 3))


def test_narrow_arrays_of_ml_dtypes() -> None:
    type_ = TensorType(ElementType.BFLOAT16, (2, 3))
    transposed = X.T.astype(ml_dtypes.bfloat16).T
    np.testing.assert_array_equal(as_array(transposed, type_), X.astype(ml_dtypes.bfloat16))


def test_inputs_by_keyword() -> None:
    model = model_of(lambda b, x, y: b.add(Add, x, y), float32(3), float32(3))
    ones, twos = np.ones(3, np.float32), np.full(3, 2, np.float32)
    with crosschip.compile(model, "reference", cache=False) as compiled:
        for found in (compiled(x1=twos, x0=ones), compiled(ones, x1=twos), compiled(ones, twos)):
            np.testing.assert_array_equal(found, [3, 3, 3])
        wrongs: list[tuple[Callable[[], object], str]] = [
            (lambda: compiled(ones, x0=twos), "input 'x0' is given twice; the model takes x0"),
            (lambda: compiled(ones, y=twos), "there is no input 'y'"),
            (lambda: compiled(x0=ones), "input 'x1' is missing"),
            (lambda: compiled(ones), "takes 2 inputs, not 1"),
            (lambda: compiled(ones, twos, x1=twos), "takes 2 inputs, not 3"),
        ]
        for wrong, reason in wrongs:
            with pytest.raises(InputError, match=reason):
                wrong()


def test_an_input_may_be_called_self() -> None:
    b = Builder("selfish")
    b.output("y", b.add(Add, b.input("self", float32(1)), np.float32(1)))
    with crosschip.compile(b.build(), "reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled(self=[1.0]), [2.0])
