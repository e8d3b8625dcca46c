"""Operators that move elements about, make them, or change their type, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import crosschip

RNG = np.random.default_rng(4)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)

Agree = Callable[..., None]


@pytest.mark.parametrize(
    "shape", [[6, 20], [0, -1], [-1], [0, 0, 20], [2, 3, 4, 5], [-1, 0, 4, 5], [1, 2, -1, 2]]
)
def test_reshape(agree: Agree, shape: list[int]) -> None:
    agree("Reshape", X, shape, opsets=[7, 13, 14, 19, 21, 23, 26])
    agree("Reshape", X, np.array(shape), opsets=[7, 26])
    if 0 not in shape:
        agree("Reshape", X, shape, opsets=[14, 26], allowzero=1)


@pytest.mark.parametrize("shape", [[0, 4], [2, 0, 5]])
def test_reshape_without_elements(agree: Agree, shape: list[int]) -> None:
    agree("Reshape", X[:, :0], shape, opsets=[14, 26], allowzero=1)
    agree("Reshape", X[:, :0], np.array(shape), opsets=[14, 26], allowzero=1)


def test_reshape_to_a_scalar(agree: Agree) -> None:
    agree("Reshape", X[:1, :1, :1, :1], np.zeros(0, np.int64), opsets=[7, 26])


def test_transpose(agree: Agree) -> None:
    agree("Transpose", X, opsets=[7, 13, 21, 26])
    agree("Transpose", X, opsets=[7, 13, 21, 26], perm=[0, 2, 3, 1])


def test_squeeze(agree: Agree) -> None:
    ones = X[:1, :, :1]
    agree("Squeeze", ones, opsets=[7, 11], axes=[0, 2])
    agree("Squeeze", ones, opsets=[11], axes=[-2])
    agree("Squeeze", ones, [0, -2], opsets=[13, 21, 26])
    agree("Squeeze", ones, np.array([0]), opsets=[13, 26])
    agree("Squeeze", ones, opsets=[7, 11, 13, 26])


def test_unsqueeze(agree: Agree) -> None:
    agree("Unsqueeze", X, opsets=[7, 11], axes=[0, 3])
    agree("Unsqueeze", X, opsets=[11], axes=[-1, 1])
    agree("Unsqueeze", X, [4, 0, -2], opsets=[13, 21, 26])
    agree("Unsqueeze", X, np.array([1]), opsets=[13, 26])


@pytest.mark.parametrize("axis", range(5))
def test_flatten(agree: Agree, axis: int) -> None:
    agree("Flatten", X, opsets=[7, 9, 11, 13, 26], axis=axis)
    agree("Flatten", X, opsets=[11, 26], axis=axis - 4)


def test_flatten_of_few_axes(agree: Agree) -> None:
    agree("Flatten", X, opsets=[7, 13])
    agree("Flatten", X[0, 0], opsets=[7, 13])
    agree("Flatten", X[0, 0, 0], opsets=[7, 13])
    agree("Flatten", np.array(3, np.float32), opsets=[13], axis=0)


def test_expand(agree: Agree) -> None:
    agree("Expand", X[:, :1], [3, 1, 1], opsets=[8, 13, 26])
    agree("Expand", X[0, 0], np.array([2, 1, 4, 5]), opsets=[8, 26])


def test_shape(agree: Agree) -> None:
    agree("Shape", X, opsets=[7, 13, 15, 26])
    for start, end in [(1, 3), (-2, 4), (0, -1), (-9, 9), (3, 1)]:
        agree("Shape", X, opsets=[15, 26], start=start, end=end)
    agree("Shape", X, opsets=[15], start=2)


def test_slice_by_attributes(agree: Agree) -> None:
    agree("Slice", X, opsets=[7, 9], starts=[0, 1], ends=[1, 9])
    agree("Slice", X, opsets=[7, 9], starts=[-3, 1], ends=[-1, 2**63 - 1], axes=[3, 1])


def test_slice_by_inputs(agree: Agree) -> None:
    agree("Slice", X, [0, 1], [1, 9], opsets=[10, 11, 13, 26])
    agree("Slice", X, [-3, 1], [-1, 2**63 - 1], [3, 1], opsets=[10, 26])
    agree("Slice", X, [1, -1], [9, -(2**63)], [2, -1], [2, -2], opsets=[10, 26])
    agree("Slice", X, [4], [-6], [3], [-1], opsets=[10, 26])
    agree("Slice", X, np.array([1], np.int32), np.array([3], np.int32), np.array([2], np.int32),
          opsets=[10, 26])  # fmt: skip


def test_concat(agree: Agree) -> None:
    agree("Concat", X, X[:, :1], X, opsets=[7, 11, 13, 26], axis=1)
    agree("Concat", X, X, opsets=[11, 26], axis=-1)
    agree("Concat", X, opsets=[7, 26], axis=0)


def test_split(agree: Agree) -> None:
    agree("Split", X, opsets=[7, 11], outputs=2, axis=2, split=[1, 3])
    agree("Split", X, [1, 3], opsets=[13, 18, 26], outputs=2, axis=-2)
    agree("Split", X, np.array([2, 2]), opsets=[13, 26], outputs=2, axis=2)
    agree("Split", X, opsets=[7, 11, 13], outputs=3, axis=1, dynamic=False)
    agree("Split", X, opsets=[7, 13], outputs=2, dynamic=False)
    for count in (1, 2, 3, 5):
        agree("Split", X, opsets=[18, 26], outputs=count, axis=3, num_outputs=count, dynamic=False)


def test_gather(agree: Agree) -> None:
    agree("Gather", X, [1, 0], opsets=[7, 11, 13, 26])
    agree("Gather", X, np.int64(2), opsets=[7, 26], axis=1)
    agree("Gather", X, np.array([[0, 3], [-1, 2]]), opsets=[11, 26], axis=-2)


def test_identity_and_dropout(agree: Agree) -> None:
    agree("Identity", X, opsets=[7, 13, 14, 16, 26])
    agree("Dropout", X, opsets=[7, 10, 12, 13, 22, 26])
    agree("Dropout", X, opsets=[7, 10], ratio=0.3)
    agree("Dropout", X, np.float32(0.3), np.bool_(False), opsets=[12, 26], seed=1)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
)
def test_cast(agree: Agree, dtype: str) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    agree("Cast", X * 9, opsets=[7, 9, 13, 19, 21, 26], to=to)
    agree("Cast", [1.5, -2.5, 0.0], opsets=[7, 26], to=to)
    agree("Cast", X > 0, opsets=[7, 26], to=to)


def test_constant(agree: Agree) -> None:
    value = numpy_helper.from_array(X)
    agree("Constant", opsets=[7, 9, 11, 12, 13, 19, 26], value=value)
    agree("Constant", opsets=[12, 26], value_float=1.5)
    agree("Constant", opsets=[12, 26], value_floats=[1.5, 2.5])
    agree("Constant", opsets=[12, 26], value_int=7)
    agree("Constant", opsets=[12, 26], value_ints=[7, 8])


def test_constant_of_shape(agree: Agree) -> None:
    agree("ConstantOfShape", [2, 3], opsets=[9, 20, 26])
    agree("ConstantOfShape", np.array([2, 3]), opsets=[9, 26])
    value = helper.make_tensor("value", TensorProto.INT64, [1], [7])
    agree("ConstantOfShape", [4], opsets=[9, 26], value=value)


def test_what_squeeze_leaves_is_known_once_sizes_are_fixed() -> None:
    graph = "g (float[N, 1, M] x) => (float y) { s = Squeeze(x)  y = Sigmoid(s) }"
    text = f'<ir_version: 8, opset_import: ["" : 17]> {graph}'
    model = crosschip.load(onnx.parser.parse_model(text).SerializeToString())
    x = np.ones((3, 1, 1), np.float32)
    for shapes, known in ((None, None), ({"x": x.shape}, (3,))):
        with crosschip.compile(model, ["reference"], shapes=shapes, cache=False) as compiled:
            assert compiled.placement.model.outputs["y"].type.shape == known
            assert [o.type for o in compiled.placement.model.operations][-1] == "SIGMOID"
            np.testing.assert_allclose(compiled.run({"x": x})["y"], 1 / (1 + np.exp(-x[:, 0, 0])))
