"""Cases of operators on images: convolutions, pooling, resampling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from tests.importers.paddle.case import Case, Item, normal, unary
from tests.importers.paddle.formulas import convolved, picked, pooled, resampled, transposed
from tests.importers.paddle.writers import Double, Floats, Longs

from crosschip.ir import Array

IMAGE = normal(1, 2, 4, 7, 9)
FILTER = normal(2, 6, 4, 3, 3)
GROUPED = normal(3, 6, 2, 3, 3)
DEPTHWISE = normal(4, 4, 1, 3, 3)
UPWARD = normal(5, 4, 3, 3, 3)


def convolution(
    type: str,
    weights: Array,
    expected: Array,
    size: Sequence[int] | None = None,
    **attributes: Any,
) -> Case:
    """A convolution; `size` is the output size of a transposed one, empty for the usual one."""
    common = {
        "strides": [1, 1],
        "paddings": [0, 0],
        "dilations": [1, 1],
        "groups": 1,
        "data_format": "NCHW",
        "padding_algorithm": "EXPLICIT",
    }
    written = common | attributes
    arguments: list[Item] = [] if size is None else [size]
    return Case(
        inputs={"x": IMAGE},
        parameters={"w": weights},
        paddle2=(
            type,
            {"Input": "x", "Filter": "w"},
            "Output",
            written if size is None else written | {"output_size": size},
        ),
        paddle3=(type, ["x", "w", *arguments], written),
        expected=[expected],
    )


CONVOLUTIONS = {
    "conv2d": convolution(
        "conv2d",
        FILTER,
        convolved(IMAGE, FILTER, (1, 1, 2, 2), (2, 1), (1, 2)),
        paddings=[1, 2],
        strides=[2, 1],
        dilations=[1, 2],
    ),
    "conv2d, four paddings": convolution(
        "conv2d", FILTER, convolved(IMAGE, FILTER, (1, 0, 2, 1)), paddings=[1, 0, 2, 1]
    ),
    "conv2d, groups": convolution(
        "conv2d", GROUPED, convolved(IMAGE, GROUPED, (0, 0, 0, 0), groups=2), groups=2
    ),
    "conv2d, same": convolution(
        "conv2d",
        FILTER,
        convolved(IMAGE, FILTER, (1, 1, 1, 1), (2, 2)),
        strides=[2, 2],
        dilations=[2, 2],
        padding_algorithm="SAME",
    ),
    "conv2d, valid": convolution(
        "conv2d",
        FILTER,
        convolved(IMAGE, FILTER, (0, 0, 0, 0)),
        paddings=[1, 1],
        padding_algorithm="VALID",
    ),
    "depthwise_conv2d": convolution(
        "depthwise_conv2d",
        DEPTHWISE,
        convolved(IMAGE, DEPTHWISE, (1, 1, 1, 1), groups=4),
        paddings=[1, 1],
        groups=4,
    ),
    "conv2d_transpose": convolution(
        "conv2d_transpose",
        UPWARD,
        transposed(IMAGE, UPWARD, 1, 2),
        size=[],
        paddings=[1, 1],
        strides=[2, 2],
        output_padding=[],
    ),
    "conv2d_transpose, valid": convolution(
        "conv2d_transpose",
        UPWARD,
        transposed(IMAGE, UPWARD, 0, 2),
        size=[],
        paddings=[1, 1],
        strides=[2, 2],
        output_padding=[],
        padding_algorithm="VALID",
    ),
    "conv2d_transpose, output_padding": convolution(
        "conv2d_transpose",
        UPWARD,
        transposed(IMAGE, UPWARD, 0, 2, larger=1),
        size=[],
        strides=[2, 2],
        output_padding=[1, 1],
    ),
    "conv2d_transpose, output_size": convolution(
        "conv2d_transpose",
        UPWARD,
        transposed(IMAGE, UPWARD, 0, 2, larger=1),
        size=[16, 20],
        strides=[2, 2],
        output_padding=[],
    ),
    "depthwise_conv2d_transpose": convolution(
        "depthwise_conv2d_transpose",
        DEPTHWISE,
        transposed(IMAGE, DEPTHWISE, 1, 2, groups=4),
        size=[],
        paddings=[1, 1],
        strides=[2, 2],
        groups=4,
        output_padding=[],
    ),
}


def pooling(kind: str, expected: Array, size: Sequence[int] = (3, 2), **attributes: object) -> Case:
    """A pooling of windows of a size, two pixels apart."""
    common = {
        "strides": [2, 2],
        "paddings": [0, 0],
        "ceil_mode": False,
        "exclusive": True,
        "data_format": "NCHW",
        "pooling_type": kind,
        "global_pooling": False,
        "adaptive": False,
        "padding_algorithm": "EXPLICIT",
    }
    written: dict[str, Any] = common | attributes
    return unary(
        "pool2d",
        "pool2d",
        lambda x: expected,
        written | {"ksize": list(size)},
        written | {name: Longs(written[name]) for name in ("strides", "paddings")},
        x=IMAGE,
        arguments=[list(size)],
    )


def mean(pixels: Array) -> Array:
    return np.asarray(pixels.mean((2, 3)))


def total(pixels: Array) -> Array:
    return np.asarray(pixels.sum((2, 3)))


def maximum(pixels: Array) -> Array:
    return np.asarray(pixels.max((2, 3)))


WINDOW = ((3, 2), (2, 2))
POOLING = {
    "average": pooling("avg", pooled(IMAGE, mean, *WINDOW, (1, 1, 1, 1)), paddings=[1, 1]),
    "average, padding included": pooling(
        "avg",
        pooled(IMAGE, total, *WINDOW, (1, 1, 1, 1)) / 6,
        paddings=[1, 1],
        exclusive=False,
    ),
    "average, rounded up": pooling(
        "avg", pooled(IMAGE, mean, *WINDOW, (0, 0, 0, 0), ceil=True), ceil_mode=True
    ),
    "average, same": pooling(
        "avg", pooled(IMAGE, mean, *WINDOW, (1, 1, 0, 1)), padding_algorithm="SAME"
    ),
    "maximum": pooling("max", pooled(IMAGE, maximum, *WINDOW, (1, 0, 0, 1)), paddings=[1, 0, 0, 1]),
    "average of all": pooling("avg", mean(IMAGE)[..., None, None], global_pooling=True),
    "maximum of all": pooling("max", maximum(IMAGE)[..., None, None], global_pooling=True),
    "average, adaptive": pooling(
        "avg", IMAGE.reshape(2, 4, 7, 3, 3).mean(4), size=(7, 3), adaptive=True
    ),
}


def resampling(kind: str, expected: Callable[[Array], Array], **attributes: object) -> Case:
    """A resampling by scales, or to `out_h` and `out_w` if they are given."""
    common: Mapping[str, object] = {
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
        "scale": Floats(),
        "align_corners": False,
        "align_mode": 0,
    }
    written: dict[str, Any] = {**common, **attributes, "interp_method": kind}
    return unary(
        f"{kind}_interp_v2",
        f"{kind}_interp",
        expected,
        written | {"data_layout": "NCHW"},
        written | {"data_format": "NCHW", "scale": [Double(s) for s in written["scale"]]},
        x=IMAGE,
        arguments=[None, None, None],
    )


RESAMPLING = {
    "nearest": resampling("nearest", lambda x: picked(x, (14, 27)), scale=Floats([2.0, 3.0])),
    "nearest, to a size": resampling("nearest", lambda x: picked(x, (5, 13)), out_h=5, out_w=13),
    "bilinear": resampling(
        "bilinear",
        lambda x: resampled(x, (5, 13), lambda to, old, new: (to + 0.5) * old / new - 0.5),
        out_h=5,
        out_w=13,
    ),
    "bilinear, asymmetric": resampling(
        "bilinear",
        lambda x: resampled(x, (14, 18), lambda to, old, new: to * old / new),
        scale=Floats([2.0, 2.0]),
        align_mode=1,
    ),
    "bilinear, aligned corners": resampling(
        "bilinear",
        lambda x: resampled(x, (5, 13), lambda to, old, new: to * (old - 1) / (new - 1)),
        out_h=5,
        out_w=13,
        align_corners=True,
    ),
}

CASES = CONVOLUTIONS | POOLING | RESAMPLING
