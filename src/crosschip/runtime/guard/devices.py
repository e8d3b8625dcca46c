"""The guard of a device: calls through it are checked."""

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
from crosschip.progress import task
from crosschip.runtime.guard.calls import call, kind_of
from crosschip.runtime.lifetime import check_device

if TYPE_CHECKING:
    from crosschip.lowering.type_conversion import Retyping
    from crosschip.runtime.guard.programs import GuardedProgram

T = TypeVar("T")

logger = logging.getLogger("crosschip")

_compilers: defaultdict[type[Device], threading.RLock] = defaultdict(threading.RLock)
"""A lock for each class of devices that compiles one model at a time."""


class GuardedDevice(Closing):
    """A device whose exceptions become errors and whose results are checked.

    Attributes:
        name: the name of the device, also in messages.
        device: the device itself.
        precision: the precision that replaces that of compile options; `None` to keep it.
        version, vendor, kind, capabilities, properties: the device's properties, queried once.

    Raises:
        DeviceError: a property has not the type of the driver contract.
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
            # Imported late: few devices lack types, and the import includes the operators.
            from crosschip.lowering.type_conversion import Retyping

            self._target = Retyping(device, types)
        self.properties: Mapping[str, str] = dict(
            self._checked("telling its properties", dict, lambda: device.properties)
        )

    @cached_property
    def code(self) -> str:
        """The digest of the device's code if it is in no installed distribution."""
        return self._text("code")

    @cached_property
    def compile_properties(self) -> Mapping[str, str]:
        """The settings that the device's programs depend on."""
        doing = "telling the properties that it compiles with"
        return self._checked(doing, dict, lambda: dict(self.device.compile_properties))

    def effective_options(self, options: Options) -> Options:
        """Return compile options with the device's precision."""
        if self.precision is None:
            return options
        return replace(options, precision=self.precision)

    def query(self, model: Model, options: Options) -> Offer:
        """Return the device's offer; operations without a valid answer are declined."""
        options = self.effective_options(options)
        try:
            return self._offer(model, options)
        except DeviceError as error:
            if type(self.device).query is Device.query:
                return Offer([self._answer(operation, options) for operation in model.operations])
            return Offer([_failed_query(operation, error) for operation in model.operations])

    def compile(self, model: Model, options: Options) -> GuardedProgram:
        """Compile a model.

        Raises:
            CompileError: the device failed.
        """
        try:
            check_device(self.name)
            effective = self.effective_options(options)
            with task(f"compiling {model.name} for {self.name}"), self._compiler():
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
        """Return the operators that the device supports in some form; none after an error."""
        try:
            return frozenset(call(self.name, "listing operators", self.device.operators))
        except (DeviceError, TypeError):
            return frozenset()

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        """Return the engine's settings for each performance mode; none after an error."""
        return self._mapping(self.device.modes)

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        """Return the quirks that the device avoids, by type of operator; none after an error."""
        return self._mapping(self.device.avoided_quirks)

    def allocate(self, element_type: ElementType, shape: Sequence[int]) -> Buffer:
        """Allocate memory of the device.

        Raises:
            DeviceError: the device does not have enough.
        """
        return call(self.name, "allocating memory", self.device.allocate, element_type, shape)

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        """Return the engine's settings for compile options; none after an error."""
        return self._mapping(self.device.engine_settings, self.effective_options(options))

    def close(self) -> None:
        """Close the device; log its error as a warning."""
        try:
            call(self.name, "closing", self.device.close)
        except DeviceError as error:
            logger.warning("%s", error)

    def _compiler(self) -> AbstractContextManager[object]:
        """Return the context of a compilation: a lock if the device compiles one at a time."""
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
            self._raise_violation(f"answered with {kind_of(offer)}, not with an Offer")
        answers, groups = (
            call(self.name, "answering", tuple, part) for part in (offer.answers, offer.groups)
        )
        if len(answers) != count:
            self._raise_violation(f"gave {len(answers)} answers about {count} operations")
        for answer in answers:
            if not isinstance(answer, Support):
                self._raise_violation(f"answered with {kind_of(answer)}, not with Support")
        call(self.name, "answering", _check_groups, groups, count)
        return Offer(answers, groups)

    def _answer(self, operation: Operation, options: Options) -> Support:
        """Return the answer about one operation, after the query about all has failed."""
        try:
            answer = call(self.name, "answering", self._target.supports, operation, options)
            if not isinstance(answer, Support):
                self._raise_violation(f"answered with {kind_of(answer)}, not with Support")
            return answer
        except DeviceError as error:
            return _failed_query(operation, error)

    def _program(self, doing: str, program: object, model: Model) -> GuardedProgram:
        if not isinstance(program, Program):
            self._raise_violation(f"returned {kind_of(program)} while {doing}, not a Program")
        # Imported late, while the engine loads its program.
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
            self._raise_violation(
                f"answered with {kind_of(answer)} while {doing}, not with {kind.__name__}"
            )
        return answer

    def _raise_violation(self, how: str) -> NoReturn:
        raise DeviceError(f"{self.name}: {how}; the device breaks the driver contract")


def _failed_query(operation: Operation, error: DeviceError) -> Support:
    """Return the refusal of an operation after an error of the device."""
    return Support.no(operation, "", str(error), Rule.FAILURE)


def _check_groups(groups: Sequence[Any], count: int) -> None:
    members = [index for group in groups for index in group.operations]
    if len(set(members)) < len(members) or not all(0 <= index < count for index in members):
        raise ValueError("its groups are not disjoint sets of the model's operations")


def on_death(
    devices: Iterable[GuardedDevice], callback: Callable[[str], None]
) -> Callable[[], None]:
    """Register a callback for the death of devices' driver processes.

    Returns:
        A function that removes the callback.
    """
    removals = [
        call(device.name, "taking note", device.device.on_death, callback)
        for device in {id(item.device): item for item in devices}.values()
    ]

    def remove() -> None:
        for item in removals:
            item()

    return remove
