"""The device that runs models with OpenVINO.

A model becomes an OpenVINO model in memory, whose large constants stay where they are.

Where OpenVINO's processor plug-in departs from the operators' definitions without a way around: a
real MOD by infinity is NaN; DIV by a constant multiplies by its rounded inverse; RELU, RELU6 and
CLIP give a bound for a NaN where they are computed together with what makes their input, and
MAX_POOL_2D leaves a NaN out, as their definitions allow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crosschip.devices.openvino.quiet import import_engine
from crosschip.hal import Device, Kind, Options, Program, Support
from crosschip.ir import DeviceError, Model, Operation


class OpenVinoDevice(Device):
    """One of OpenVINO's devices, by default the processor.

    Raises:
        DeviceError: OpenVINO is not installed, lacks the device asked for, or a property is
            unknown.
    """

    vendor = "Intel"
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties)
        try:
            import_engine()
            from crosschip.devices.openvino import converters, program
        except ImportError as error:
            raise DeviceError(
                f"OpenVINO cannot be imported ({error}); pip install crosschip[openvino]"
            ) from error
        self._converters = converters.converters
        self._engine = program.Engine(self.properties.get("device", "CPU"))

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {"device": "which of OpenVINO's devices: CPU (the default), GPU, NPU, AUTO, …"}

    @property
    def version(self) -> str:
        return self._engine.version

    def supports(self, operation: Operation) -> Support:
        outputs = (("output", output) for output in operation.outputs)
        for slot, operand in (*operation.named_inputs(), *outputs):
            if operand.type.shape is None:
                return Support.no(f"{operation.type}.{slot}: its rank must be known")
        return self._converters.supports(operation)

    def operators(self) -> Collection[str]:
        return self._converters.operators

    def compile(self, model: Model, options: Options) -> Program:
        return self._engine.compile(model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, options)
