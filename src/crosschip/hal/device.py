"""What a hardware vendor writes: a `Device` that compiles models to `Program`s.

How NNAdapter's `Device` struct maps on it: `open_device` and `create_context` make an instance (its
properties are the context's), `validate_program` is `supports`, `create_program` is `compile` or
`load`, `execute_program` is `Program.run`, and `destroy_program`, `destroy_context` and
`close_device` are the two `close`.
"""

from __future__ import annotations

import platform
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from crosschip.hal.support import Support
from crosschip.ir import Array, DeviceError, Model, Operation
from crosschip.ir.closing import Closing


class Kind(Enum):
    """What sort of hardware a device is."""

    CPU = "cpu"
    GPU = "gpu"
    ACCELERATOR = "accelerator"


class Precision(Enum):
    """What floating-point arithmetic a device may use for a float32 model."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile; the same words mean the same on every device.

    Args:
        precision: the arithmetic for float32 operations; a device that cannot do it refuses.
        threads: how many processor threads a run may use; `None` leaves it to the device.
    """

    precision: Precision = Precision.FLOAT32
    threads: int | None = None


class Program(ABC):
    """A compiled model. Runs may overlap: `run` is called from many threads at once."""

    @abstractmethod
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        """Compute the outputs.

        Args:
            inputs: one C-contiguous array for each model input, in order, of its element type and
                of a shape that its type allows; never written to, and not kept after the run.

        Returns:
            One C-contiguous array for each model output, in order; the caller owns them.

        Raises:
            DeviceError: the device failed.
        """

    def save(self) -> bytes | None:
        """What `Device.load` makes the same program from; `None` if the device cannot."""
        return None

    def close(self) -> None:  # noqa: B027 - most programs have nothing to release
        """Release what the program holds; it is not run afterwards."""


class Device(Closing, ABC):
    """A chip, or an engine that drives one.

    A subclass becomes known to crosschip by an entry point of the group `crosschip.devices`, whose
    name is the device's. Importing the subclass's module must be cheap; what it drives is imported
    when an instance is made, which raises `ImportError` or `DeviceError` if it cannot be used.

    Attributes:
        name: what the device is called; that of its entry point once crosschip has opened it.
        vendor: who makes the device.
        kind: what sort of hardware it is.
        properties: the settings that this instance was made with.
    """

    vendor: ClassVar[str]
    kind: ClassVar[Kind]

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self.name = type(self).__name__.removesuffix("Device").lower()
        self.properties = dict(properties or {})
        unknown = sorted(set(self.properties) - set(self.known_properties()))
        if unknown:
            known = ", ".join(self.known_properties()) or "none"
            raise DeviceError(
                f"{type(self).__name__} has no property {unknown[0]!r}; it knows: {known}"
            )

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        """The settings that an instance takes, each with a line that says what it does."""
        return {}

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of what does the work; a program saved by another one is not loaded."""

    def machine(self) -> str:
        """What else a saved program is tied to: by default, the processor and its features."""
        return _processor()

    @abstractmethod
    def supports(self, operation: Operation) -> Support:
        """Whether the device runs the operation as it stands in its model, and if not, why."""

    def operators(self) -> Collection[str]:
        """The standard operators that it runs in some form, for tables; empty if it cannot say."""
        return ()

    @abstractmethod
    def compile(self, model: Model, options: Options) -> Program:
        """Compile a model of operations that the device supports.

        Raises:
            DeviceError: the device failed, or cannot do what the options ask.
        """

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Make a program from what `Program.save` gave, without compiling.

        Args:
            saved: what this version of the device saved.
            model: the model that it was compiled from.
            options: the options that it was compiled with.

        Raises:
            DeviceError: the device failed, or does not save programs.
        """
        raise DeviceError(f"{type(self).__name__} does not load saved programs")

    def close(self) -> None:
        """Release what the instance holds; its programs are closed before."""


@lru_cache(maxsize=1)
def _processor() -> str:
    about = Path("/proc/cpuinfo")
    lines = about.read_text().splitlines() if about.exists() else []
    telling = ("model name", "flags", "Features")
    features = sorted({line for line in lines if line.startswith(telling)})
    return "\n".join([platform.system(), platform.machine(), platform.processor(), *features])
