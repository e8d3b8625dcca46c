"""Programs that a vendor's tool compiled."""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.devices.kits.worker import Died, Worker
from crosschip.hal.program import Program
from crosschip.ir import Array, DeviceError, Model, Operand, TensorType

Start = Callable[[str], Worker]
"""Starts a process with a working directory."""


class OutputMap:
    """The model outputs that a tool computes, and the map from its outputs to the model's.

    Tools omit outputs that are equal to others. So a tool is asked only for distinct computed
    outputs; repeated outputs, inputs and constants are filled in.

    Args:
        model: the model.

    Attributes:
        requested: the model with the outputs that the tool computes.
    """

    def __init__(self, model: Model) -> None:
        names: dict[Operand, str] = {}
        for name, operand in model.outputs.items():
            names.setdefault(operand, name)
        computed = {name: o for o, name in names.items() if o in model.producers}
        constants = {o: value for o in names if (value := o.value) is not None}
        operands = [*computed.values(), *model.inputs.values(), *constants]
        index_of = {operand: index for index, operand in enumerate(operands)}
        self.requested = Model(model.name, model.inputs, model.operations, computed)
        self._constants = list(constants.values())
        self._sources = [(index_of[o], name in computed) for name, o in model.outputs.items()]

    def fill(self, inputs: Sequence[Array], tool_outputs: Sequence[Array]) -> list[Array]:
        """Return all model outputs, without shared memory.

        Args:
            inputs: the model's inputs.
            tool_outputs: the outputs of `requested`.
        """
        arrays = [*tool_outputs, *inputs, *self._constants]
        return [
            arrays[index] if computed else arrays[index].copy() for index, computed in self._sources
        ]


class ToolchainProgram(Program):
    """The files of a compiled program, and the process that runs it, one run at a time.

    Args:
        model: the compiled model.
        folder: the folder of the files; `close` removes it.
        files: the names of the files to save.
        settings: the settings that the tool compiled with.
        start: starts a process, for the first run and after one that ended the process.
        seconds: the time limit of loading and of running.
        worker: the process that has loaded the program; `None` to load it now.
        real: whether the program's inputs and outputs are reals where the model's are quantized.
    """

    def __init__(
        self,
        model: Model,
        folder: tempfile.TemporaryDirectory[str],
        files: Sequence[str],
        settings: Mapping[str, Any],
        start: Start,
        seconds: float,
        worker: Worker | None = None,
        *,
        real: bool = False,
    ) -> None:
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = OutputMap(model)
        self._output_types = [operand.type for operand in self._outputs.requested.outputs.values()]
        self._folder = folder
        self._files = sorted(files)
        self._settings = settings
        self._start = start
        self._seconds = seconds
        self._real = real
        self._lock = threading.Lock()
        self._worker = worker
        if worker is None:
            self._load()

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        program_inputs = list(map(_to_reals, self._inputs, inputs)) if self._real else inputs
        with self._lock:
            worker = self._worker or self._load()
            try:
                results = worker.call("run", arrays=program_inputs, seconds=self._seconds).arrays
            except Died:
                self._worker = None
                worker.close()
                raise
        if len(results) != len(self._output_types):
            raise DeviceError(f"returned {len(results)} outputs, not {len(self._output_types)}")
        if self._real:
            results = list(map(_to_declared, self._output_types, results))
        return self._outputs.fill(inputs, results)

    def save(self) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name in self._files:
                # ZipInfo omits the file's time, so that equal programs are saved equally.
                archive.writestr(zipfile.ZipInfo(name), Path(self._folder.name, name).read_bytes())
        return content.getvalue()

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
        self._folder.cleanup()

    def _load(self) -> Worker:
        worker = self._start(self._folder.name)
        try:
            worker.call("load", self._folder.name, self._settings, seconds=self._seconds)
        except BaseException:
            worker.close()
            raise
        self._worker = worker
        return worker


def unpack(saved: bytes, folder: str) -> list[str]:
    """Write the files of a saved program to a folder; return their names.

    Raises:
        DeviceError: the data is no saved program.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(saved)) as archive:
            names = archive.namelist()
            for name in names:
                with archive.open(name) as source, Path(folder, name).open("xb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, OSError) as error:
        raise DeviceError(f"has not saved this program: {error}") from error
    return names


def _to_reals(type_: TensorType, array: Array) -> Array:
    """Return an input as reals."""
    if type_.quantization is None:
        return array
    scale, zero_point = _broadcast_parameters(type_)
    return (array.astype(np.int64) - zero_point).astype(np.float32) * scale


def _to_declared(type_: TensorType, array: Array) -> Array:
    """Return an output as integers if its declared type is quantized."""
    if type_.quantization is None:
        return array
    scale, zero_point = _broadcast_parameters(type_)
    limits = np.iinfo(type_.element_type.dtype)
    rounded = np.rint(array / scale) + zero_point
    integers: Array = np.clip(rounded, limits.min, limits.max).astype(type_.element_type.dtype)
    return integers


def _broadcast_parameters(type_: TensorType) -> tuple[Array, Array]:
    """Return scale and zero point, shaped to broadcast with the tensor."""
    quantization = type_.quantization
    assert quantization is not None, "checked by the callers"
    shape = [1] * len(type_.shape or ())
    if quantization.axis is not None:
        shape[quantization.axis] = -1
    scale = np.array(quantization.scale, np.float32).reshape(shape)
    return scale, np.array(quantization.zero_point, np.int64).reshape(shape)
