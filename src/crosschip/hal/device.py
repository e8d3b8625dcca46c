"""The driver contract: a `Device` compiles models to `Program`s.

It corresponds to NNAdapter's `Device` struct as follows. `open_device` and `create_context` are the
constructor (its properties are the context's), `validate_program` is `query`, `create_program` is
`compile` or `load`, `execute_program` is `Program.run`; `destroy_program` is `Program.close`, and
`destroy_context` with `close_device` is `Device.close`.
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
from crosschip.ir.source_code import code_location, state_of_files
from crosschip.ir.suggestion import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.hal.options import Options, Performance
    from crosschip.hal.program import Program
    from crosschip.hal.support import Offer, Support

CONTRACT_VERSION = 1


class CompileError(DeviceError):
    """A device failed to compile a model whose operations it had declared supported.

    Attributes:
        operations: the names of the failing operations, which are then placed on other devices. If
            empty, the runtime searches for them by compiling parts of the model.
    """

    def __init__(self, message: str, operations: Iterable[Operation] = ()) -> None:
        super().__init__(message)
        self.operations = frozenset(operation.name for operation in operations)


class DeviceLost(DeviceError):
    """A device is temporarily unavailable: its work must wait or run on another device.

    Attributes:
        seconds: the minimum time of its absence.
        device: its name, which the runtime sets.
    """

    def __init__(self, message: str, seconds: float = 0.0, device: str = "") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.device = device


class OutOfRange(DeviceError):
    """A run's inputs do not meet a condition, so the device might compute wrong results."""


class Device(Closing, ABC):
    """A chip, or an engine that drives one.

    An entry point in the group `crosschip.devices` registers a subclass under the device's name.
    Importing the subclass's module must be cheap. The constructor imports the engine, and raises
    `ImportError` or `DeviceError` if it cannot be used.

    A subclass declares `vendor`, `kind` and `version`, and defines `compile` and either `supports`
    or `query`. Everything else has a default.

    Attributes:
        contract: the contract version that the subclass implements.
        name: the device's name; for an opened device that of its entry point, with `:instance` if
            the caller selected an instance.
        vendor: the manufacturer.
        kind: the category of hardware, unless `probe` returns another one.
        module: the import name of the engine's Python package; empty if there is none. `crosschip
            devices` reports when two distributions contain it.
        startup_seconds: the usual time from opening the device to the first answer of a small model
            in a new process. `compile` with `wait=False` begins with the least.
        instance: the name of its chip, as `probe` returns it; empty for the first chip.
        properties: the settings that were passed to the constructor.
    """

    contract: ClassVar[int] = CONTRACT_VERSION
    vendor: ClassVar[str]
    kind: ClassVar[Kind]
    module: ClassVar[str] = ""
    startup_seconds: ClassVar[float] = 1.0

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
        """Return another instance for the same chip, with other settings.

        Raises:
            DeviceError: a setting is unknown.
        """
        instance = (self.instance,) if self.instance else ()
        return type(self)(properties, *instance)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        is_base = any(getattr(each, "__isabstractmethod__", False) for each in vars(cls).values())
        if not is_base and cls.query is Device.query and cls.supports is Device.supports:
            raise TypeError(f"{cls.__name__} defines neither supports nor query; define one")

    @classmethod
    def probe(cls) -> Sequence[Instance]:
        """Return the available chips, without importing or starting the engine.

        The device's name without an instance stands for the first chip. A chip that cannot be used
        is listed with its problem and remedy, such as `OpenVINO is not installed; pip install
        "crosschip[openvino]"`.
        """
        return [Instance(kind=cls.kind)]

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        """Return the supported settings, each with a line of help."""
        return {}

    @property
    @abstractmethod
    def version(self) -> str:
        """Return the version of the engine; programs saved by another version are not loaded."""

    @property
    def code(self) -> str:
        """Return a digest of the device's code if no installed package contains it, else empty.

        Programs saved by other code are not loaded, so that editing a device invalidates its cached
        programs. For installed code, `version` identifies it.
        """
        return code_of(type(self))

    @classmethod
    def code_files(cls) -> Sequence[Path]:
        """Return files of the device's code outside its Python package, as a shared library."""
        return ()

    @property
    def compile_properties(self) -> Mapping[str, str]:
        """Return the settings that affect compiled programs; by default all."""
        return self.properties

    def capabilities(self) -> Capabilities:
        """Return the facts that the runtime relies on; called once."""
        return Capabilities()

    def operators(self) -> Collection[str]:
        """Return the standard operators that it supports, for tables; empty if unknown."""
        return ()

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        """Return the engine settings that each performance mode stands for.

        A mode without engine settings is omitted.
        """
        return {}

    def avoided_quirks(self) -> Mapping[str, Sequence[str]]:
        """Return what the engine computes wrong and the device avoids, for `explain`.

        Returns:
            For each type of operator, a sentence for each quirk.
        """
        return {}

    def engine_settings(self, options: Options) -> Mapping[str, str]:
        """Return the engine settings that these options lead to, for `explain`."""
        return {}

    def query(self, model: Model, options: Options) -> Offer:
        """Return which operations of a model the device supports, and which only together.

        The runtime itself rejects operations that the capabilities exclude. By default, `supports`
        is called for each operation.
        """
        from crosschip.hal.support import Offer

        return Offer([self.supports(operation, options) for operation in model.operations])

    def supports(self, operation: Operation, options: Options) -> Support:
        """Return whether the device supports an operation, with the reason if it does not."""
        return self.query(single_operation_model(operation), options).answers[0]

    @abstractmethod
    def compile(self, model: Model, options: Options) -> Program:
        """Compile a model of operations that the device supports.

        Raises:
            CompileError: compilation failed; the error names the failing operations if they are
                known.
        """

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Restore a program from the result of `Program.save` without compiling.

        Args:
            saved: what the same version of the device saved; the cache ensures this. It is a view
                if `Capabilities.loads_views` is set.
            model: the model that the program was compiled from.
            options: the options that it was compiled with, except for those in
                `Capabilities.settable_at_load`, which may differ.

        Raises:
            DeviceError: restoring failed, or the device does not save programs.
        """
        raise DeviceError(f"{type(self).__name__} does not load saved programs")

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        """Allocate memory that the device's programs access without a copy; by default host memory.

        Raises:
            DeviceError: there is not enough memory.
        """
        return HostBuffer(np.empty(shape, element_type.dtype))

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call a function with the reason whenever the process that does the work has died.

        By default it is never called, because the work is done in this process.

        Returns:
            A function that cancels the registration.
        """
        return lambda: None

    def close(self) -> None:
        """Release the instance's resources, after its programs were closed."""


@lru_cache(maxsize=64)
def code_of(device: type[Device]) -> str:
    """Return the digest of the code of a class and its bases, as of the first call."""
    locations = [code_location(base.__module__) for base in device.__mro__]
    files = [str(path.absolute()) for path in device.code_files()]
    return state_of_files([*(location for location in locations if location is not None), *files])


def single_operation_model(operation: Operation) -> Model:
    """Return a model that consists of one operation."""
    operands = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    read = {f"input{index}": operand for index, operand in enumerate(operands)}
    outputs = {f"output{index}": operand for index, operand in enumerate(operation.outputs)}
    return Model(operation.name, read, [operation], outputs)
