"""Activations that are part of another operator, as fusing passes of Paddle and Paddle Lite write.

Sources: paddle/fluid/framework/ir of Paddle 2.6, lite/core/optimizer/mir/fusion of Paddle Lite.
"""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.ir import UnsupportedError
from crosschip.ops.definition.slots import Fuse

_FUSED = {"": Fuse.NONE, "relu": Fuse.RELU, "relu1": Fuse.RELU1, "relu6": Fuse.RELU6}


def fused(op: Context, attribute: str = "act_type") -> Fuse:
    """The activation that an attribute names; none if it is left out.

    Raises:
        UnsupportedError: it is one that no operator of the set applies to its result.
    """
    name = op.text(attribute, "")
    if name not in _FUSED:
        known = ", ".join(filter(None, _FUSED))
        raise UnsupportedError(
            f"{attribute} {name!r} cannot be expressed, only {known}; export without fusing"
        )
    return _FUSED[name]
