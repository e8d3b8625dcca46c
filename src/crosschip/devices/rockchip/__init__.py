"""The device that runs models on Rockchip's NPUs, or on the simulator of rknn-toolkit2.

Tested with the simulator; written to the vendor's documents for machines with the chip, where it is
untested. The simulator also runs operators that no chip supports, so only the operators that
Rockchip lists are supported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosschip.devices.kits.toolchain import Dialect, Toolchain
from crosschip.devices.rockchip.limits import limit
from crosschip.hal import Capabilities, Instance, Kind, Options, Refusal
from crosschip.ir import DeviceError, ElementType, Operation

_DEVICE_TREE = Path("/proc/device-tree/compatible")
_INTEGERS_ONLY = ("rv1103", "rv1103b", "rv1106", "rv1106b")
_PLATFORMS = (
    *("rk3588", "rk3576", "rk3568", "rk3566", "rk3562", "rk2118", "rv1126b"),
    *_INTEGERS_ONLY,
)

_LISTED = """
Add And ArgMax ArgMin AveragePool BatchNormalization Cast Clip Concat Constant ConstantOfShape Conv
ConvTranspose Cos DepthToSpace DequantizeLinear Div Dropout Elu Equal Erf Exp Expand Flatten Floor
Gather GatherElements Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GRU HardSigmoid
HardSwish Identity InstanceNormalization LayerNormalization LeakyRelu Less LessOrEqual Log
LogSoftmax LpNormalization LRN LSTM MatMul Max MaxPool MaxRoiPool MaxUnpool
MeanVarianceNormalization Min Mish Mod Mul Pad Pow PRelu QuantizeLinear ReduceMax ReduceMean
ReduceMin ReduceSum Relu Reshape Resize ReverseSequence RoiAlign ScatterND Shape Sigmoid Sin Size
Slice Softmax Softplus SpaceToDepth Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze Where
"""
"""Source: https://github.com/airockchip/rknn-toolkit2/blob/master/doc (operators of ONNX)."""


_REASONS = re.compile(
    r"^(?:\S*(?:Error|Fail|Invalid\w*|NotImplemented): |E RKNN: \[\S+\] )(.+)", re.M
)
"""Matches the last line of a traceback, and the compiler's error messages."""


class RockchipDevice(Toolchain):
    """A Rockchip NPU, or its simulator on x86.

    Raises:
        DeviceError: rknn-toolkit2 is not installed, or a property is wrong.
    """

    vendor = "Rockchip"
    kind = Kind.ACCELERATOR
    package = "rknn-toolkit2"
    module = "rknn"
    script = Path(__file__).with_name("tool.py")
    dialect = Dialect(
        opset=19,
        operators=frozenset(_LISTED.split()),
        types=frozenset(
            {
                ElementType.BOOL,
                ElementType.INT8,
                ElementType.UINT8,
                ElementType.INT32,
                ElementType.INT64,
                ElementType.FLOAT16,
                ElementType.FLOAT32,
            }
        ),
        real_boundary=True,
    )

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        self._platform = (properties or {}).get("platform") or _chip() or _PLATFORMS[0]
        if self._platform not in _PLATFORMS:
            raise DeviceError(
                f"property platform is {self._platform!r}, but must be one of "
                f"{', '.join(_PLATFORMS)}"
            )
        super().__init__(properties, instance)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        chip = _chip()
        description = f"the NPU of {chip}" if chip else "the simulator of rknn-toolkit2"
        return [
            Instance(
                kind=cls.kind, description=description, simulated=not chip, problem=cls.missing()
            )
        ]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            **super().known_properties(),
            "platform": f"the chip to compile for (this machine's, or {_PLATFORMS[0]}): "
            + ", ".join(_PLATFORMS),
        }

    def capabilities(self) -> Capabilities:
        capabilities = super().capabilities()
        if self._platform in _INTEGERS_ONLY:
            return replace(capabilities, precisions=frozenset())
        return capabilities

    def settings(self, options: Options, *, quantized: bool) -> Mapping[str, Any]:
        return {"platform": self._platform}

    def limit(self, operation: Operation, options: Options) -> Refusal | None:
        return limit(operation)

    def complaint(self, message: str) -> str:
        reasons = _REASONS.findall(message)
        return str(reasons[-1]).strip() if reasons else message


def _chip() -> str:
    """Return the compiler's name of this machine's chip; empty if it has none."""
    try:
        compatible = _DEVICE_TREE.read_bytes().decode(errors="replace")
    except OSError:
        return ""
    # Longest first, so that rv1103b is found before rv1103.
    names = sorted(_PLATFORMS, key=len, reverse=True)
    return next((name for name in names if f"rockchip,{name}" in compatible), "")
