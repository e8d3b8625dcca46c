"""Numbers and notes on translation that operators of several families share."""

from __future__ import annotations

from collections.abc import Mapping

from crosschip.ir import ElementType
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.padding import PadMode

Numbers = Mapping[int, int]
Codes = Mapping[type, Numbers]
"""Numbers of choices and element types in another system, by the enumeration of ours.

Each maps their numbers to the ones of our enumeration. Where several of theirs mean the same, the
first is the one that is written.
"""

PROMOTED = "operands of two types become the wider of them"

NNADAPTER_CODES: Codes = {
    AutoPad: {0: AutoPad.NONE, 1: AutoPad.SAME, 2: AutoPad.VALID},
    Fuse: {0: Fuse.NONE, 1: Fuse.RELU, 2: Fuse.RELU1, 3: Fuse.RELU6},
    Kernel: {1: Kernel.BILINEAR, 2: Kernel.NEAREST, 0: Kernel.BILINEAR},
    PadMode: {mode: mode for mode in PadMode if mode <= PadMode.EDGE},
    AlignMode: {0: AlignMode.HALF_PIXEL, 1: AlignMode.ASYMMETRIC},
    ElementType: {t.code: t.code for t in ElementType if 0 <= t.code <= ElementType.FLOAT64.code},
}
"""NNAdapterAutoPadCode, NNAdapterFuseCode, NNAdapterInterpolateModeCode, NNAdapterPadModeCode, the
`align_mode` of RESIZE_LINEAR, and NNAdapterOperandPrecisionCode without its quantized types."""
