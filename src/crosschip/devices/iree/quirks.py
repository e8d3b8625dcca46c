"""Quirks of IREE, with reproductions in StableHLO; see `devices.kits.quirks`.

Comments of a reproduction are further flags of the compiler, as in LLVM's tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from crosschip.devices.iree import compiling, limits, lowering, targets
from crosschip.devices.kits.quirks import Quirk, Quirks, Raises
from crosschip.ir import Array
from crosschip.ops.standard.arithmetic import Add, Div, Pow
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.unary import Acos, Asin, Atan


def _run(function: Callable[..., Any], quirk: Quirk) -> Sequence[Array]:
    from iree import runtime
    from iree.compiler import tools

    backend = "vmvx" if quirk.versions.endswith("vmvx") else "llvm-cpu"
    flags = [
        "--iree-hal-target-device=local",
        f"--iree-hal-local-target-device-backends={backend}",
        "--iree-llvmcpu-target-cpu=host",
    ]
    text = function()
    flags += re.findall(r"// (--\S+)", text)
    module = tools.compile_str(text, input_type="stablehlo", extra_args=flags)
    context = runtime.SystemContext(config=runtime.Config("local-sync"))
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, module))
    (name,) = (name for name in context.modules if name != "hal")
    return [np.asarray(context.modules[name]["main"](*quirk.inputs))]


quirk = Quirks("iree", "iree 3.13.0", _run)


@quirk(
    Pow,
    when="a base is negative, an exponent is 0, or a base of 1 has an exponent that is infinite",
    what="returns NaN",
    avoided_by=lowering.power,
    inputs=[[-2, np.nan, 1, np.inf], [3, 0, np.inf, 0]],
    right=[-8, 1, 1, 1],
    wrong=[np.nan] * 4,
    model=lambda b, x, y: b.add(Pow, x, y),
)
def powers_by_logarithms() -> str:
    return """
        func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.power %x, %y : tensor<4xf32>
          return %0 : tensor<4xf32>
        }
    """


@quirk(
    Add,
    when="reals have 64 bits, and no flag is set",
    what="expects 32 bits",
    avoided_by=compiling.compile_stablehlo,
    inputs=[np.array([0.1])],
    right=[0.2],
    wrong=Raises("expected f32"),
    model=lambda b, x: b.add(Add, x, x),
)
def float64_in_32_bits() -> str:
    return """
        func.func @main(%x: tensor<1xf64>) -> tensor<1xf64> {
          %0 = stablehlo.add %x, %x : tensor<1xf64>
          return %0 : tensor<1xf64>
        }
    """


@quirk(
    Cast,
    when="reals become integers",
    what="rounds them to the nearest",
    versions="iree 3.13.0, vmvx",
    avoided_by=lowering.truncating_cast,
    inputs=[[1.75, -1.75, 0.6, 2]],
    right=np.array([1, -1, 0, 2], np.int32),
    wrong=np.array([2, -2, 1, 2], np.int32),
)
def integers_by_rounding() -> str:
    return """
        func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
          %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>
          return %0 : tensor<4xi32>
        }
    """


@quirk(
    Conv1D,
    Conv2D,
    Conv3D,
    Conv1DTranspose,
    Conv2DTranspose,
    Conv3DTranspose,
    when="several groups of several channels are dilated, and the image has NaN or an infinity",
    what="multiplies pixels between those that the filter reads by 0, so that the sum is NaN",
    avoided_by=(lowering.grouped_conv, lowering.grouped_conv_transpose),
    inputs=[[[[1, np.nan, 1]] * 4], [[[1, 1]] * 2] * 2],
    right=[[[4], [4]]],
    wrong=[[[np.nan], [np.nan]]],
    model=lambda b, x, w: b.add(Conv1D, x, w, group=2, dilations=(2,)),
)
def dilation_by_zeros() -> str:
    return """
        func.func @main(%x: tensor<1x4x3xf32>, %w: tensor<2x2x2xf32>) -> tensor<1x2x1xf32> {
          %0 = stablehlo.convolution(%x, %w)
            dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {rhs_dilate = [2]}
            {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
            : (tensor<1x4x3xf32>, tensor<2x2x2xf32>) -> tensor<1x2x1xf32>
          return %0 : tensor<1x2x1xf32>
        }
    """


@quirk(
    Acos,
    Asin,
    Atan,
    when="reals have 64 bits",
    what="links no arc tangent, and refuses the module",
    avoided_by=limits.limit,
    inputs=[np.array([0.5])],
    right=np.arctan2([0.5], [0.5]),
    wrong=Raises("undefined symbol: atan2"),
    model=lambda b, x: b.add(Atan, b.add(Div, x, x)),
)
def arc_tangent_of_float64() -> str:
    return """
        // --iree-input-demote-f64-to-f32=false
        func.func @main(%x: tensor<1xf64>) -> tensor<1xf64> {
          %0 = stablehlo.atan2 %x, %x : tensor<1xf64>
          return %0 : tensor<1xf64>
        }
    """


@quirk(
    Add,
    when="reals have 16 bits",
    what="refuses the module",
    versions="iree 3.13.0, vmvx",
    avoided_by=targets.target_of,
    inputs=[np.array([1.5], ml_dtypes.bfloat16)],
    right=np.array([3], ml_dtypes.bfloat16),
    wrong=Raises("must be 32-bit float"),
)
def floats_of_16_bits() -> str:
    return """
        func.func @main(%x: tensor<1xbf16>) -> tensor<1xbf16> {
          %0 = stablehlo.add %x, %x : tensor<1xbf16>
          return %0 : tensor<1xbf16>
        }
    """
