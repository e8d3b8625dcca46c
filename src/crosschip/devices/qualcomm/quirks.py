"""Quirks of Qualcomm's compiler or chip; see `crosschip.devices.kits.quirks`.

Found in the emulation that comes with the compiler, which computes in float16.
"""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.quirks import Differs, Quirks
from crosschip.devices.kits.toolchain.quirks import runs
from crosschip.devices.qualcomm import QualcommDevice
from crosschip.devices.qualcomm.limits import limit
from crosschip.ops.standard.activation import Softplus
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import GatherElements
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.searching import TopK
from crosschip.ops.standard.unary import IsNaN

_SETTINGS = {
    "htp_graph_finalization_optimization_mode": "0",
    "soc_model": "57",
    "enable_htp_fp16_precision": "1",
}
quirk = Quirks("qualcomm", "onnxruntime-qnn 2.7.0", runs(QualcommDevice, _SETTINGS))


@quirk(
    IsNaN,
    when="an element is infinite",
    what="treats it as NaN",
    avoided_by=limit,
    inputs=[[np.inf, np.nan, 1]],
    right=[False, True, False],
    wrong=[True, True, False],
)
def nan_of_infinity() -> str:
    return "g (float[3] x) => (bool[3] y) { y = IsNaN (x) }"


@quirk(
    Softplus,
    when="it is computed at all",
    what="is one percent off",
    avoided_by=limit,
    inputs=[[-4, -2, -1, 0.5, 1, 2]],
    right=np.log1p(np.exp([-4, -2, -1, 0.5, 1, 2])),
    wrong=Differs(),
    tolerance=3e-3,
)
def rough_softplus() -> str:
    return "g (float[6] x) => (float[6] y) { y = Softplus (x) }"


@quirk(
    TopK,
    when="elements are equal",
    what="returns any of them",
    avoided_by=limit,
    inputs=[[3, 1, 3, 3, 2, 3, 1, 3]],
    right=([3, 3], [0, 2]),
    wrong=Differs(),
)
def order_of_equals() -> str:
    return "g (float[8] x) => (float[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }"


@quirk(
    Cast,
    when="integers become uint8",
    what="clips them",
    avoided_by=limit,
    inputs=[np.array([256, 5], np.int32)],
    right=np.array([0, 5], np.uint8),
    wrong=np.array([255, 5], np.uint8),
)
def clipped_cast() -> str:
    return "g (int32[2] x) => (uint8[2] y) { y = Cast <to: int = 2> (x) }"


@quirk(
    Cast,
    when="uint8 becomes float32",
    what="treats it as boolean",
    avoided_by=limit,
    inputs=[np.array([2, 0], np.uint8)],
    right=[2, 0],
    wrong=[1, 0],
)
def truth_of_bytes() -> str:
    return "g (uint8[2] x) => (float[2] y) { y = Cast <to: int = 1> (x) }"


@quirk(
    GatherElements,
    when="an index counts from the end",
    what="silently ignores it",
    avoided_by=limit,
    inputs=[[[1, 2, 3], [4, 5, 6]], np.array([[-1, 0, 1]], np.int32)],
    right=[[4, 2, 6]],
    wrong=[[0, 2, 6]],
)
def index_from_the_end() -> str:
    return """g (float[2,3] x, int32[1,3] i) => (float[1,3] y) {
        y = GatherElements <axis: int = 0> (x, i)
    }"""


@quirk(
    Pad,
    when="reals are padded with their edge",
    what="returns uninitialized memory",
    avoided_by=limit,
    inputs=[[1]],
    right=[1, 1],
    wrong=Differs(),
)
def repeated_edge() -> str:
    return """g (float[1] x) => (float[2] y) <int64[2] pads = {1, 0}> {
        y = Pad <mode = "edge"> (x, pads)
    }"""


@quirk(
    AveragePool2D,
    when="the image is padded, and the padding counts",
    what="returns 0",
    avoided_by=limit,
    inputs=[np.ones((1, 1, 2, 2), np.float32)],
    right=np.full((1, 1, 2, 2), 4 / 9),
    wrong=np.zeros((1, 1, 2, 2)),
    tolerance=3e-3,
)
def padding_in_means() -> str:
    return """g (float[1,1,2,2] x) => (float[1,1,2,2] y) {
        y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad: int = 1> (x)
    }"""
