"""The device that runs models with XLA, through JAX: on the processor, on GPUs and on TPUs.

A model of static shapes becomes a JAX function, which XLA compiles. Weights are its arguments: the
chip holds them once for all sets of input shapes that the runtime compiles.

JAX's 64-bit types are enabled around each use, not for the whole process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from crosschip.devices.xla.chips import chips
from crosschip.hal import (
    Buffer,
    Capabilities,
    Device,
    Instance,
    Kind,
    Offer,
    Options,
    Precision,
    Program,
    Sizing,
    processor,
)
from crosschip.ir import ElementType, Model
from crosschip.ir.errors import importing


class XlaDevice(Device):
    """A chip that XLA compiles for.

    Raises:
        DeviceError: JAX is not installed, or does not find the chip.
    """

    vendor = "OpenXLA"
    module = "jax"
    startup_seconds = 2.0
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        with importing("JAX", "xla"):
            from crosschip.devices.xla import engine
        self._engine = engine.Engine(instance or chips()[0].name)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return chips()

    @property
    def version(self) -> str:
        return self._engine.version

    def capabilities(self) -> Capabilities:
        return Capabilities(
            precisions=frozenset(Precision),
            sizing=Sizing.FIXED,
            data_dependent_sizes=True,
            tied_to=(processor(), self._engine.chip),
        )

    def query(self, model: Model, options: Options) -> Offer:
        from crosschip.devices.kits.stablehlo.support import query

        return Offer(query(model, self._engine.emission))

    def operators(self) -> Collection[str]:
        return self._engine.emission.converters.operators

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("xla")

    def compile(self, model: Model, options: Options) -> Program:
        return self._engine.compile(model, options, self)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, self)

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        return self._engine.allocate(element_type, shape, self)
