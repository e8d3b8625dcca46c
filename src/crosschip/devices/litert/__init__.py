"""The device that runs models with LiteRT, the engine of TensorFlow Lite files.

A model of static shapes becomes a file in memory. On the processor LiteRT's interpreter runs it,
with XNNPACK where that has kernels; on accelerators it is compiled for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from crosschip.devices.litert.chips import chips
from crosschip.hal import (
    SCHEDULING,
    Capabilities,
    Device,
    Instance,
    Kind,
    Options,
    Precision,
    Program,
    Sizing,
    Support,
    processor,
)
from crosschip.ir import Model, Operation
from crosschip.ir.errors import importing

_MAX_RANK = 8
"""The largest rank of what LiteRT's kernels reshape."""

CAPABILITIES = Capabilities(
    pairs=True,
    sizing=Sizing.FIXED,
    threads=True,
    max_rank=_MAX_RANK,
    holds_weights=True,
    settable_at_load=SCHEDULING,
)
"""The capabilities of the processor."""


class LitertDevice(Device):
    """LiteRT on the processor, or on an accelerator.

    Raises:
        DeviceError: LiteRT is not installed.
    """

    vendor = "Google"
    module = "ai_edge_litert"
    startup_seconds = 0.2
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        with importing("LiteRT", "litert"):
            from crosschip.devices.litert import program
        self._engine = program

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return chips()

    @property
    def version(self) -> str:
        return self._engine.VERSION

    def capabilities(self) -> Capabilities:
        if self._is_processor:
            return CAPABILITIES
        from crosschip.devices.litert.accelerated import TYPES

        # WebGPU is told to compute in float32; NPUs compute in float16 and integers.
        precision = Precision.FLOAT32 if self.instance == "gpu" else Precision.FLOAT16
        return replace(
            CAPABILITIES,
            pairs=False,
            threads=False,
            types=TYPES,
            precisions=frozenset({precision}),
            tied_to=(processor(), self.instance),
        )

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("litert")

    def operators(self) -> Collection[str]:
        from crosschip.devices.litert.target import TARGET

        return TARGET.operators

    def supports(self, operation: Operation, options: Options) -> Support:
        # Imported late: running a compiled model needs no converters.
        from crosschip.devices.litert.target import TARGET

        return TARGET.supports(operation)

    def compile(self, model: Model, options: Options) -> Program:
        from crosschip.devices.kits.tflite.lowering import lower
        from crosschip.devices.kits.tflite.model import to_bytes
        from crosschip.devices.litert.target import TARGET

        return self.load(to_bytes(lower(model, TARGET)), model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        if self._is_processor:
            return self._engine.LitertProgram(saved, model, options)
        from crosschip.devices.litert.accelerated import AcceleratedProgram

        return AcceleratedProgram(saved, model, options, self.instance)

    @property
    def _is_processor(self) -> bool:
        return self.instance in ("", "cpu")
