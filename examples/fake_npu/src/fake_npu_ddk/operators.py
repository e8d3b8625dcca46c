"""The chip's operators, and the settings that they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum


class Operator(IntEnum):
    """What the chip computes. Tensors are [N, H, W, C] where an operator speaks of images."""

    CONV_2D = 1
    """Image, filters [kernel_h, kernel_w, C_in, C_out], and an INT32 bias [C_out] or, of FLOAT16
    images, a FLOAT16 one."""
    DEPTHWISE_CONV_2D = 2
    """Image, filters [kernel_h, kernel_w, C], and a bias [C]."""
    FULLY_CONNECTED = 3
    """Rows [N, C_in], weights [C_in, C_out], and a bias [C_out]."""
    AVERAGE_POOL_2D = 4
    """Means of windows; what is outside of the image does not count."""
    MAX_POOL_2D = 5
    GLOBAL_AVERAGE_POOL = 6
    """Means of all pixels: [N, 1, 1, C]."""
    ADD = 7
    """Two tensors of one rank, axes of size 1 repeated."""
    SUBTRACT = 8
    MULTIPLY = 9
    RESCALE = 10
    """The same reals in another quantization; clamped, it is an activation."""
    LOOK_UP = 11
    """`table[element]`, by a UINT8 table of 256."""
    RESHAPE = 12
    TRANSPOSE = 13
    """Axis `i` of the result is axis `order[i]`."""
    CONCATENATE = 14
    """Along `axis`."""
    PAD = 15
    """Zeros around a tensor: `pads` has two numbers an axis."""
    SOFTMAX = 16
    """Of FLOAT16, along the channels."""
    CONVERT = 17
    """UINT8 as the FLOAT16 that it stands for, or FLOAT16 as the nearest UINT8."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a node; each operator looks at its own.

    Attributes:
        kernel: height and width of the windows of a pooling.
        strides: how far it is from one window to the next.
        dilations: how far it is from one element of a window to the next.
        pads: zeros around an image, top, bottom, left, right; for `PAD`, two numbers an axis.
        low: the least real of the result.
        high: the greatest real of the result.
        order: for `TRANSPOSE`.
        axis: for `CONCATENATE`.
    """

    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    low: float = -math.inf
    high: float = math.inf
    order: tuple[int, ...] = ()
    axis: int = 0


CONSTANT_INPUTS = {
    Operator.CONV_2D: (1, 2),
    Operator.DEPTHWISE_CONV_2D: (1, 2),
    Operator.FULLY_CONNECTED: (1, 2),
    Operator.LOOK_UP: (1,),
}
"""The inputs that must be constants, where an operator has such."""

CLAMPING = frozenset(
    {
        Operator.CONV_2D,
        Operator.DEPTHWISE_CONV_2D,
        Operator.FULLY_CONNECTED,
        Operator.AVERAGE_POOL_2D,
        Operator.MAX_POOL_2D,
        Operator.GLOBAL_AVERAGE_POOL,
        Operator.ADD,
        Operator.SUBTRACT,
        Operator.MULTIPLY,
        Operator.RESCALE,
    }
)
"""The operators that clamp what they make to `low` and `high`."""
