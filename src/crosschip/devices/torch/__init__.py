"""The device that runs models with PyTorch, on the processor and on each accelerator it knows.

An operation is one call of PyTorch where PyTorch has the function. With `torch.compile`, models of
static sizes are compiled as one graph where that is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from crosschip.devices.torch.chips import of_machine, of_process
from crosschip.hal import (
    SCHEDULING,
    Buffer,
    Capabilities,
    Device,
    Instance,
    Kind,
    Offer,
    Options,
    Program,
    Sizing,
    processor,
)
from crosschip.ir import DeviceError, ElementType, Model
from crosschip.ir.errors import importing

_COMPILE = "compile"
_MODES = ("off", "auto", "on")


class TorchDevice(Device):
    """A chip that PyTorch computes on.

    Raises:
        DeviceError: PyTorch is not installed, does not find the chip, or a property is invalid.
    """

    vendor = "PyTorch"
    module = "torch"
    startup_seconds = 3.0
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        mode = self.properties.get(_COMPILE, _MODES[0])
        if mode not in _MODES:
            raise DeviceError(f"{_COMPILE}: {mode!r} is not one of {', '.join(_MODES)}")
        with importing("PyTorch", "torch"):
            from crosschip.devices.torch import engine
        self._engine = engine.Engine(instance or of_machine()[0].name, mode)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return [*of_process(), *of_machine()]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            _COMPILE: (
                "whether models of static sizes are compiled as one graph: on, off (the default), "
                "or auto, if that is faster in a measurement; needs a C++ compiler"
            )
        }

    @property
    def version(self) -> str:
        return self._engine.version

    def capabilities(self) -> Capabilities:
        return Capabilities(
            sizing=Sizing.FREE,
            threads=True,
            tied_to=(processor(), self._engine.chip),
            settable_at_load=SCHEDULING,
        )

    def query(self, model: Model, options: Options) -> Offer:
        return Offer(self._engine.query(model))

    def operators(self) -> Collection[str]:
        from crosschip.devices.torch.converters import converters

        return converters.operators

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("torch")

    def compile(self, model: Model, options: Options) -> Program:
        return self._engine.compile(model, options, self)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, options, self)

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        return self._engine.allocate(element_type, shape, self)
