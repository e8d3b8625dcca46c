"""The device that runs models with LiteRT, the engine of TensorFlow Lite files.

A model of static shapes becomes a file in memory, which LiteRT's interpreter runs on the processor,
with XNNPACK where that has kernels.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec

from crosschip.hal import (
    SCHEDULING,
    Capabilities,
    Device,
    Instance,
    Kind,
    Options,
    Program,
    Sizing,
    Support,
)
from crosschip.ir import DeviceError, Model, Operation
from crosschip.ir.errors import install_command

_MISSING = f"LiteRT is not installed; {install_command('litert')}"


class LitertDevice(Device):
    """LiteRT on the processor.

    Raises:
        DeviceError: LiteRT is not installed.
    """

    vendor = "Google"
    module = "ai_edge_litert"
    startup_seconds = 0.2
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        try:
            from crosschip.devices.litert import program
        except ImportError as error:
            raise DeviceError(
                f"LiteRT cannot be imported ({error}); {install_command('litert')}"
            ) from error
        self._engine = program

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        problem = "" if find_spec(cls.module) is not None else _MISSING
        return [Instance(name="cpu", kind=Kind.CPU, description="the processor", problem=problem)]

    @property
    def version(self) -> str:
        return self._engine.VERSION

    def capabilities(self) -> Capabilities:
        return Capabilities(
            pairs=True,
            sizing=Sizing.FIXED,
            threads=True,
            max_rank=8,
            holds_weights=True,
            settable_at_load=SCHEDULING,
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

        return self._engine.LitertProgram(to_bytes(lower(model, TARGET)), model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.LitertProgram(saved, model, options)
