"""Padding and cropping of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from crosschip.ir import Array, Dim, Quantization, Shape, unknown
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.slots import (
    ComputedParameter,
    choice,
    integers,
    optional_tensor,
    tensor,
)


class PadMode(IntEnum):
    """The values of the padding (NNAdapterPadModeCode, and two that NNAdapter does not have).

    The examples pad `abc` by three elements on each side.
    """

    NONE = 0
    """Like `CONSTANT`."""
    CONSTANT = 1
    """The value: `000abc000`."""
    REFLECT = 2
    """The reflection without the border element: `bcbabcbab`."""
    REPLICATE = 3
    """The border element: `aaaabcccc`."""
    EDGE = 4
    """Like `REPLICATE`."""
    SYMMETRIC = 5
    """The reflection with the border element: `cbaabccba`."""
    WRAP = 6
    """The tensor, repeated: `abcabcabc`."""


NUMPY_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
    PadMode.WRAP: "wrap",
}
"""The modes of `numpy.pad`."""


@operator("PAD", core=True)
class Pad(Operator):
    """Padding of axis `i` with `pads[2 * i]` entries before and `pads[2 * i + 1]` after it.

    `pads` has two numbers per axis of the input. Negative ones remove entries, before others are
    added. `mode` determines the added elements; in mode `CONSTANT` all are `value`, one element of
    the input's type, by default 0. If the input is quantized, `value` is a real or quantized, and
    the default is the real 0.

    Axes are padded one after the other, so corners contain the padding of the padding. A reflected
    or wrapped tensor is repeated until it fills a padding wider than itself: `abc` reflected by
    five to the left has the padding `bcbabcba`, and `a` is repeated as `a`. An axis of size 0 can
    only be padded in mode `CONSTANT`.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    pads = integers()
    mode = choice(PadMode, PadMode.CONSTANT)
    value = optional_tensor(ALL_TYPES, like="input")

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        value = self.value
        if value is not None and value.type.static_shape not in (None, (), (1,)):
            raise ValueError(f"value: takes one element, not a tensor of {value.type}")
        pads = self._known_pads(len(shape))
        if pads is None:
            return tuple(unknown() for _ in shape)
        if len(pads) != 2 * len(shape):
            raise ValueError(f"pads: has {len(pads)} numbers, but the input has {len(shape)} axes")
        sides = list(zip(pads[::2], pads[1::2], strict=True))
        for size, (before, after) in zip(shape, sides, strict=True):
            if isinstance(size, int) and isinstance(before, int) and isinstance(after, int):
                remaining = len(range(size)[_kept_part(size, before, after)])
                if self.mode in NUMPY_MODES and not remaining and max(before, after) > 0:
                    raise ValueError(f"mode: {self.mode.name} finds nothing to repeat on an axis")
        return tuple(
            size + before + after for size, (before, after) in zip(shape, sides, strict=True)
        )

    def _known_pads(self, rank: int) -> Sequence[Dim] | None:
        """Return the pads, with symbolic sizes if they are computed; `None` if they are unknown."""
        try:
            return self.pads
        except ComputedParameter:
            operand = self.operand("pads")
            if operand is None:
                return None
            if operand.type.static_shape not in (None, (2 * rank,)):
                axes = f"the input has {rank} axes"
                raise ValueError(f"pads: has shape {operand.type}, but {axes}") from None
            return operand.type.shape_value

    def reference(self, input: Array, value: Array | None) -> Array:
        sides = np.reshape(np.array(self.pads, np.int64), (-1, 2))
        if len(sides) != input.ndim:
            raise ValueError(
                f"pads: has {len(self.pads)} numbers, but the input has {input.ndim} axes"
            )
        cropped = input[tuple(_kept_part(*one) for one in zip(input.shape, *sides.T, strict=True))]
        options: dict[str, Any] = {"mode": NUMPY_MODES.get(self.mode, "constant")}
        if self.mode not in NUMPY_MODES:
            zero = np.zeros((), input.dtype)
            options["constant_values"] = zero if value is None else value.reshape(())
        return np.pad(cropped, np.maximum(sides, 0), **options) if input.ndim else cropped

    def moved_quantization(self) -> Quantization | None:
        quantization = self.input.type.quantization
        return quantization if quantization and quantization.axis is None else None

    @property
    def moves_integers(self) -> bool:
        return super().moves_integers and (self._repeats() or self._value_is_quantized_alike())

    def _repeats(self) -> bool:
        """Return whether the mode is known to need no value."""
        try:
            return self.mode in NUMPY_MODES
        except ComputedParameter:
            return False

    def _value_is_quantized_alike(self) -> bool:
        """Return whether the value is quantized like the input."""
        quantization = self.input.type.quantization
        if self.value is not None:
            return self.value.type.quantization == quantization
        return quantization is None or quantization.symmetric


def _kept_part(size: int, before: int, after: int) -> slice:
    """Return the part of an axis that negative pads leave; raise ValueError if they exceed it."""
    first, last = max(0, -before), size - max(0, -after)
    if first > last:
        raise ValueError(f"pads: {before} and {after} take more than the {size} there are")
    return slice(first, last)
