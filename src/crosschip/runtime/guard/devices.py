"""Devices as the runtime uses them."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from crosschip.hal import (
    Buffer,
    Capabilities,
    CompileError,
    Device,
    Kind,
    Offer,
    Options,
    Performance,
    Precision,
    Program,
    Rule,
    Support,
)
from crosschip.ir import (
    DeviceError,
    ElementType,
    Model,
    Operation,
)
from crosschip.ir.closing import Closing
from crosschip.runtime.guard.calls import call, kind_of
from crosschip.runtime.lifetime import check_device

if TYPE_CHECKING:
    from crosschip.lowering.type_conversion import Retyping
    from crosschip.runtime.guard.programs import GuardedProgram

T = TypeVar("T")

logger = logging.getLogger("crosschip")

_compilers: defaultdict[type[Device], threading.RLock] = defaultdict(threading.RLock)
"""The lock of each class of devices that compiles one model at a time."""


class GuardedDevice(Closing):
    """A device as the runtime uses it.

    Attributes:
        name: what the device is called, here and in every message.
        device: the device itself.
        precision: the one that it computes in, whatever a compilation is to; `None` for that.
        version, vendor, kind, capabilities, properties: what it says of itself, asked for once.

    Raises:
        DeviceError: it does not say what it is in the types that the contract asks for.
    """

    def __init__(self, device: Device, name: str, precision: Precision | None = None) -> None:
        self.name = name
        self.device = device
        self.precision = precision
        self.version = self._text("version")
        self.vendor = self._text("vendor")
        self.kind = self._checked("telling its kind", Kind, lambda: device.kind)
        self.capabilities = self._checked(
            "telling its capabilities", Capabilities, lambda: device.capabilities()
        )
        types = self.capabilities.lacking
        self._target: Device | Retyping = device
        if types:
            # Few devices lack any, and it needs the operators.
            from crosschip.lowering.type_conversion import Retyping

            self._target = Retyping(device, types)
        self.properties: Mapping[str, str] = dict(
            self._checked("telling its properties", dict, lambda: device.properties)
        )

    @cached_property
    def code(self) -> str:
        """The digest of the device's code, where no installed distribution holds it."""
        return self._text("code")

    @cached_property
    def compile_properties(self) -> Mapping[str, str]:
        """The settings that its programs depend on."""
        doing = "telling the properties that it compiles with"
        return self._checked(doing, dict, lambda: dict(self.device.compile_properties))

    def effective_options(self, options: Options) -> Options:
        """The options of a compilation as they are for this device."""
        if self.precision is None:
            return options
        return replace(options, precision=self.precision)

    def query(self, model: Model, options: Options) -> Offer:
        """The device's answer about every operation; where it is no answer, the device declines."""
        options = self.effective_options(options)
        try:
            return self._offer(model, options)
        except DeviceError as error:
            if type(self.device).query is Device.query:
                return Offer([self._answer(operation, options) for operation in model.operations])
            return Offer([_silent(operation, error) for operation in model.operations])

    def compile(self, model: Model, options: Options) -> GuardedProgram:
        """Compile.

        Raises:
            CompileError: the device failed.
        """
        try:
            check_device(self.name)
            effective = self.effective_options(options)
            with self._compiler():
                program = call(self.name, "compiling", self._target.compile, model, effective)
            return self._program("compiling", program, model)
        except CompileError:
            raise
        except DeviceError as error:
            raise CompileError(str(error)) from error.__cause__

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> GuardedProgram:
        """Load a saved program.

        Raises:
            DeviceError: the device failed.
        """
        check_device(self.name)
        doing, effective = "loading a saved program", self.effective_options(options)
        if not self.capabilities.loads_views:
            saved = bytes(saved)
        return self._program(
            doing, call(self.name, doing, self._target.load, saved, model, effective), model
        )

    def operators(self) -> Collection[str]:
        """The operators that it runs in some form; none if it fails to say."""
        try:
            return frozenset(call(self.name, "listing operators", self.device.operators))
        except (DeviceError, TypeError):
            return frozenset()

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        """The engine's settings that performance modes stand for; none if it fails to say."""
        return self._mapping(self.device.modes)

    def allocate(self, element_type: ElementType, shape: Sequence[int]) -> Buffer:
        """Allocate memory of the device.

        Raises:
            DeviceError: the device does not have enough.
        """
        return call(self.name, "allocating memory", self.device.allocate, element_type, shape)

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        """The settings that the engine gets for these options; none if it fails to say."""
        return self._mapping(self.device.engine_settings, self.effective_options(options))

    def close(self) -> None:
        """Close the device; if it fails to, that is a warning."""
        try:
            call(self.name, "closing", self.device.close)
        except DeviceError as error:
            logger.warning("%s", error)

    def _compiler(self) -> AbstractContextManager[object]:
        """What a compilation holds: a lock if the device compiles one model at a time."""
        if self.capabilities.parallel_compile:
            return nullcontext()
        return _compilers[type(self.device)]

    def _mapping(
        self, tell: Callable[..., Mapping[Any, Any]], *arguments: Options
    ) -> dict[Any, Any]:
        try:
            return dict(call(self.name, "telling its settings", tell, *arguments))
        except (DeviceError, TypeError, ValueError) as error:
            logger.warning("%s", error)
            return {}

    def _offer(self, model: Model, options: Options) -> Offer:
        offer = call(self.name, "answering", self._target.query, model, options)
        count = len(model.operations)
        if not isinstance(offer, Offer):
            self._broke(f"answered with {kind_of(offer)}, not with an Offer")
        answers, groups = (
            call(self.name, "answering", tuple, part) for part in (offer.answers, offer.groups)
        )
        if len(answers) != count:
            self._broke(f"gave {len(answers)} answers about {count} operations")
        for answer in answers:
            if not isinstance(answer, Support):
                self._broke(f"answered with {kind_of(answer)}, not with Support")
        call(self.name, "answering", _check_groups, groups, count)
        return Offer(answers, groups)

    def _answer(self, operation: Operation, options: Options) -> Support:
        """The answer about one operation, where one about another broke off all of them."""
        try:
            answer = call(self.name, "answering", self._target.supports, operation, options)
            if not isinstance(answer, Support):
                self._broke(f"answered with {kind_of(answer)}, not with Support")
            return answer
        except DeviceError as error:
            return _silent(operation, error)

    def _program(self, doing: str, program: object, model: Model) -> GuardedProgram:
        if not isinstance(program, Program):
            self._broke(f"returned {kind_of(program)} while {doing}, not a Program")
        # Imported while the engine loads its program, where there is one to load.
        from crosschip.runtime.guard.programs import GuardedProgram

        alignment = self.capabilities.alignment
        return GuardedProgram(self.name, self.device, program, model, alignment)

    def _text(self, attribute: str) -> str:
        return self._checked(
            f"telling its {attribute}", str, lambda: getattr(self.device, attribute)
        )

    def _checked(self, doing: str, kind: type[T], ask: Callable[[], object]) -> T:
        answer = call(self.name, doing, ask)
        if not isinstance(answer, kind):
            self._broke(f"answered with {kind_of(answer)} while {doing}, not with {kind.__name__}")
        return answer

    def _broke(self, how: str) -> NoReturn:
        raise DeviceError(f"{self.name}: {how}; the device breaks the driver contract")


def _silent(operation: Operation, error: DeviceError) -> Support:
    """The answer about an operation that the device fails to give."""
    return Support.no(operation, "", str(error), Rule.FAILURE)


def _check_groups(groups: Sequence[Any], count: int) -> None:
    members = [index for group in groups for index in group.operations]
    if len(set(members)) < len(members) or not all(0 <= index < count for index in members):
        raise ValueError("its groups are not disjoint sets of the model's operations")


def on_death(
    devices: Iterable[GuardedDevice], callback: Callable[[str], None]
) -> Callable[[], None]:
    """Call a function whenever the driver process of a device dies; see `CompiledModel.on_death`.

    Returns:
        A function that removes the callback.
    """
    removals = [
        call(device.name, "taking note", device.device.on_death, callback)
        for device in {id(one.device): one for one in devices}.values()
    ]

    def remove() -> None:
        for one in removals:
            one()

    return remove
