"""XLA on one chip: compiling functions, and loading what was compiled."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import jaxlib
from jax.sharding import SingleDeviceSharding
from jaxlib._jax import DeviceList

from crosschip.devices.xla.converters import converters
from crosschip.devices.xla.graph import Graph
from crosschip.devices.xla.memory import XlaBuffer, failure, on_chip
from crosschip.devices.xla.narrow import entering
from crosschip.devices.xla.program import XlaProgram
from crosschip.devices.xla.saved import read, write
from crosschip.devices.xla.weights import OnChip, Weight, weights_of
from crosschip.hal import CompileError, Options, Precision
from crosschip.ir import Array, DeviceError, ElementType, Model, Operand

_KEEPING_NAN = {"xla_cpu_enable_fast_min_max": False}
_ROUNDING = {"xla_allow_excess_precision": False}
"""A value that is rounded to a narrow type is not to be used as it was before."""


class Executable:
    """A compiled function.

    Args:
        loaded: XLA's own.
        rules: what must hold in a run, a sentence for each element of the last output.
        saved: the bytes that it was loaded from. XLA's function that comes of bytes does not
            become such again: the new ones lack what it calls.
    """

    def __init__(self, loaded: Any, rules: Sequence[str], saved: bytes | None = None) -> None:
        self._loaded = loaded
        self._saved = saved
        self.rules = tuple(rules)

    def __call__(self, arguments: Sequence[jax.Array]) -> list[jax.Array]:
        """Take on a run; the outputs, which may not be there yet."""
        try:
            arrays = self._loaded.execute_sharded(arguments).disassemble_into_single_device_arrays()
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise failure("failed while running", error) from error
        return [parts[0] for parts in arrays]

    def to_bytes(self) -> bytes:
        """The function as bytes."""
        return self._saved or write(self.rules, self._loaded.serialize())


class Engine:
    """JAX, set on one of its chips.

    Args:
        name: `cpu`, or `gpu:0`, as `probe` calls it.

    Attributes:
        chip: the full name of the chip.

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
        self._on_processor = platform == "cpu"
        if self._on_processor:
            self._options.update(_KEEPING_NAN)
        self._weights: WeakValueDictionary[Weight, OnChip] = WeakValueDictionary()
        self._putting = threading.Lock()

    def compile(self, model: Model, options: Options, device: object) -> XlaProgram:
        """Compile a model of operations that there are converters for, and of known sizes.

        If those of outputs depend on data, the model is a single operation.

        Raises:
            CompileError: an operation cannot be compiled, or XLA failed.
        """
        weights = weights_of(model)
        executable = self._executable(model, weights, options.precision)
        return XlaProgram(self, executable, self._on_chip(weights), model, device)

    def load(self, saved: bytes, model: Model, device: object) -> XlaProgram:
        """Make a program again from what it was saved as.

        Raises:
            DeviceError: it is not what `save` returned, or XLA failed.
        """
        try:
            rules, stored = read(saved)
            chips = DeviceList((self._chip,))
            loaded = self._chip.client.deserialize_executable(stored, executable_devices=chips)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise failure("failed to load a saved program", error) from error
        executable = Executable(loaded, rules, bytes(saved))
        return XlaProgram(self, executable, self._on_chip(weights_of(model)), model, device)

    def allocate(
        self, element_type: ElementType, shape: tuple[int, ...], device: object
    ) -> XlaBuffer:
        """Memory on the chip, all 0."""
        with jax.enable_x64(True):
            zeros = jnp.zeros(shape, element_type.dtype, device=self._chip)
        return XlaBuffer(zeros, device)

    def put(self, array: Array) -> jax.Array:
        """An array in the chip's memory."""
        return on_chip(array, self._chip)

    def _on_chip(self, weights: Sequence[Weight]) -> list[OnChip]:
        """Weights in the chip's memory, where programs for other shapes may have them already."""
        with self._putting:
            weights_on_chip = []
            for weight in weights:
                held = self._weights.get(weight)
                if held is None:
                    held = self._weights[weight] = OnChip(self.put(weight.elements()))
                weights_on_chip.append(held)
        return weights_on_chip

    def _executable(
        self, model: Model, weights: Sequence[Weight], precision: Precision
    ) -> Executable:
        """A model compiled: a function of weights, and then of inputs."""
        rules: list[str] = []

        def compute(constants: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
            values = dict(zip(model.inputs.values(), map(entering, inputs), strict=True))
            filters: dict[Operand, Any] = {}
            for weight, constant in zip(weights, constants, strict=True):
                (filters if weight.is_filter else values)[weight.operand] = entering(constant)
            graph = Graph(values, filters, precision, on_processor=self._on_processor)
            for operation in model.operations:
                graph.define(operation, converters.convert(graph, operation))
            outputs = [
                graph[operand].astype(operand.type.element_type.dtype)
                for operand in model.outputs.values()
            ]
            rules[:] = graph.rules
            flags = [jnp.stack(graph.flags)] if graph.flags else []
            return [*outputs, *graph.counts, *flags]

        place = SingleDeviceSharding(self._chip)

        def kind(operand: Operand, shape: tuple[int, ...] | None) -> jax.ShapeDtypeStruct:
            dtype = operand.type.element_type.dtype
            return jax.ShapeDtypeStruct(shape or (), dtype, sharding=place)

        arguments = (
            [kind(weight.operand, weight.shape) for weight in weights],
            [kind(operand, operand.type.static_shape) for operand in model.inputs.values()],
        )
        try:
            with jax.enable_x64(True):
                lowered = jax.jit(compute, keep_unused=True).lower(*arguments)
                compiled = lowered.compile(compiler_options=self._options)
        except DeviceError:
            raise
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise CompileError(str(failure("failed to compile", error))) from error
        return Executable(compiled.runtime_executable(), rules)
