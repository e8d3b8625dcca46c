"""The device that runs models with ONNX Runtime, on the processor.

A model becomes an ONNX model in memory; large constants stay where they are and are handed over by
address.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec

from crosschip.devices.onnxruntime.quiet import import_engine
from crosschip.hal import Capabilities, Device, Instance, Kind, Options, Program, Support
from crosschip.ir import DeviceError, Extension, Model, Operation

_MISSING = "ONNX Runtime is not installed; pip install crosschip[onnxruntime]"


class OnnxRuntimeDevice(Device):
    """ONNX Runtime's processor provider.

    Raises:
        DeviceError: ONNX Runtime is not installed, or a property is unknown.
    """

    vendor = "Microsoft"
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        try:
            import_engine()
            from crosschip.devices.onnxruntime import extensions, program
            from crosschip.hal.onnx import control
        except ImportError as error:
            raise DeviceError(
                f"ONNX Runtime cannot be used ({error}); pip install -U crosschip[onnxruntime]"
            ) from error
        self._control = control
        self._extensions = extensions
        self._engine = program
        self._spinning = self.properties.get("spinning", "1") != "0"

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        installed = find_spec("onnxruntime") is not None
        problem = "" if installed else _MISSING
        return [Instance(kind=Kind.CPU, description="the processor", problem=problem)]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "spinning": "1: idle threads wait for work in a loop, for the lowest latency (the "
            "default); 0: they sleep, and leave the processor to others"
        }

    @property
    def version(self) -> str:
        return self._engine.VERSION

    def capabilities(self) -> Capabilities:
        return Capabilities(threads=True)

    def supports(self, operation: Operation, options: Options) -> Support:
        if isinstance(operation, Extension):
            return self._extensions.supports(operation)
        return self._control.supports(operation)

    def operators(self) -> Collection[str]:
        return self._control.operators()

    def compile(self, model: Model, options: Options) -> Program:
        return self._engine.compile(model, options, spinning=self._spinning)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, options, spinning=self._spinning)
