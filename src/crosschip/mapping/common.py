"""Codes of enumerations and element types in other systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir import ElementType
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.padding import PadMode

Numbers = Mapping[int, int]
Codes = Mapping[type, Numbers]
"""Codes of another system, by our enumeration.

Each entry maps their codes to ours. Where several of their codes map to one of ours, the first is
exported.
"""

_NNRT_TYPES = (
    *(ElementType.BOOL, ElementType.INT8, ElementType.INT16, ElementType.INT32, ElementType.INT64),
    *(ElementType.UINT8, ElementType.UINT16, ElementType.UINT32, ElementType.UINT64),
    *(ElementType.FLOAT16, ElementType.FLOAT32, ElementType.FLOAT64),
)
_DRIVERS_NUMBERS = (30, 32, 33, 34, 35, 37, 38, 39, 40, 42, 43, 44)
_DRIVERS_TYPES = {
    number: type_.code for number, type_ in zip(_DRIVERS_NUMBERS, _NNRT_TYPES, strict=True)
}

NNRT_CODES: Codes = {
    Fuse: {0: Fuse.NONE, 1: Fuse.RELU, 2: Fuse.RELU6},
    PadMode: {0: PadMode.CONSTANT, 1: PadMode.REFLECT, 2: PadMode.SYMMETRIC},
    ElementType: {
        **{number: type_.code for number, type_ in enumerate(_NNRT_TYPES, 1)},
        **_DRIVERS_TYPES,
    },
}
"""OH_NN_FuseType, the modes of PAD, and OH_NN_DataType together with the drivers' DataType."""

HDI_CODES: Codes = {
    AutoPad: {0: AutoPad.NONE, 1: AutoPad.SAME, 2: AutoPad.VALID},
    PadMode: NNRT_CODES[PadMode],
    Rounding: {
        0: Rounding.UP_AT_HALF,
        1: Rounding.DOWN_AT_HALF,
        2: Rounding.UP_AT_HALF,
        3: Rounding.DOWN,
        4: Rounding.UP,
    },
    ElementType: _DRIVERS_TYPES,
}
"""PadMode, PaddingMode, NearestMode and DataType of NNRt's driver interface."""

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


def quantized_axis(shape: Sequence[int], count: int) -> int | None:
    """Return the axis of per-channel scales, which NNRt's quantization parameters do not state.

    It is the first axis or else the last, whichever has `count` elements; `None` if neither has.
    """
    axes = (0, len(shape) - 1) if shape else ()
    return next((axis for axis in axes if shape[axis] == count), None)
