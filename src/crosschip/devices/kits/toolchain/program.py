"""Programs that a vendor's tool compiled, each in a process of its own."""

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

from crosschip.devices.kits.toolchain.outputs import Outputs
from crosschip.devices.kits.worker import Died, Worker
from crosschip.hal.program import Program
from crosschip.ir import Array, DeviceError, Model, TensorType

Start = Callable[[str], Worker]
"""Starts a process with a folder for its own."""


class ToolchainProgram(Program):
    """The files that a compiler made, and the process that runs them; runs come one by one.

    Args:
        model: what was compiled.
        folder: where the files are; removed by `close`.
        files: the names of those to keep.
        settings: what the tool was told to compile with.
        start: starts a process; a run after one that ended the process does.
        seconds: how long loading and running may take each.
        worker: the process in which it is loaded; `None` to load it at once.
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
        self._outputs = Outputs(model)
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
        handed = list(map(_reals, self._inputs, inputs)) if self._real else inputs
        with self._lock:
            worker = self._worker or self._load()
            try:
                results = worker.call("run", arrays=handed, seconds=self._seconds).arrays
            except Died:
                self._worker = None
                worker.close()
                raise
        if len(results) != len(self._output_types):
            raise DeviceError(f"returned {len(results)} outputs, not {len(self._output_types)}")
        if self._real:
            results = list(map(_declared, self._output_types, results))
        return self._outputs.filled(inputs, results)

    def save(self) -> bytes:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            for name in self._files:
                # The time of a file is not part of the program.
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
    """Write the files that a program was saved as; their names.

    Raises:
        DeviceError: it is no such program.
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


def _reals(type_: TensorType, array: Array) -> Array:
    """An input, or the reals that it stands for."""
    if type_.quantization is None:
        return array
    scale, zero_point = _along(type_)
    return (array.astype(np.int64) - zero_point).astype(np.float32) * scale


def _declared(type_: TensorType, array: Array) -> Array:
    """An output, or the integers that stand for it."""
    if type_.quantization is None:
        return array
    scale, zero_point = _along(type_)
    limits = np.iinfo(type_.element_type.dtype)
    places = np.rint(array / scale) + zero_point
    integers: Array = np.clip(places, limits.min, limits.max).astype(type_.element_type.dtype)
    return integers


def _along(type_: TensorType) -> tuple[Array, Array]:
    """Scale and zero point, to be broadcast with the tensor."""
    quantization = type_.quantization
    assert quantization is not None, "callers ask for those that are quantized"
    shape = [1] * len(type_.shape or ())
    if quantization.axis is not None:
        shape[quantization.axis] = -1
    scale = np.array(quantization.scale, np.float32).reshape(shape)
    return scale, np.array(quantization.zero_point, np.int64).reshape(shape)
