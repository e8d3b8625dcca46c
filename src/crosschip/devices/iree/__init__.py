"""The device that runs models with IREE: on the processor, and on GPUs.

A model of static shapes becomes a JAX function, whose StableHLO IREE's compiler turns into a module
in a process of its own. Running a compiled module needs IREE's runtime alone: neither the compiler
nor JAX.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.devices.iree.targets import DEFAULT, Target, instances, target_of
from crosschip.hal import Capabilities, Device, Instance, Kind, Offer, Options, Program, Sizing
from crosschip.ir import Model
from crosschip.ir.errors import importing

if TYPE_CHECKING:
    from crosschip.devices.iree.compiling import Compiler


class IreeDevice(Device):
    """A target of IREE, by default the processor.

    Raises:
        DeviceError: IREE is not installed or has no such target, or a property is unknown.
    """

    vendor = "OpenXLA"
    module = "iree"
    startup_seconds = 3.0
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        with importing("IREE's runtime", "iree"):
            from crosschip.devices.iree import engine
        self._target: Target = target_of(instance or DEFAULT, self.properties)
        self._engine = engine.Engine(self._target)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        return instances()

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "target": "the machine to compile for, such as aarch64-linux-gnu for the processor, "
            "sm_80 for CUDA or gfx942 for ROCm (this machine)",
            "cpu": "the processor to compile for, as Clang names it (this one, or generic for "
            "another target)",
        }

    @property
    def version(self) -> str:
        return self._engine.version

    def capabilities(self) -> Capabilities:
        return Capabilities(
            types=self._target.types,
            sizing=Sizing.FIXED,
            data_dependent_sizes=True,
            threads=self._target.threaded,
            settable_at_load=frozenset({"threads", "performance", "in_flight", "alternates"}),
            tied_to=self._target.tied_to,
        )

    def query(self, model: Model, options: Options) -> Offer:
        return Offer(self._compiler().query(model))

    def operators(self) -> Collection[str]:
        return self._compiler().operators

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("iree")

    def compile(self, model: Model, options: Options) -> Program:
        return self.load(self._compiler().compile(model, options.precision), model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, options)

    def _compiler(self) -> Compiler:
        """Import what compiles, with JAX and the converters, and return it."""
        with importing("IREE compiles what JAX traces, which", "iree"):
            from crosschip.devices.iree.compiling import Compiler
        return Compiler(self._target)
