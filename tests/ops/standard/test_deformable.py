"""DEFORMABLE_CONV_2D against ONNX's evaluator, and against the plain convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import crosschip
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.deformable import DeformableConv2D

SETTINGS: list[dict[str, Any]] = [
    {},
    {"strides": (2, 1), "pads": (1, 0, 2, 1)},
    {"dilations": (1, 2), "pads": (1, 1, 1, 1)},
]


def computed(kind: type[Operator], arrays: list[Array], **settings: Any) -> Array:
    b = Builder()
    inputs = [
        b.input(f"x{i}", TensorType(ElementType.FLOAT32, a.shape)) for i, a in enumerate(arrays)
    ]
    b.output("y", b.add(kind, *inputs, **settings))
    model = b.build()
    named = dict(zip(model.inputs, arrays, strict=True))
    with crosschip.compile(model, "reference", cache=False) as compiled:
        return np.asarray(compiled.run(named)["y"])


def drawn(settings: dict[str, Any]) -> tuple[Array, Array, Array, Array]:
    random = np.random.default_rng(7)
    image = random.standard_normal((2, 3, 6, 7)).astype(np.float32)
    filters = random.standard_normal((4, 3, 2, 3)).astype(np.float32)
    shape = computed(Conv2D, [image, filters], **settings).shape[2:]
    offset = random.normal(scale=1.5, size=(2, 12, *shape)).astype(np.float32)
    mask = random.uniform(size=(2, 6, *shape)).astype(np.float32)
    return image, offset, mask, filters


@pytest.mark.parametrize("settings", SETTINGS)
def test_without_displacement_it_is_a_convolution(settings: dict[str, Any]) -> None:
    image, offset, mask, filters = drawn(settings)
    expected = computed(Conv2D, [image, filters], **settings)
    still = [image, np.zeros_like(offset), np.ones_like(mask), filters]
    result = computed(DeformableConv2D, still, **settings)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", SETTINGS)
def test_displaced_and_masked_it_is_as_onnx_computes_it(settings: dict[str, Any]) -> None:
    image, offset, mask, filters = drawn(settings)
    top, bottom, left, right = settings.get("pads", (0, 0, 0, 0))
    node = helper.make_node(
        "DeformConv",
        ["x", "w", "offset", "", "mask"],
        ["y"],
        kernel_shape=[2, 3],
        pads=[top, left, bottom, right],
        strides=list(settings.get("strides", (1, 1))),
        dilations=list(settings.get("dilations", (1, 1))),
    )
    names = {"x": image, "w": filters, "offset": offset, "mask": mask}
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in names.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "deformed", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    (expected,) = np.asarray(ReferenceEvaluator(model).run(None, names))
    result = computed(DeformableConv2D, [image, offset, mask, filters], **settings)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
