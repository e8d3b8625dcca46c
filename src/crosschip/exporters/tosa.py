"""Exporter to TOSA 1.0, the operator set that Arm's and other compilers read; shapes are static."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.ir import Array, DeviceError, ElementType, Model, Operand

suffix = ".tosa"
engine = "Arm's TOSA reference model"
static = True
properties: Mapping[str, str] = {}

_TOOL = "tosa_reference_model"
_TOOLS_VARIABLE = "TOSA_TOOLS_BIN_DIR"
_SECONDS = 3600
_SIGNED: Mapping[ElementType, np.dtype[Any]] = {
    ElementType.UINT8: np.dtype(np.int8),
    ElementType.UINT16: np.dtype(np.int16),
}
"""The types of unsigned integers in files."""


def lower(model: Model, properties: Mapping[str, str]) -> Model:
    """Decompose operations that TOSA does not express."""
    from crosschip.devices.kits.tosa.lowering import lower

    return lower(model)


def write(model: Model, properties: Mapping[str, str]) -> bytes:
    """Return the model as a TOSA file that holds all constants."""
    from crosschip.devices.kits.tosa.file import to_bytes
    from crosschip.devices.kits.tosa.model import build

    return to_bytes(build(model), "main")


def run(content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run a file with the reference model, which also checks that it follows the specification."""
    with tempfile.TemporaryDirectory(prefix="crosschip") as name:
        folder = Path(name)
        (folder / "model.tosa").write_bytes(content)
        sources = [f"input{index}.npy" for index in range(len(inputs))]
        for source, operand, array in zip(sources, model.inputs.values(), inputs, strict=True):
            np.save(folder / source, _to_file(operand, array), allow_pickle=False)
        results = [f"output{index}.npy" for index in range(len(model.outputs))]
        description = {
            "tosa_file": "model.tosa",
            "ifm_name": list(model.inputs),
            "ifm_file": sources,
            "ofm_name": list(model.outputs),
            "ofm_file": results,
            "expected_failure": False,
        }
        (folder / "desc.json").write_text(json.dumps(description), encoding="utf-8")
        _execute(folder)
        return [
            _from_file(operand, np.load(folder / result))
            for result, operand in zip(results, model.outputs.values(), strict=True)
        ]


def tool(name: str) -> str:
    """Return the path of one of Arm's tools.

    Raises:
        DeviceError: it is not installed.
    """
    folder = os.environ.get(_TOOLS_VARIABLE)
    path = shutil.which(name, path=folder) if folder else shutil.which(name)
    if path is None:
        raise DeviceError(
            f"{name} is not installed; run `pip install tosa-tools`, or set {_TOOLS_VARIABLE} to "
            f"the folder of its programs"
        )
    return path


def _execute(folder: Path) -> None:
    command = [tool(_TOOL), "--test_desc", "desc.json", "--tosa_level", "EIGHTK"]
    try:
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{engine} has not ended after {_SECONDS} seconds") from None
    if process.returncode:
        lines = (process.stdout + process.stderr).splitlines()
        failures = [line for line in lines if "fails" in line or line.startswith("\t")] or lines
        raise DeviceError(f"{engine}: {'; '.join(map(str.strip, failures[:3]))}")


def _to_file(operand: Operand, array: Array) -> Array:
    """Return an input as the file declares it.

    Raises:
        DeviceError: an int64 is beyond int32.
    """
    element_type = operand.type.element_type
    if element_type is ElementType.INT64:
        narrow = array.astype(np.int32)
        if np.any(narrow != array):
            raise DeviceError(f"input {operand.name!r}: has elements beyond int32")
        return narrow
    stored = _SIGNED.get(element_type)
    return array if stored is None else np.ascontiguousarray(array).view(stored)


def _from_file(operand: Operand, array: Array) -> Array:
    """Return an output of a file in its type in the model."""
    dtype = operand.type.element_type.dtype
    # NumPy reads bfloat16 as bytes.
    has_bits = operand.type.element_type in _SIGNED or array.dtype.kind == "V"
    return array.view(dtype) if has_bits else array.astype(dtype, copy=False)
