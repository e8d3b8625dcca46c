"""IREE's runtime: devices of its drivers, and loading of compiled modules."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import iree.runtime as runtime
from iree.runtime import version

from crosschip.devices.iree.module import MAGIC
from crosschip.devices.iree.program import ForeignProgram, IreeProgram, View
from crosschip.devices.iree.targets import Target
from crosschip.devices.kits.stablehlo.saved import read_program
from crosschip.devices.kits.stablehlo.weights import Weight, weights_of
from crosschip.hal import Options, Program
from crosschip.ir import DeviceError, Model

_ENTRY = "main"
_flags = threading.Lock()


class Engine:
    """A target on this machine.

    Args:
        target: the target.

    Attributes:
        version: the version of the runtime, which that of the compiler must equal.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.version: str = version.VERSION
        self._weights: WeakValueDictionary[Weight, View] = WeakValueDictionary()
        self._putting = threading.Lock()

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Load a saved program; one for another machine can only be saved.

        Raises:
            DeviceError: the data was not saved by this device, or IREE failed.
        """
        if self._target.foreign:
            return ForeignProgram(saved, self._target.foreign)
        try:
            rules, module = read_program(MAGIC, saved)
            device = _open(self._target.driver, options.threads_each)
            loaded = runtime.VmModule.copy_buffer(_instance(), module)
            context = runtime.VmContext(
                _instance(), modules=[runtime.create_hal_module(_instance(), device), loaded]
            )
            function = loaded.lookup_function(_ENTRY)
            weights = self._views(weights_of(model), device)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise DeviceError(f"iree failed to load a program: {error}") from error
        return IreeProgram(device, context, function, weights, model, rules, saved)

    def _views(self, weights: list[Weight], device: Any) -> list[View]:
        """Return weights in memory that programs read, shared with those for other shapes."""
        with self._putting:
            views = []
            for weight in weights:
                view = self._weights.get(weight)
                if view is None or view.device is not device:
                    view = self._weights[weight] = View.of(device, weight.elements())
                views.append(view)
        return views


@lru_cache(maxsize=1)
def _instance() -> Any:
    """Return the virtual machine of the process."""
    return runtime.VmInstance()


@lru_cache(maxsize=16)
def _open(driver: str, threads: int | None) -> Any:
    """Return a device of a driver; on the processor, one that uses a number of threads."""
    if driver != "local-task":
        return runtime.get_device(driver)
    if threads == 1:
        return runtime.get_device("local-sync")
    with _flags:  # a driver reads the process' flags when it is created
        runtime.flags.parse_flags(f"--task_topology_group_count={threads or 0}")
        return runtime._binding.create_hal_driver(driver).create_default_device()
