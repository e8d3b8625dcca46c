"""Compiled models: OpenVINO infer requests, saving and loading.

A saved program contains the `Requirements` of its model, so that loading needs no operations.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from os import SEEK_END
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino

from crosschip.devices.kits.input_checks import Checks
from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.memory import shared_tensor
from crosschip.devices.openvino.request import Request, failure
from crosschip.devices.openvino.requirements import Requirements
from crosschip.devices.openvino.state import OpenVinoSession
from crosschip.hal import (
    Carried,
    Options,
    Performance,
    Precision,
    Profiler,
    Program,
    ProgramSession,
)
from crosschip.ir import Array, DeviceError, Model

if TYPE_CHECKING:
    from crosschip.devices.kits.size_checks import Sizes

_PRECISIONS = {Precision.FLOAT32: "f32", Precision.BFLOAT16: "bf16", Precision.FLOAT16: "f16"}
_CAPABILITIES = {Precision.FLOAT32: "FP32", Precision.BFLOAT16: "BF16", Precision.FLOAT16: "FP16"}
_SIZE = struct.Struct("<Q")
"""The size of the requirements, at the end of a saved program: export, requirements, size."""


class Engine:
    """OpenVINO's core and one of its devices.

    Args:
        device: `CPU`, `GPU`, …, as OpenVINO calls it.

    Attributes:
        core: the core.
        device: OpenVINO's device name.
        chip: the full name of the device.
        precisions: the supported precisions.

    Raises:
        DeviceError: there is no such device.
    """

    version: str = openvino.get_version()

    def __init__(self, device: str) -> None:
        self.core = openvino.Core()
        self.device = device
        try:
            offered = self.core.get_property(device, "OPTIMIZATION_CAPABILITIES")
            self.chip: str = self.core.get_property(device, "FULL_DEVICE_NAME")
        except RuntimeError as error:
            present = ", ".join(self.core.available_devices)
            raise DeviceError(
                f"OpenVINO has no device {device!r} here; it has {present}"
            ) from error
        precisions = {p for p, word in _CAPABILITIES.items() if word in offered}
        if device == "CPU" and instruction_sets.computes_in_float32_alone():
            # OpenVINO 2026.4 lists precisions of the processor that the limit rules out.
            precisions &= {Precision.FLOAT32}
        self.precisions = frozenset(precisions)

    def load(self, saved: bytes | memoryview, model: Model, options: Options) -> OpenVinoProgram:
        """Load a saved program without copying its bytes.

        Raises:
            DeviceError: the data was not saved by `save`, or OpenVINO failed.
        """
        try:
            end = len(saved) - _SIZE.size
            start = end - _SIZE.unpack_from(saved, end)[0]
            requirements = Requirements.from_bytes(bytes(saved[start:end]))
            config = {**self.config(options), **requirements.settings}
            stored = np.frombuffer(memoryview(saved)[:start], np.uint8)
            tensor = shared_tensor(stored)
            make = partial(self.core.import_model, tensor, self.device, config)
            counted = partial(self._profiler, model, config)
            return OpenVinoProgram(make, requirements, model, [stored], counted, saved)
        except (RuntimeError, struct.error, ValueError, TypeError, KeyError) as error:
            raise failure("failed to load a saved program", error) from error

    def _profiler(self, model: Model, config: Mapping[str, Any]) -> Profiler:
        # Imported late: rarely needed.
        from crosschip.devices.openvino.compiling import profiler

        return profiler(self, model, config)

    def modes(self) -> Mapping[Performance, Mapping[str, Any]]:
        """Return the processor's settings for each performance mode; other devices have none.

        OpenVINO ignores core types that the processor does not have.
        """
        if self.device != "CPU":
            return {}
        half = max(1, (os.cpu_count() or 1) // 2)
        return {
            Performance.LOW: {
                "INFERENCE_NUM_THREADS": 1,
                "SCHEDULING_CORE_TYPE": "ECORE_ONLY",
                "ENABLE_CPU_PINNING": False,
            },
            Performance.MEDIUM: {"INFERENCE_NUM_THREADS": half, "ENABLE_CPU_PINNING": False},
            Performance.HIGH: {"SCHEDULING_CORE_TYPE": "PCORE_ONLY"},
            Performance.EXTREME: {
                "SCHEDULING_CORE_TYPE": "ANY_CORE",
                "ENABLE_HYPER_THREADING": True,
                "ENABLE_CPU_PINNING": True,
            },
        }

    def config(self, options: Options) -> dict[str, Any]:
        """Return the options as OpenVINO settings, which a saved program does not contain."""
        config: dict[str, Any] = {
            **self.modes().get(options.performance, {}),
            "PERFORMANCE_HINT": "LATENCY" if options.in_flight == 1 else "THROUGHPUT",
            "NUM_STREAMS": options.in_flight,
            "INFERENCE_PRECISION_HINT": _PRECISIONS[options.precision],
        }
        if options.precision is Precision.FLOAT32:
            config["EXECUTION_MODE_HINT"] = "ACCURACY"
        if options.threads is not None:
            config["INFERENCE_NUM_THREADS"] = options.threads * options.in_flight
        return config


class OpenVinoProgram(Program):
    """A pool of infer requests, one per concurrent run.

    Args:
        make: compiles or imports the model.
        requirements: the conditions that each run is checked for.
        model: the source model.
        constant_arrays: the arrays whose memory the compiled model reads.
        profiler: creates a profiler, if there is one.
        saved: the data that the program was loaded from, if any.
    """

    def __init__(
        self,
        make: Callable[[], openvino.CompiledModel],
        requirements: Requirements,
        model: Model,
        constant_arrays: Sequence[Array],
        profiler: Callable[[], Profiler] | None = None,
        saved: bytes | memoryview | None = None,
    ) -> None:
        self._make = make
        self._compiled_model = make()
        self._requirements = requirements
        self._model = model
        self._sizes = Checks.of(requirements.checks, lambda: _sizes(model))
        self._constant_arrays = constant_arrays
        self._profiler = profiler
        self._saved = saved
        self._idle: list[Request] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self.run_into(inputs, ())

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        self._requirements.check_inputs(inputs)
        if self._sizes is not None:
            empty_outputs = self._sizes.check(inputs)
            if empty_outputs is not None:
                return empty_outputs
        if self._requirements.open_sizes:
            self._requirements.sizes.check([array.shape for array in inputs])
        try:
            request = self._idle.pop()
        except IndexError:
            request = Request(self._compiled_model, self._requirements.open_sizes)
        try:
            outputs = request.run(inputs, places)
        except (RuntimeError, ValueError) as error:  # raised by NumPy for negative sizes
            self._renew()
            raise failure("failed while running", error) from error
        self._idle.append(request)
        if self._requirements.rules:
            self._requirements.check_flags(outputs.pop())
        return outputs

    def session(self, carried: Sequence[Carried]) -> ProgramSession:
        check = None if self._sizes is None else self._sizes.check_shapes

        def request() -> Request:
            return Request(self._compiled_model, self._requirements.open_sizes, carried)

        return OpenVinoSession(
            request, self._renew, self._model, carried, self._requirements, check
        )

    def save(self) -> bytes:
        # Quirk `saved-twice`.
        if self._saved is not None:
            return bytes(self._saved)
        exported: BytesIO = self._compiled_model.export_model()
        exported.seek(0, SEEK_END)
        requirements = self._requirements.to_bytes()
        exported.write(requirements + _SIZE.pack(len(requirements)))
        return exported.getvalue()

    def profiler(self) -> Profiler | None:
        return None if self._profiler is None else self._profiler()

    def mean_seconds(self) -> dict[str, float]:
        """Return the mean time of each layer over all runs; empty unless OpenVINO counts times."""
        if not self._idle:
            return {}
        return {
            layer.node_name: layer.real_time.total_seconds()
            for layer in self._idle[-1].layers()
            if layer.status == openvino.ProfilingInfo.Status.EXECUTED
        }

    def close(self) -> None:
        vars(self).clear()

    def _renew(self) -> None:
        """Compile anew after a failed run, whose state in OpenVINO makes later runs fail, too."""
        self._compiled_model = self._make()
        self._idle = []


def _sizes(model: Model) -> Sizes:
    # Imported late: needed for dynamic dimensions only.
    from crosschip.devices.openvino.unchecked import size_checks

    return size_checks(model)
