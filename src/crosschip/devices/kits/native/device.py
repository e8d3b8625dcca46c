"""Devices whose driver is a C library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakSet

from crosschip.devices.kits.native.description import Description, options_in_c
from crosschip.devices.kits.native.interface import codes, foreign, members
from crosschip.devices.kits.native.library import Library, open_library
from crosschip.devices.kits.native.memory import NativeBuffer
from crosschip.devices.kits.native.program import NativeProgram, SubmittingProgram
from crosschip.hal.buffers import Buffer
from crosschip.hal.capabilities import Capabilities, Instance, Kind, Precision, Sizing
from crosschip.hal.device import CompileError, Device, single_operation_model
from crosschip.hal.options import Options
from crosschip.hal.program import Program
from crosschip.hal.support import Estimate, Offer, Rule, Support
from crosschip.ir import DeviceError, ElementType, Model, Operation
from crosschip.ops import Operator

_NARROW_BITS = 32
_NARROWED = {ElementType.INT64: ElementType.INT32}


class NativeDevice(Device):
    """A device driven by a shared library that implements the contract in C.

    The driver defines the meaning of properties.

    Attributes:
        library: the file.
        driver: the name after `__nnadapter_device__`; by default that of the file.
    """

    library: ClassVar[Path]
    driver: ClassVar[str] = ""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.properties = dict(properties or {})
        self._library = self._open()
        self._device = self._library.acquire()
        self._context: Any = None
        handle = foreign().new("void **")
        settings = ";".join(f"{key}={value}" for key, value in self.properties.items())
        try:
            self._library.call("create_context", self._device, settings.encode(), handle)
        except DeviceError:
            self._library.release()
            raise
        self._context = handle[0]
        self._buffers: WeakSet[NativeBuffer] = WeakSet()

    @classmethod
    def _open(cls) -> Library:
        return open_library(cls.library, cls.driver or cls.library.stem.removeprefix("lib"))

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        try:
            library = cls._open()
        except (DeviceError, ImportError) as error:
            return [Instance(kind=Kind.ACCELERATOR, problem=str(error))]
        return [Instance(kind=library.kind, simulated=library.simulated)]

    @property
    def vendor(self) -> str:  # type: ignore[override]  # known to the driver, not the class
        return self._library.vendor

    @property
    def kind(self) -> Kind:  # type: ignore[override]  # known to the driver, not the class
        kind: Kind = self._library.kind
        return kind

    @classmethod
    def code_files(cls) -> Sequence[Path]:
        return [cls.library]

    @property
    def version(self) -> str:
        return self._library.version

    def capabilities(self) -> Capabilities:
        ffi, default = foreign(), Capabilities()
        structure = ffi.new(
            "crosschip_capabilities *",
            {
                "size": ffi.sizeof("crosschip_capabilities"),
                "precisions": 1 << codes(Precision)[Precision.FLOAT32],
                "sizing": codes(Sizing)[Sizing.FREE],
                "alignment": 1,
                "types": sum(1 << code for code in codes(ElementType).values()),
                "int64_bits": 64,
            },
        )
        if self._library.function("get_capabilities") is not None:
            self._library.call("get_capabilities", self._context, structure)
        return Capabilities(
            precisions=frozenset(
                p for p, code in codes(Precision).items() if structure.precisions >> code & 1
            ),
            types=frozenset(
                t for t, code in codes(ElementType).items() if structure.types >> code & 1
            ),
            narrowed=_NARROWED if structure.int64_bits == _NARROW_BITS else {},
            sizing=members(Sizing)[structure.sizing],
            threads=bool(structure.threads),
            max_rank=structure.max_rank or None,
            concurrency=structure.concurrency or None,
            parallel_compile=not structure.serial_compile,
            alignment=structure.alignment,
            tied_to=default.tied_to,
        )

    def query(self, model: Model, options: Options) -> Offer:
        if all(isinstance(operation, Operator) for operation in model.operations):
            return Offer(self._answers(model, options))
        return Offer([self.supports(operation, options) for operation in model.operations])

    def supports(self, operation: Operation, options: Options) -> Support:
        if not isinstance(operation, Operator):
            return Support.no(operation, "", "is no standard operator", Rule.OPERATOR)
        return self._answers(single_operation_model(operation), options)[0]

    def _answers(self, model: Model, options: Options) -> list[Support]:
        ffi = foreign()
        answers = ffi.new("crosschip_answer[]", max(1, len(model.operations)))
        described, options_pointer = Description(model), options_in_c(options)
        self._library.call(
            "validate_program", self._context, described.pointer, options_pointer, answers
        )
        return [
            _support(operation, answers[index]) for index, operation in enumerate(model.operations)
        ]

    def compile(self, model: Model, options: Options) -> Program:
        ffi, described = foreign(), Description(model)
        at_fault, handle = ffi.new("uint8_t[]", max(1, len(model.operations))), ffi.new("void **")
        arguments = (described.pointer, options_in_c(options), at_fault, handle)
        try:
            self._library.call("create_program", self._context, *arguments)
        except DeviceError as error:
            named = [o for index, o in enumerate(model.operations) if at_fault[index]]
            raise CompileError(str(error), named) from error
        return self._program(handle[0], model, described.constants)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        if self._library.function("load_program") is None:
            raise DeviceError(f"{self.name} does not load saved programs")
        ffi, described, handle = foreign(), Description(model), foreign().new("void **")
        saved_pointer = ffi.from_buffer(saved)
        arguments = (saved_pointer, len(saved), described.pointer, options_in_c(options), handle)
        self._library.call("load_program", self._context, *arguments)
        return self._program(handle[0], model, [*described.constants, saved])

    def _program(self, handle: Any, model: Model, keep_alive: Sequence[object]) -> Program:
        submits = ("submit_program", "allocate_memory")
        if any(self._library.function(name) is not None for name in submits):
            return SubmittingProgram(self._library, handle, model, keep_alive, self.allocate)
        return NativeProgram(self._library, handle, model, keep_alive)

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        if self._library.function("allocate_memory") is None:
            return super().allocate(element_type, shape)
        buffer = NativeBuffer(self, self._library, self._context, element_type, shape)
        self._buffers.add(buffer)
        return buffer

    def close(self) -> None:
        if self._context is not None:
            for buffer in list(self._buffers):
                buffer.free()
            self._library.driver.destroy_context(self._context)
            self._library.release()
            self._context = None


def _support(operation: Operation, answer: Any) -> Support:
    ffi = foreign()
    slot = ffi.string(answer.slot).decode("utf-8", "replace")
    detail = ffi.string(answer.detail).decode("utf-8", "replace")
    if not answer.supported:
        rule = members(Rule).get(answer.rule, Rule.VALUE)
        return Support.no(operation, slot, detail or "is not supported", rule)
    if not (answer.seconds or answer.bytes):
        return Support(True, detail=detail)
    return Support(
        True, detail=detail, estimate=Estimate(answer.seconds or None, answer.bytes or None)
    )
