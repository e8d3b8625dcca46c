"""The driver of the fake NPU: what makes a vendor's chip a device of crosschip."""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence

import fake_npu_ddk as ddk
from crosschip.devices.kits.toolchain.program import OutputMap
from crosschip.hal import (
    Buffer,
    Capabilities,
    CompileError,
    Device,
    Instance,
    Kind,
    Layout,
    Offer,
    Options,
    Precision,
    Program,
    Sizing,
)
from crosschip.ir import DeviceError, ElementType, Model
from fake_npu import saved as form
from fake_npu.answers import offer
from fake_npu.converters import converters
from fake_npu.forms import BYTES, REALS, Form
from fake_npu.lowering import lower
from fake_npu.memory import NpuBuffer, failure
from fake_npu.program import NpuProgram, WithKnownOutputs

_MEBIBYTE = 1 << 20


class FakeNpuDevice(Device):
    """A neural processor for quantized images, played by software."""

    vendor = "Fake Semiconductors"
    kind = Kind.ACCELERATOR

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        super().__init__(properties, instance)
        self._memory = self._number("memory", ddk.MEMORY // _MEBIBYTE, 1, 4096) * _MEBIBYTE
        self._effort = self._number("effort", 1, 1, 3)
        wished = self.properties.get("precision", "float16")
        if wished != "float16":
            raise DeviceError(f"property precision is {wished!r}, but can only be float16")
        self._half = "precision" in self.properties
        self._chip = ddk.Chip(self._memory)

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        about = "Fake NPU 1, in software"
        return [Instance(kind=cls.kind, description=about, memory=ddk.MEMORY, simulated=True)]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {
            "memory": f"the chip's memory in MiB ({ddk.MEMORY // _MEBIBYTE})",
            "effort": "how long the compiler searches, 1 to 3 (1)",
            "precision": "float16: compute float32 operations in float16 on this device, whatever "
            "the precision that other devices are asked for",
        }

    @property
    def version(self) -> str:
        return ddk.VERSION

    def capabilities(self) -> Capabilities:
        return Capabilities(
            precisions=frozenset({Precision.FLOAT16}),
            pairs=True,
            types=REALS | BYTES | {ElementType.INT32},
            sizing=Sizing.FIXED,
            max_rank=4,
            layouts=(Layout.NHWC,),
            concurrency=1,
            compile_names_unsupported=True,
            tied_to=(f"{self._memory} bytes",),
            holds_weights=True,
        )

    def operators(self) -> Collection[str]:
        return converters.operators

    def query(self, model: Model, options: Options) -> Offer:
        return offer(model, half=self._in_half(options))

    def compile(self, model: Model, options: Options) -> Program:
        outputs = OutputMap(model)
        if not outputs.requested.outputs:
            return WithKnownOutputs(None, outputs)
        lowered = lower(outputs.requested, half=self._in_half(options))
        try:
            code = ddk.compile(lowered.graph, self._memory, self._effort)
        except ddk.NpuError as error:
            raise CompileError(str(failure(error))) from error
        return self._program(form.Parts(code, lowered.feeds, lowered.results), outputs, model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        outputs = OutputMap(model)
        if not saved:
            return WithKnownOutputs(None, outputs)
        try:
            return self._program(form.read(saved), outputs, model)
        except (ValueError, KeyError, TypeError, struct.error) as error:
            raise DeviceError(f"fake_npu: this is no saved program: {error}") from error

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        stored = element_type in BYTES or element_type is ElementType.FLOAT16
        if not stored or len(shape) > 4 or 0 in shape:
            return super().allocate(element_type, shape)
        return NpuBuffer(self._chip, Form(element_type, shape), self)

    def close(self) -> None:
        self._chip.close()

    def _program(self, parts: form.Parts, outputs: OutputMap, model: Model) -> Program:
        program = NpuProgram(parts, self._chip, self)
        plain = len(outputs.requested.outputs) == len(model.outputs)
        return program if plain else WithKnownOutputs(program, outputs)

    def _in_half(self, options: Options) -> bool:
        """Tell whether float32 operations are to be computed in float16."""
        return self._half or options.precision is Precision.FLOAT16

    def _number(self, name: str, default: int, least: int, most: int) -> int:
        given = self.properties.get(name, str(default))
        if not given.isdecimal() or not least <= int(given) <= most:
            raise DeviceError(f"property {name} is {given!r}, but must be {least} to {most}")
        return int(given)
