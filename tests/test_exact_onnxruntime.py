"""The oracle of products of bytes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.exact_onnxruntime import exact_session


@pytest.mark.parametrize("is_constant", [False, True])
@pytest.mark.parametrize("zero_point", [None, -7])
def test_products_are_exact(is_constant: bool, zero_point: int | None) -> None:
    x, y = np.full((2, 64), 255, np.uint8), np.full((64, 3), 127, np.int8)
    y[:, 1] = -128
    declared = [helper.make_tensor_value_info("x", TensorProto.UINT8, x.shape)]
    constants = []
    if is_constant:
        constants.append(helper.make_tensor("y", TensorProto.INT8, y.shape, y.tobytes(), raw=True))
    else:
        declared.append(helper.make_tensor_value_info("y", TensorProto.INT8, y.shape))
    names = ["x", "y"]
    if zero_point is not None:
        constants.append(helper.make_tensor("z", TensorProto.INT8, [], [zero_point]))
        names += ["", "z"]
    output = helper.make_tensor_value_info("o", TensorProto.INT32, [2, 3])
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", names, ["o"])], "g", declared, [output], constants
    )
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 10)])
    feed = {"x": x} if is_constant else {"x": x, "y": y}
    (result,) = exact_session(model).run(None, feed)
    expected = x.astype(np.int64) @ (y.astype(np.int64) - (zero_point or 0))
    np.testing.assert_array_equal(result, expected)
