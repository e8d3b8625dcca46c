"""Write small programs whose loops fill arrays of tensors, with what Paddle computes with them.

Run inside an oracle environment: python arrays.py NAME DIRECTORY
"""

import sys
import zlib  # noqa: F401  # before Paddle, which brings one of its own
from pathlib import Path
from typing import Any

import paddle
from control import COUNT, COUNTED, MATRIX, OPEN, Setting, main
from paddle import nn

Tensor = Any


def filled(linear: nn.Layer, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Lists that a loop fills, one tensor each time, put together in several ways."""
    i = paddle.zeros([1], "int64")
    rows, columns = [], []
    while i < n:
        x = paddle.tanh(linear(x))
        rows.append(x)
        columns.append(x.sum(0) - i.astype("float32"))
        i = i + 1
    return paddle.concat(rows, 1), paddle.stack(columns, 1), x


def filled_by_place(linear: nn.Layer, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """An array that a loop writes to at a place that it counts."""
    i = paddle.zeros([1], "int64")
    array = paddle.tensor.create_array("float32")
    while i < n:
        x = linear(x) * 0.5
        paddle.tensor.array_write(x, i, array)
        i = i + 1
    return paddle.tensor.array_read(array, i - 1), paddle.tensor.array_length(array)


SETTINGS = {
    "filled": Setting(filled, [OPEN, COUNT], COUNTED[1:]),
    "filled_by_place": Setting(filled_by_place, [MATRIX, COUNT], COUNTED[1:]),
}


if __name__ == "__main__":
    main(Path(sys.argv[2]), SETTINGS)
