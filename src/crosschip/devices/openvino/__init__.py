"""The device that runs models with OpenVINO.

A model becomes an OpenVINO model in memory that shares the arrays of large constants.

Deviations of the processor plug-in that remain: DIV by a constant multiplies by its rounded inverse
(quirk `quotient-by-constant`); RELU, RELU6 and CLIP that are fused into the operation before them
map NaN to a bound; poolings ignore NaN, as their definitions allow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.quiet import import_engine
from crosschip.hal import (
    SCHEDULING,
    Capabilities,
    Device,
    Instance,
    Kind,
    Options,
    Performance,
    Program,
    Support,
    processor,
)
from crosschip.ir import ElementType, Model, Operation
from crosschip.ir.errors import importing, install_command

CAPABILITIES = Capabilities(
    holds_weights=True,
    loads_views=True,
    open_ranks=False,
    narrowed={ElementType.INT64: ElementType.INT32},
    settable_at_load=SCHEDULING,
    tied_to=(),
)
"""The capabilities that all OpenVINO devices share."""

_MISSING = f"OpenVINO is not installed; {install_command('openvino')}"
_CHIPS = (
    ("GPU", Kind.GPU, "drm/renderD*/device/vendor"),
    ("NPU", Kind.ACCELERATOR, "accel/accel*/device/vendor"),
)
"""OpenVINO's names for Intel's other chips, and the Linux files with their vendors."""


def _is_intels(vendor: Path) -> bool:
    try:
        return vendor.read_text().strip() == "0x8086"
    except OSError:
        return False


def _texts(config: Mapping[str, object]) -> dict[str, str]:
    """Return OpenVINO's settings as text."""
    return {
        name: ("YES" if value else "NO") if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


class OpenVinoDevice(Device):
    """A device of OpenVINO, by default the processor.

    Raises:
        DeviceError: OpenVINO is not installed, or does not have the device.
    """

    vendor = "Intel"
    module = "openvino"
    startup_seconds = 0.4
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        with importing("OpenVINO", "openvino"):
            import_engine()
            from crosschip.devices.openvino import program
        self._engine = program.Engine(instance or "CPU")

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        problem = "" if find_spec(cls.module) is not None else _MISSING
        instances = [
            Instance(name="CPU", kind=Kind.CPU, description="the processor", problem=problem)
        ]
        for name, kind, nodes in _CHIPS:
            if any(map(_is_intels, Path("/sys/class").glob(nodes))):
                description = f"Intel's {name}"
                instances.append(
                    Instance(name=name, kind=kind, description=description, problem=problem)
                )
        return instances

    @property
    def version(self) -> str:
        return self._engine.version

    def capabilities(self) -> Capabilities:
        return replace(
            CAPABILITIES,
            precisions=self._engine.precisions,
            threads=self.instance in ("", "CPU"),
            tied_to=(processor(), self._engine.chip, instruction_sets.setting()),
        )

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        return {mode: _texts(config) for mode, config in self._engine.modes().items()}

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("openvino")

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        return _texts(self._engine.config(options))

    def supports(self, operation: Operation, options: Options) -> Support:
        # Imported late: running a compiled model needs no converters.
        from crosschip.devices.openvino.target import TARGET
        from crosschip.hal.converters import to_support

        support = TARGET.supports(operation)
        if support and self._engine.device == "CPU":
            refusal = instruction_sets.refusal(operation)
            return support if refusal is None else to_support(operation, refusal)
        return support

    def operators(self) -> Collection[str]:
        from crosschip.devices.openvino.target import TARGET

        return TARGET.operators

    def compile(self, model: Model, options: Options) -> Program:
        from crosschip.devices.openvino.compiling import compile

        return compile(self._engine, model, options)

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> Program:
        return self._engine.load(saved, model, options)
