"""The device that runs models on Qualcomm's Hexagon processors, through onnxruntime-qnn.

Tested with the emulation of the processor that comes with its compiler on x86. By Qualcomm's
documents the same calls use the processor where there is one; that is untested.
Sources: https://onnxruntime.ai/docs/execution-providers/QNN-ExecutionProvider.html,
https://docs.qualcomm.com/bundle/publicresource/topics/80-63442-50/htp_backend.html
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crosschip.devices.kits.toolchain import Dialect, Toolchain
from crosschip.devices.qualcomm.limits import limit
from crosschip.hal import Instance, Kind, Options, Precision, Refusal
from crosschip.ir import ElementType, Operation
from crosschip.onnx_messages import ModelProto

_REFUSAL = re.compile(r"Operator type: (\S+) Node name: (\S+) .*\s*REASON : (.*)")

_CHANNELS = [Path("/dev", name) for name in ("fastrpc-cdsp", "cdsprpc-smd", "adsprpc-smd")]
_NAMES = ", ".join(map(str, _CHANNELS))
"""The device files of the processor in Linux and Android."""

_LEFT = "assigned to the default CPU EP"


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
    def probe(cls) -> Sequence[Instance]:
        emulated = not platform.machine().lower().startswith(("aarch64", "arm64"))
        problem = cls.missing()
        if not emulated and platform.system() == "Linux" and not any(map(Path.exists, _CHANNELS)):
            problem = problem or f"there is no Hexagon processor: none of {_NAMES} is there"
        description = "Hexagon tensor processor" + (", emulated" if emulated else "")
        return [
            Instance(kind=cls.kind, description=description, simulated=emulated, problem=problem)
        ]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            **super().known_properties(),
            "soc_model": "the number that Qualcomm gives the chip to compile for (57 where there "
            "is none, else the one that there is)",
            "optimization": "how much time the compiler may take for faster programs, 0 to 3 (0)",
        }

    def settings(self, options: Options, *, quantized: bool) -> Mapping[str, Any]:
        level = self.properties.get("optimization", "0")
        settings = {"htp_graph_finalization_optimization_mode": level}
        chip = self.properties.get("soc_model", "57" if self.probe()[0].simulated else "")
        if chip:
            settings["soc_model"] = chip
        if options.precision is Precision.FLOAT16:
            settings["enable_htp_fp16_precision"] = "1"
        return settings

    def limit(self, operation: Operation, options: Options) -> Refusal | None:
        return limit(operation)

    def amend(self, model: ModelProto) -> None:
        gates = {n.output[0]: n.input[0] for n in model.graph.node if n.op_type == "HardSigmoid"}
        for node in model.graph.node:
            # The compiler takes x * HardSigmoid(x) of named nodes for x * HardSwish(x).
            if node.op_type == "Mul" and gates.get(node.input[1]) == node.input[0]:
                node.input[:] = reversed(node.input)

    def complaint(self, message: str) -> str:
        refusals = _REFUSAL.findall(message)
        if not refusals:
            # The message is about sessions and names no operation.
            return "the compiler leaves it to the processor" if _LEFT in message else message
        operator, _, why = refusals[0]
        if why.startswith("Failed to add"):
            why = f"{operator} does not pass the validation of Qualcomm's backend in this form"
        return "\n".join([why.split(".")[0], *(node for _, node, _ in refusals)])
