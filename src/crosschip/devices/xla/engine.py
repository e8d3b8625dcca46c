"""XLA on one chip: compilation of functions and loading of compiled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
from jax.sharding import SingleDeviceSharding
from jaxlib._jax import DeviceList

from crosschip.devices.kits.stablehlo.converters import converters
from crosschip.devices.kits.stablehlo.function import Function
from crosschip.devices.kits.stablehlo.graph import Emission
from crosschip.devices.kits.stablehlo.saved import read_program, write_program
from crosschip.devices.kits.stablehlo.weights import SharedWeights
from crosschip.devices.xla.memory import XlaBuffer, failure, on_chip
from crosschip.devices.xla.program import XlaProgram
from crosschip.hal import CompileError, Options, Precision
from crosschip.ir import Array, DeviceError, ElementType, Model

_CONVERTERS = converters.for_device("xla")
_MAGIC = b"CHIPXLA2"
_KEEPING_NAN = {"xla_cpu_enable_fast_min_max": False}
_ROUNDING = {"xla_allow_excess_precision": False}
"""Keeps XLA from using a value from before its rounding to a narrow type."""


class Executable:
    """A compiled function.

    Args:
        loaded: XLA's executable.
        rules: the error messages, one per element of the last output.
        saved: the data that it was loaded from, which is saved again (quirk `saved-twice`).
    """

    def __init__(self, loaded: Any, rules: Sequence[str], saved: bytes | None = None) -> None:
        self._loaded = loaded
        self._saved = saved
        self.rules = tuple(rules)

    def __call__(self, arguments: Sequence[jax.Array]) -> list[jax.Array]:
        """Start a run and return its outputs, which may not be computed yet."""
        try:
            arrays = self._loaded.execute_sharded(arguments).disassemble_into_single_device_arrays()
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise failure("failed while running", error) from error
        return [parts[0] for parts in arrays]

    def to_bytes(self) -> bytes:
        """Return the function as bytes."""
        return self._saved or write_program(_MAGIC, self.rules, self._loaded.serialize())


class Engine:
    """JAX and one of its chips.

    Args:
        name: the name that `probe` returns, such as `cpu` or `gpu:0`.

    Attributes:
        chip: the full name of the chip.
        emission: how models become functions.

    Raises:
        DeviceError: there is no such chip.
    """

    def __init__(self, name: str) -> None:
        platform, _, number = name.partition(":")
        try:
            self._chip = jax.devices(platform)[int(number or 0)]
        except (RuntimeError, IndexError) as error:
            raise DeviceError(f"JAX has no chip {name!r} here: {error}") from error
        self.chip: str = self._chip.device_kind
        client = self._chip.client
        self.version = f"{jax.__version__} ({jaxlib.__version__}, {client.platform_version})"
        self._options: dict[str, Any] = dict(_ROUNDING)
        on_processor = platform == "cpu"
        if on_processor:
            self._options.update(_KEEPING_NAN)
        self.emission = Emission(_CONVERTERS, splits_groups=on_processor)
        self._weights = SharedWeights(self.put)

    def compile(self, model: Model, options: Options, device: object) -> XlaProgram:
        """Compile a model of static shapes all of whose operations have converters.

        If the sizes of outputs depend on data, the model is a single operation.

        Raises:
            CompileError: an operation cannot be compiled, or XLA failed.
        """
        executable = self._executable(model, options.precision)
        return XlaProgram(self, executable, self._weights.of(model), model, device)

    def load(self, saved: bytes, model: Model, device: object) -> XlaProgram:
        """Load a saved program.

        Raises:
            DeviceError: the data was not saved by `save`, or XLA failed.
        """
        try:
            rules, stored = read_program(_MAGIC, saved)
            chips = DeviceList((self._chip,))
            loaded = self._chip.client.deserialize_executable(
                bytes(stored), executable_devices=chips
            )
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise failure("failed to load a saved program", error) from error
        executable = Executable(loaded, rules, bytes(saved))
        return XlaProgram(self, executable, self._weights.of(model), model, device)

    def allocate(
        self, element_type: ElementType, shape: tuple[int, ...], device: object
    ) -> XlaBuffer:
        """Allocate a buffer of zeros on the chip."""
        with jax.enable_x64(True):
            zeros = jnp.zeros(shape, element_type.dtype, device=self._chip)
        return XlaBuffer(zeros, device)

    def put(self, array: Array) -> jax.Array:
        """Copy an array to the chip's memory."""
        return on_chip(array, self._chip)

    def _executable(self, model: Model, precision: Precision) -> Executable:
        """Compile a model to a function of its weights and inputs."""
        function = Function(model, self.emission, precision)
        arguments = function.arguments(SingleDeviceSharding(self._chip))
        try:
            with jax.enable_x64(True):
                lowered = jax.jit(function.__call__, keep_unused=True).lower(*arguments)
                compiled = lowered.compile(compiler_options=self._options)
        except DeviceError:
            raise
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise CompileError(str(failure("failed to compile", error))) from error
        return Executable(compiled.runtime_executable(), function.rules)
