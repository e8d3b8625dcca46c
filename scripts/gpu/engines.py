"""The engines behind devices, called directly, and their measures of memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from benchmarks.children.peak import peak_bytes
from gpu.layers import JaxLayers
from gpu.networks import Network

from crosschip.bench.timing import Run
from crosschip.ir import Array

FLOAT32, BFLOAT16 = "float32", "bfloat16"
EAGER, COMPILED = "eager", "compiled"

Ways = Mapping[str, Mapping[str, str]]
"""The ways to call an engine, with the properties that make the device do the same."""


class Jax:
    """JAX's `jit`, with weights on the chip; for devices `xla:…`.

    Args:
        instance: of the device, such as `gpu:0`.
    """

    ways: ClassVar[Ways] = {"jit": {}}

    def __init__(self, instance: str) -> None:
        import jax

        platform, _, number = instance.partition(":")
        self._chip = jax.devices(platform)[int(number or 0)]

    def open(self, network: Network, x: Array, precision: str, way: str) -> Run:
        """Compile a network in a precision; return a run from NumPy to NumPy."""
        import jax

        layers = JaxLayers(precision)
        function = jax.jit(network.function(layers))
        arrays = [self._weight(layers.weight(array), precision) for array in network.weights]
        weights = [jax.device_put(array, self._chip) for array in arrays]
        return lambda: np.asarray(function(weights, jax.device_put(x, self._chip)))

    def by_default(self, product: Callable[[Any, Any], Any], factors: tuple[Array, Array]) -> Array:
        """Return a product of arrays with the settings that JAX begins with."""
        import jax

        return np.asarray(jax.jit(product)(*(jax.device_put(x, self._chip) for x in factors)))

    def put(self, array: Array) -> Callable[[], Any]:
        """Return a copy to the chip that waits for its end."""
        import jax

        return lambda: jax.device_put(array, self._chip).block_until_ready()

    def round_trip(self, array: Array) -> Callable[[], Any]:
        """Return a copy to the chip and back."""
        import jax

        return lambda: np.asarray(jax.device_put(array, self._chip))

    def peak(self) -> int:
        """Return the peak of the chip's memory that this process has used, in bytes."""
        statistics = self._chip.memory_stats()
        return statistics["peak_bytes_in_use"] if statistics else peak_bytes()

    def _weight(self, array: Array, precision: str) -> Array:
        import jax.numpy as jnp

        return array.astype(jnp.dtype(precision)) if array.ndim > 1 else array


class Torch:
    """PyTorch, eager or compiled; for devices `torch:…`.

    Args:
        instance: of the device, such as `cuda:0`.
    """

    ways: ClassVar[Ways] = {EAGER: {"compile": "off"}, COMPILED: {"compile": "on"}}

    def __init__(self, instance: str) -> None:
        import torch

        self._chip = torch.device(instance or "cpu")

    def open(self, network: Network, x: Array, precision: str, way: str) -> Run:
        """Open a network in a precision; return a run from NumPy to NumPy."""
        import torch

        # Without TF32, which cuDNN's convolutions have by default; cuDNN tries its algorithms.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        module = network.module().to(self._chip)
        called = module if way == EAGER else torch.compile(module, dynamic=False)
        narrow = precision != FLOAT32

        def run() -> Array:
            cast = torch.autocast(self._chip.type, getattr(torch, precision), enabled=narrow)
            with torch.inference_mode(), cast:
                result: Array = called(torch.from_numpy(x).to(self._chip)).float().cpu().numpy()
            return result

        return run

    def by_default(self, product: Callable[[Any, Any], Any], factors: tuple[Array, Array]) -> Array:
        """Return a product of arrays with the settings that PyTorch begins with."""
        import torch

        result: Array = (
            product(*(torch.from_numpy(x).to(self._chip) for x in factors)).cpu().numpy()
        )
        return result

    def put(self, array: Array) -> Callable[[], Any]:
        """Return a copy to the chip that waits for its end."""
        import torch

        def run() -> Any:
            tensor = torch.from_numpy(array).to(self._chip, copy=True)
            if self._chip.type != "cpu":
                torch.accelerator.synchronize(self._chip)
            return tensor

        return run

    def round_trip(self, array: Array) -> Callable[[], Any]:
        """Return a copy to the chip and back."""
        put = self.put(array)
        return lambda: put().cpu().numpy()

    def peak(self) -> int:
        """Return the peak of the chip's memory that this process has used, in bytes."""
        import torch

        if self._chip.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._chip))
        return peak_bytes()


Engine = Jax | Torch
_ENGINES: dict[str, type[Jax] | type[Torch]] = {"xla": Jax, "torch": Torch}


def engine_of(device: str) -> Engine:
    """Return the engine behind a device, such as `xla:gpu:0`."""
    name, _, instance = device.partition(":")
    return _ENGINES[name](instance or "cpu")


def open_ours(
    network: Network, device: str, x: Array, precision: str, properties: Mapping[str, str]
) -> Run:
    """Compile a network with crosschip; return a run from NumPy to NumPy."""
    import crosschip

    model = network.model(len(x))
    (name,) = model.inputs
    compiled = crosschip.compile(
        model, [device], precision=precision, properties={device: properties}, cache=False
    )
    return partial(_only_output, compiled, {name: x})


def _only_output(compiled: Any, inputs: dict[str, Array]) -> Array:
    (output,) = compiled.run(inputs).values()
    return np.asarray(output)
