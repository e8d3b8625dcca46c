"""IREE's runtime: devices of its drivers, and loading of compiled modules."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import iree.runtime as runtime
from iree.runtime import version

from crosschip.devices.iree.memory import ChipMemory, HostMemory, Memory
from crosschip.devices.iree.module import MAGIC
from crosschip.devices.iree.program import ForeignProgram, IreeProgram
from crosschip.devices.iree.targets import Target
from crosschip.devices.kits.stablehlo.saved import read_program
from crosschip.hal import Options, Program
from crosschip.ir import DeviceError, Model

_ENTRY = "main"
_THREADED = "local-task"
"""The driver of the processor."""

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

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        """Load a saved program; one for another machine can only be saved.

        Raises:
            DeviceError: the data was not saved by this device, or IREE failed.
        """
        if self._target.foreign:
            return ForeignProgram(saved, self._target.foreign)
        try:
            rules, module = read_program(MAGIC, saved)
            memory = _memory(self._target.driver, options.threads_each)
            loaded = runtime.VmModule.copy_buffer(_instance(), module)
            context = runtime.VmContext(
                _instance(), modules=[runtime.create_hal_module(_instance(), memory.device), loaded]
            )
            function = loaded.lookup_function(_ENTRY)
            weights = memory.weights.of(model)
        except Exception as error:  # the engine's exceptions have no base class of their own
            raise DeviceError(f"iree failed to load a program: {error}") from error
        return IreeProgram(memory, context, function, weights, model, rules, saved)


@lru_cache(maxsize=1)
def _instance() -> Any:
    """Return the virtual machine of the process."""
    return runtime.VmInstance()


@lru_cache(maxsize=16)
def _memory(driver: str, threads: int | None) -> Memory:
    """Return the memory of a device of a driver.

    Args:
        driver: the driver's name.
        threads: how many threads a run uses on the processor; `None` for one per core.
    """
    if driver != _THREADED:
        return ChipMemory(runtime.get_device(driver))
    if threads == 1:
        return HostMemory(runtime.get_device("local-sync"))
    with _flags:  # a driver reads the process' flags when it is created
        runtime.flags.parse_flags(f"--task_topology_group_count={threads or 0}")
        created = runtime._binding.create_hal_driver(driver)
        return HostMemory(created.create_default_device())
