"""Convolutions along one axis, given as images of one row: OpenVINO computes 1-D convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tests.modelling import float32

import crosschip
from crosschip.ir import Array, Builder, symbol
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Squeeze, Unsqueeze


@st.composite
def windows(draw: st.DrawFn) -> dict[str, Any]:
    """Return the attributes of a convolution along one axis."""
    auto_pad = draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    apart = 1 if auto_pad.startswith("SAME") else draw(st.integers(1, 2))
    made = {"strides": [draw(st.integers(1, 3))], "dilations": [apart], "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        made["pads"] = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    return made


@given(
    window=windows(),
    group=st.integers(1, 3),
    within=st.integers(1, 2),
    width=st.integers(1, 4),
    bias=st.booleans(),
    size=st.integers(1, 12),
    is_open=st.booleans(),
)
def test_convolutions_of_lines(
    window: dict[str, Any],
    group: int,
    within: int,
    width: int,
    bias: bool,
    size: int,
    is_open: bool,
) -> None:
    reach = (width - 1) * window["dilations"][0] + 1
    assume(window["auto_pad"].startswith("SAME") or size + sum(window.get("pads", ())) >= reach)
    random = np.random.default_rng(size)
    out = 2 * group
    filter = random.standard_normal((out, within, width)).astype(np.float32)
    constants = {"w": filter} | ({"b": np.arange(out, dtype=np.float32)} if bias else {})
    nodes = [
        helper.make_node("Conv", ["x", *constants], ["c"], group=group, **window),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "w2"], ["y"]),
    ]
    constants["w2"] = random.standard_normal((3, out, 1)).astype(np.float32)
    declared: list[str | int | None] = ["n", group * within, "s" if is_open else size]
    graph = helper.make_graph(
        nodes,
        "lines",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, "t"])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    given = {"x": random.standard_normal((2, group * within, size)).astype(np.float32)}
    with crosschip.compile(crosschip.load(model), ["openvino"], cache=False) as compiled:
        made = compiled.run(given)["y"]
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, given)
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [(2,), (1, 2), (0, 2)])
def test_lines_that_are_given_several_axes(axes: tuple[int, ...]) -> None:
    given = np.arange(8, dtype=np.float32).reshape((2, 4) if len(axes) == 2 else (1, 2, 4))
    images = np.expand_dims(given, axes)
    b = Builder()
    x = b.input("x", float32(symbol("n"), *given.shape[1:-1], symbol("s")))
    filter = np.ones((1, images.shape[1], 1, 2), np.float32)
    b.output("y", b.add(Conv2D, b.add(Unsqueeze, x, axes), filter))
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        made = compiled.run({"x": given})["y"]
    lines = images.sum(1, keepdims=True)
    np.testing.assert_array_equal(made, lines[..., :-1] + lines[..., 1:])


@pytest.mark.parametrize("axes", [(2,), (1,)])
def test_an_input_with_an_axis_and_without_is_the_input(axes: tuple[int, ...]) -> None:
    """The removed axis may be another one of size 1."""
    b = Builder()
    x = b.input("x", float32(3, 1, symbol("s")))
    b.output("y", b.add(Squeeze, b.add(Unsqueeze, x, (2,)), axes))
    given: Array = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    with crosschip.compile(b.build(), ["openvino"], cache=False) as compiled:
        made = compiled.run({"x": given})["y"]
    np.testing.assert_array_equal(made, given)
