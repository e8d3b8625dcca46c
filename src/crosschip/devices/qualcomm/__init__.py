"""The device that runs models on Qualcomm's Hexagon processors, through onnxruntime-qnn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosschip.hal import Kind, Options, Precision
from crosschip.hal.toolchain import Dialect, Toolchain
from crosschip.ir import ElementType


class QualcommDevice(Toolchain):
    """The tensor processor of Hexagon chips (HTP), or its emulation on x86."""

    vendor = "Qualcomm"
    kind = Kind.ACCELERATOR
    package = "onnxruntime-qnn"
    module = "onnxruntime_qnn"
    script = Path(__file__).with_name("tool.py")
    dialect = Dialect(
        types=frozenset(
            {
                ElementType.BOOL,
                ElementType.INT8,
                ElementType.UINT8,
                ElementType.INT16,
                ElementType.UINT16,
                ElementType.INT32,
                ElementType.INT64,
                ElementType.FLOAT16,
                ElementType.FLOAT32,
            }
        ),
        max_rank=5,
    )

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            **super().known_properties(),
            "soc_model": "the number that Qualcomm gives the chip to compile for (57)",
        }

    def settings(self, options: Options, *, quantized: bool) -> Mapping[str, Any]:
        settings = {
            "soc_model": self.properties.get("soc_model", "57"),
            "htp_graph_finalization_optimization_mode": "0",
        }
        if options.precision is Precision.FLOAT16:
            settings["enable_htp_fp16_precision"] = "1"
        return settings
