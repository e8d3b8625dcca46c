"""Conversion of convolutions of height 1 to one-dimensional ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.modelling import float32

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, Model
from crosschip.ops import Operator
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.passes import simplify

X = np.random.default_rng(0).normal(size=(2, 4, 9)).astype(np.float32)


def spelled_out(operator: type[Operator], *kernel: int, **settings: Any) -> Model:
    b = Builder()
    filter = np.random.default_rng(1).normal(size=(4, 2, *kernel)).astype(np.float32)
    image = b.add(Unsqueeze, b.input("x", float32(2, 4, 9)), (2,))
    made = b.add(operator, image, filter, group=2, **settings)
    b.output("y", b.add(Squeeze, made, (-2,)))
    return b.build()


def result(model: Model) -> Array:
    (array,) = ReferenceDevice().compile(model, Options()).run([X])
    return array


@pytest.mark.parametrize(
    ("operator", "settings", "becomes"),
    [
        (Conv2D, {"pads": (0, 0, 1, 2), "strides": (1, 2)}, "CONV_1D"),
        (Conv2D, {"auto_pad": 1, "dilations": (1, 2), "fuse_code": 1}, "CONV_1D"),
        (Conv2DTranspose, {"strides": (1, 2), "output_padding": (0, 1)}, "CONV_1D_TRANSPOSE"),
        (Conv2DTranspose, {"strides": (1, 2), "output_shape": (1, 18)}, "CONV_1D_TRANSPOSE"),
    ],
)
def test_images_of_height_1(
    operator: type[Operator], settings: dict[str, Any], becomes: str
) -> None:
    model = spelled_out(operator, 1, 3, **settings)
    simple = simplify(model)
    assert [operation.type for operation in simple.operations] == [becomes]
    np.testing.assert_allclose(result(simple), result(model), rtol=1e-5, atol=1e-6)


def test_padded_heights_stay() -> None:
    model = spelled_out(Conv2D, 3, 3, pads=(1, 1, 0, 0))
    assert [operation.type for operation in simplify(model).operations] == [
        "UNSQUEEZE",
        "CONV_2D",
        "SQUEEZE",
    ]
