"""Pooling."""

from __future__ import annotations

from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.windows import expect_channels_first, padding
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ops.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.reduction import ReduceMax
from crosschip.ops.windows import AutoPad


@imports("pool2d")
def pool2d(op: Context) -> None:
    expect_channels_first(op)
    kind = op.text("pooling_type")
    if kind not in ("avg", "max"):
        raise ModelError(f"pooling_type: {kind!r} is neither 'avg' nor 'max'")
    if op.flag("global_pooling", False):
        _over_everything(op, kind)
    elif not op.flag("adaptive", False):
        _over_windows(op, kind)
    elif kind == "avg":
        op.make(AdaptiveAveragePool2D, op.input(), op.integers("ksize"))
    else:
        raise UnsupportedError("pooling_type 'max' with adaptive True: has no meaning in Paddle")


def _over_everything(op: Context, kind: str) -> None:
    if kind == "avg":
        op.make(AdaptiveAveragePool2D, op.input(), (1, 1))
    else:
        op.make(ReduceMax, op.input(), (2, 3), keepdim=True)


def _over_windows(op: Context, kind: str) -> None:
    auto_pad, pads = padding(op)
    arguments: dict[str, Any] = {
        "auto_pad": auto_pad,
        "pads": pads,
        "kernel_shape": op.integers("ksize"),
        "strides": op.integers("strides", (1, 1)),
        "ceil_mode": op.flag("ceil_mode", False),
    }
    if kind == "max":
        op.make(MaxPool2D, op.input(), **arguments)
    else:
        includes = not op.flag("exclusive", True)
        if includes and not _is_even(auto_pad, pads):
            raise UnsupportedError(
                "exclusive False with more padding on one side than on the other: "
                "Paddle then counts the padding at the top and on the left twice"
            )
        op.make(AveragePool2D, op.input(), count_include_pad=includes, **arguments)


def _is_even(auto_pad: AutoPad, pads: tuple[int, ...]) -> bool:
    """Whether there is as much padding at the top as at the bottom, and likewise at the sides."""
    if auto_pad is AutoPad.NONE:
        return pads[0::2] == pads[1::2]
    return auto_pad is AutoPad.VALID
