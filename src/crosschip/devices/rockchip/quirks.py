"""Quirks of Rockchip's compiler or simulator; see `devices.kits.quirks`."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.quirks import Differs, Quirks
from crosschip.devices.kits.toolchain.quirks import runs
from crosschip.devices.rockchip import RockchipDevice
from crosschip.devices.rockchip.limits import limit
from crosschip.ops.standard.arithmetic import Clip, Pow
from crosschip.ops.standard.rearranging import ReverseSequence

quirk = Quirks(
    "rockchip", "rknn-toolkit2 2.5.0 (simulator)", runs(RockchipDevice, {"platform": "rk3588"})
)

_BASES = np.array([[[1, 2, 3, 4]], [[1, 2, 3, 4]]], np.float32)
_EXPONENTS = np.array([[1], [2], [3]], np.float32)


@quirk(
    Pow,
    when="the bases are broadcast",
    what="puts the last axes of the result in another order",
    avoided_by=limit,
    inputs=[_BASES, _EXPONENTS],
    right=_BASES**_EXPONENTS,
    wrong=Differs(),
    tolerance=3e-3,
)
def power_of_stretched() -> str:
    return "g (float[2,1,4] x, float[3,1] y) => (float[2,3,4] z) { z = Pow (x, y) }"


@quirk(
    ReverseSequence,
    when="a sequence has no elements",
    what="returns uninitialized memory",
    avoided_by=limit,
    inputs=[[[1, 2, 3], [4, 5, 6]], np.array([0, 2])],
    right=[[1, 2, 3], [5, 4, 6]],
    wrong=Differs(),
    tolerance=3e-3,
)
def sequence_of_nothing() -> str:
    return """g (float[2,3] x, int64[2] l) => (float[2,3] y) {
        y = ReverseSequence <batch_axis: int = 0, time_axis: int = 1> (x, l)
    }"""


@quirk(
    Clip,
    when="integers of int64 have large bounds",
    what="rounds the bounds",
    avoided_by=limit,
    inputs=[np.array([-4611686018427387905, 5])],
    right=[-4611686018427387904, 5],
    wrong=[-4611686018427387905, 5],
)
def bounds_of_int64() -> str:
    return """g (int64[2] x) => (int64[2] y) <int64 low = {-4611686018427387904}> {
        y = Clip (x, low)
    }"""
