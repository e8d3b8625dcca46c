"""The device that runs models with ONNX Runtime: on the processor, or with another provider.

A model becomes an ONNX model in memory, which refers to large constants by address. Other providers
(`onnxruntime:CUDA`) must take all operations that they are given: ONNX Runtime would silently run
the others on the processor, so these are refused, and placement chooses a device for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crosschip.devices.onnxruntime import modes
from crosschip.devices.onnxruntime.quiet import import_engine
from crosschip.hal import (
    SCHEDULING,
    Capabilities,
    Device,
    Forking,
    Instance,
    Kind,
    Options,
    Performance,
    Program,
    Rule,
    Support,
    processor,
)
from crosschip.ir import DeviceError, Model, Operation
from crosschip.ir.errors import install_command

if TYPE_CHECKING:
    from crosschip.devices.onnxruntime.providers import Provider

_MISSING = f"ONNX Runtime is not installed; {install_command('onnxruntime')}"


class OnnxRuntimeDevice(Device):
    """An execution provider of ONNX Runtime, by default the processor's.

    Raises:
        DeviceError: ONNX Runtime is not installed or lacks the provider, or a property is unknown.
    """

    vendor = "Microsoft"
    module = "onnxruntime"
    startup_seconds = 0.2
    kind = Kind.CPU

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        try:
            import_engine()
            from crosschip.devices.onnxruntime import program
        except ImportError as error:
            raise DeviceError(
                f"ONNX Runtime cannot be used ({error}); {install_command('onnxruntime')}"
            ) from error
        self._engine = program
        self._provider: Provider | None = None
        if instance not in ("", "CPU"):
            # Imported late: the processor's provider needs none.
            from crosschip.devices.onnxruntime.providers import known

            self._provider = known(instance)
            program.require(self._provider)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        # Imported late: running a compiled model needs no probing.
        from importlib.util import find_spec

        from crosschip.devices.onnxruntime import providers

        problem = "" if find_spec(cls.module) is not None else _MISSING
        cpu = Instance(name="CPU", kind=Kind.CPU, description="the processor", problem=problem)
        return [cpu, *providers.instances()]

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
        if self._provider is None:
            return Capabilities(
                threads=True,
                holds_weights=True,
                loads_views=True,
                settable_at_load=SCHEDULING,
                forking=Forking.IDLE,
            )
        tied_to = (processor(), self._provider.name)
        return Capabilities(tied_to=tied_to, holds_weights=True, loads_views=True)

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        return modes.modes() if self._provider is None else {}

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        from crosschip.devices.kits.quirks import avoided_quirks

        return avoided_quirks("onnxruntime")

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        if self._provider is not None:
            return self._provider.options
        return modes.settings(options, self.properties)

    def supports(self, operation: Operation, options: Options) -> Support:
        # Imported late: running a compiled model needs no converters.
        from crosschip.devices.kits.onnx import control
        from crosschip.ir import ControlFlow, Extension
        from crosschip.ops.standard.control import Assert

        if self._provider is not None and isinstance(operation, ControlFlow | Extension | Assert):
            detail = f"is not given to {self._provider.name}"
            return Support.no(operation, "", detail, Rule.OPERATOR)
        if isinstance(operation, Extension):
            from crosschip.devices.onnxruntime import extensions

            return extensions.supports(operation)
        return control.supports(operation)

    def operators(self) -> Collection[str]:
        from crosschip.devices.kits.onnx import control

        return control.operators()

    def compile(self, model: Model, options: Options) -> Program:
        from crosschip.devices.onnxruntime import compiling

        options, spinning = self._threads(options)
        return compiling.compile(model, options, spinning=spinning, provider=self._provider)

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> Program:
        options, spinning = self._threads(options)
        return self._engine.load(saved, model, options, spinning=spinning, provider=self._provider)

    def _threads(self, options: Options) -> tuple[Options, bool]:
        """Return the options with the resulting number of threads, and whether threads spin."""
        settings = modes.settings(options, self.properties)
        threads = int(settings[modes.THREADS]) or None
        return replace(options, threads=threads), settings[modes.SPINNING] == "1"
