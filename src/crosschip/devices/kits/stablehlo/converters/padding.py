"""Padding."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.padding import Pad, PadMode

_MODES: dict[PadMode, Literal["reflect", "edge", "symmetric", "wrap"]] = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
    PadMode.WRAP: "wrap",
}


@converts(Pad)
def pad(g: Graph, op: Pad) -> Value:
    data = g[op.input]
    sides = list(zip(op.pads[::2], op.pads[1::2], strict=True))
    if op.mode not in _MODES:
        zero = np.zeros((), data.dtype)  # float8_e8m0 has no 0
        value = jnp.asarray(zero) if op.value is None else g[op.value].reshape(())
        return lax.pad(data, value, [(before, after, 0) for before, after in sides])
    box = tuple(
        slice(max(0, -before), size - max(0, -after))
        for size, (before, after) in zip(data.shape, sides, strict=True)
    )
    data = data[box]
    for axis, (before, after) in enumerate(sides):
        # The source index of each element is the padded index.
        sources = np.pad(
            np.arange(data.shape[axis]), (max(0, before), max(0, after)), _MODES[op.mode]
        )
        if before > 0 or after > 0:
            data = jnp.take(data, sources, axis, mode="clip")
    return data
