"""The driver contract: a `Device` that compiles models to `Program`s.

How NNAdapter's `Device` struct maps on it: `open_device` and `create_context` make an instance (its
properties are the context's), `validate_program` is `query`, `create_program` is `compile` or
`load`, `execute_program` is `Program.run`, and `destroy_program`, `destroy_context` and
`close_device` are the two `close`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crosschip.hal.buffers import Buffer, HostBuffer
from crosschip.hal.capabilities import Capabilities, Instance, Kind
from crosschip.ir import DeviceError, ElementType, Model, Operation
from crosschip.ir.closing import Closing
from crosschip.ir.source_code import place_of, state_of_files
from crosschip.ir.suggestion import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.hal.options import Options, Performance
    from crosschip.hal.program import Program
    from crosschip.hal.support import Offer, Support

CONTRACT_VERSION = 1


class CompileError(DeviceError):
    """A device does not compile a model that it had said yes to.

    Attributes:
        operations: the names of the operations at fault, which go elsewhere; empty if the device
            cannot tell, and they are to be found by compiling less and less.
    """

    def __init__(self, message: str, operations: Iterable[Operation] = ()) -> None:
        super().__init__(message)
        self.operations = frozenset(operation.name for operation in operations)


class DeviceLost(DeviceError):
    """A device is gone, for now: what it runs has to go elsewhere, or wait.

    Attributes:
        seconds: how long it will be gone at least.
        device: its name, once the runtime has seen the error.
    """

    def __init__(self, message: str, seconds: float = 0.0, device: str = "") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.device = device


class OutOfRange(DeviceError):
    """A run that a device might compute wrong, since its inputs do not meet a condition."""


class Device(Closing, ABC):
    """A chip, or an engine that drives one.

    A subclass becomes known to crosschip by an entry point of the group `crosschip.devices`, whose
    name is the device's. Importing the subclass's module must be cheap; what it drives is imported
    when an instance is made, which raises `ImportError` or `DeviceError` if it cannot be used.

    A subclass says what it is (`vendor`, `kind`, `version`), and defines `compile` and one of
    `supports` and `query`. All else has a default.

    Attributes:
        contract: the version of the contract that the subclass is written for.
        name: what the device is called; that of its entry point once crosschip has opened it, with
            the instance's behind a colon if one was asked for.
        vendor: who makes the device.
        kind: the sort of hardware that it is, where `probe` says nothing else.
        module: the Python package of the engine that the device drives, as it is imported; empty
            if there is none. `crosschip devices` tells where two distributions contain it.
        instance: the name of the chip that it drives, as `probe` gives it; empty for the first.
        properties: the settings that this instance was made with.
    """

    contract: ClassVar[int] = CONTRACT_VERSION
    vendor: ClassVar[str]
    kind: ClassVar[Kind]
    module: ClassVar[str] = ""

    def __init__(self, properties: Mapping[str, str] | None = None, instance: str = "") -> None:
        self.name = type(self).__name__.removesuffix("Device").lower()
        self.instance = instance
        self.properties = dict(properties or {})
        unknown = sorted(set(self.properties) - set(self.known_properties()))
        if unknown:
            known = ", ".join(self.known_properties()) or "none"
            raise DeviceError(
                f"{type(self).__name__} has no property {unknown[0]!r}"
                f"{did_you_mean(unknown[0], self.known_properties())}; it knows: {known}"
            )

    def another(self, properties: Mapping[str, str]) -> Device:
        """A second instance for the same chip, with these settings.

        Raises:
            DeviceError: it does not know one of the settings.
        """
        which = (self.instance,) if self.instance else ()
        return type(self)(properties, *which)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        is_base = any(getattr(each, "__isabstractmethod__", False) for each in vars(cls).values())
        if not is_base and cls.query is Device.query and cls.supports is Device.supports:
            raise TypeError(f"{cls.__name__} defines neither supports nor query; define one")

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        """The chips that there are, found without importing or starting what drives them.

        The first is the one that the device's name alone stands for. A chip that cannot be used is
        there with its problem and its remedy, as in `OpenVINO is not installed; pip install
        "crosschip[openvino]"`.
        """
        return [Instance(kind=cls.kind)]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        """The settings that an instance takes, each with a line that says what it does."""
        return {}

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of what does the work; a program saved by another one is not loaded."""

    @property
    def code(self) -> str:
        """A digest of the device's own code where no installed distribution holds it; else empty.

        A program saved by other code is not loaded, so that a device that is edited in place does
        not get what it compiled before. Where a distribution holds the code, `version` must tell.
        """
        return code_of(type(self))

    @classmethod
    def code_files(cls) -> Sequence[Path]:
        """Files besides its Python package that belong to its code, such as a shared library."""
        return ()

    @property
    def compile_properties(self) -> Mapping[str, str]:
        """The settings that its programs depend on: all of them, unless the subclass says less."""
        return self.properties

    def capabilities(self) -> Capabilities:
        """The facts on which the runtime relies; asked for once."""
        return Capabilities()

    def operators(self) -> Collection[str]:
        """The standard operators that it runs in some form, for tables; empty if it cannot say."""
        return ()

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        """The engine's own settings that a performance mode stands for, in the engine's words.

        A mode that is left out is one for which the engine offers nothing.
        """
        return {}

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        """The engine's real settings for these options, in its own words, for `explain`."""
        return {}

    def query(self, model: Model, options: Options) -> Offer:
        """Say which operations of a model the device runs, and which only together.

        The runtime declines by itself what does not fit the device's capabilities, whatever the
        answer about it. The default asks `supports` about each operation on its own.
        """
        from crosschip.hal.support import Offer

        return Offer([self.supports(operation, options) for operation in model.operations])

    def supports(self, operation: Operation, options: Options) -> Support:
        """Support of the operation as it stands in its model, with the reason if there is none."""
        return self.query(alone(operation), options).answers[0]

    @abstractmethod
    def compile(self, model: Model, options: Options) -> Program:
        """Compile a model of operations that the device supports.

        Raises:
            CompileError: the device failed; it names the operations at fault if it can.
        """

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Make a program from what `Program.save` gave, without compiling.

        Args:
            saved: what this version of the device saved, unchanged: the cache has seen to it. It is
                a view where `Capabilities.loads_views` says so.
            model: the model that it was compiled from.
            options: the options that it was compiled with, but for those that
                `Capabilities.settable_at_load` names, which may be others.

        Raises:
            DeviceError: the device failed, or does not save programs.
        """
        raise DeviceError(f"{type(self).__name__} does not load saved programs")

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        """Memory that the device's programs read and write without copying: by default, the host's.

        Raises:
            DeviceError: there is not so much.
        """
        return HostBuffer(np.empty(shape, element_type.dtype))

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Have a function called each time what does the work has died, with the reason.

        By default it never is: what works in this process does not die alone.

        Returns:
            A function that ends it.
        """
        return lambda: None

    def close(self) -> None:
        """Release what the instance holds; its programs are closed before."""


@lru_cache(maxsize=64)
def code_of(device: type[Device]) -> str:
    """The digest of the code of a class and its bases, as it was when first asked for."""
    places = [place_of(base.__module__) for base in device.__mro__]
    files = [str(path.absolute()) for path in device.code_files()]
    return state_of_files([*(place for place in places if place is not None), *files])


def alone(operation: Operation) -> Model:
    """A model of one operation."""
    operands = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    read = {f"input{index}": operand for index, operand in enumerate(operands)}
    outputs = {f"output{index}": operand for index, operand in enumerate(operation.outputs)}
    return Model(operation.name, read, [operation], outputs)
