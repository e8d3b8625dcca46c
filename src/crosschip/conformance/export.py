"""Export of cases as archives that can be run without the kit."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from crosschip.conformance.cases import Case
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import judge
from crosschip.conformance.worker import named
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, Device, Kind, Offer, Options, Program
from crosschip.ir import Array, InputError, Model
from crosschip.ir.types import NARROW_TYPES, ElementType
from crosschip.ops import operator_named
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.definition.serialization import to_bytes


def export(case: Case, seed: int, path: Path) -> None:
    """Write a valid case of an operator as a zip archive.

    It holds `model.chipm` (the saved form of docs/formats.md), `model.txt` (the same to read),
    and `inputs/NAME.npy` and `outputs/NAME.npy`; element types that NumPy's files do not know are
    stored as unsigned integers of their size, and `model.txt` states their types.

    Raises:
        InputError: the case has no model, or the file cannot be written.
    """
    if case.variation is None or case.invalid:
        raise InputError(f"{case.id}: only valid uses of an operator can be saved")
    arguments = case.variation.arguments
    model = model_of(operator_named(case.operator), arguments, named=case.variation.named)
    named_inputs = arrays_for(arguments, case.seed(seed))
    _write(path, _files(model, [named_inputs[name] for name in model.inputs]))


def export_check(
    case: Case,
    device_name: str,
    properties: Mapping[str, str],
    options: Options,
    path: Path,
) -> None:
    """Write the models that a check of the whole device compiles, as a zip archive.

    The folders `1`, `2`, … hold the files that `export` writes for each model, with the inputs of
    the model's first run. A failing check ends the export.

    Raises:
        InputError: the check compiles no model, or the file cannot be written.
        DeviceError: the device does not open.
    """
    with _Recorder(named(device_name, properties)) as recorder:
        judge(case, recorder, Claims(), options=options)
        runs = [each for each in recorder.runs if each.inputs is not None]
    if not runs:
        raise InputError(f"{case.id}: runs no model that could be saved")
    files: dict[str, bytes] = {}
    for number, run in enumerate(runs, 1):
        own = _files(run.model, run.inputs or ())
        files |= {f"{number}/{name}": content for name, content in own.items()}
    _write(path, files)


@dataclass
class _Run:
    """A compiled model and the inputs of its first run."""

    model: Model
    inputs: Sequence[Array] | None = None


class _Recorder(Device):
    """Delegates to a device and records the models that it compiles, with their inputs."""

    vendor, kind = "crosschip", Kind.CPU

    def __init__(self, device: Device) -> None:
        super().__init__()
        self.runs: list[_Run] = []
        self._device = device
        self.name = device.name

    @property
    def version(self) -> str:
        return self._device.version

    def another(self, properties: Mapping[str, str]) -> Device:
        return self._device.another(properties)

    def capabilities(self) -> Capabilities:
        return self._device.capabilities()

    def query(self, model: Model, options: Options) -> Offer:
        return self._device.query(model, options)

    def compile(self, model: Model, options: Options) -> Program:
        program = self._device.compile(model, options)
        self.runs.append(_Run(model))
        return _RecordingProgram(program, self.runs[-1])

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self._device.load(saved, model, options)

    def close(self) -> None:
        self._device.close()


class _RecordingProgram(Program):
    """Delegates to a program and records the inputs of its first run."""

    def __init__(self, program: Program, run: _Run) -> None:
        self._program = program
        self._run = run
        self.rules = program.rules

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if self._run.inputs is None:
            self._run.inputs = [array.copy() for array in inputs]
        return self._program.run(inputs)

    def save(self) -> bytes | None:
        return self._program.save()

    def close(self) -> None:
        self._program.close()


def _files(model: Model, inputs: Sequence[Array]) -> dict[str, bytes]:
    """Return the files of a model, its inputs and the reference's outputs, by file name."""
    outputs = ReferenceProgram(model).run(inputs)
    files = {"model.chipm": to_bytes(model), "model.txt": f"{model}\n".encode()}
    named_inputs = zip(model.inputs, inputs, strict=True)
    files |= {f"inputs/{name}.npy": _npy(array) for name, array in named_inputs}
    named_outputs = zip(model.outputs, outputs, strict=True)
    return files | {f"outputs/{name}.npy": _npy(array) for name, array in named_outputs}


def _write(path: Path, files: Mapping[str, bytes]) -> None:
    try:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _npy(array: Array) -> bytes:
    element_type = ElementType.of(array.dtype)
    if element_type in NARROW_TYPES or element_type is ElementType.BFLOAT16:
        array = array.view(f"u{array.dtype.itemsize}")
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
