"""Writing a case down, so that it can be handed on and tried without the kit."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np

from crosschip.conformance.cases import Case
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, InputError
from crosschip.ir.types import NARROW_TYPES, ElementType
from crosschip.ops import operator_named
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.definition.serialization import to_bytes


def export(case: Case, seed: int, path: Path) -> None:
    """Write a valid case of an operator as a zip archive.

    It holds `model.chipm` (the saved form of docs/formats.md), `model.txt` (the same to read),
    and `inputs/NAME.npy` and `outputs/NAME.npy`; element types that NumPy's files do not know are
    stored as unsigned integers of their size, and `model.txt` says what they are.

    Raises:
        InputError: the case has no model, or the file cannot be written.
    """
    if case.variation is None or case.invalid:
        raise InputError(f"{case.id}: only valid uses of an operator can be saved")
    arguments = case.variation.arguments
    model = model_of(operator_named(case.operator), arguments, named=case.variation.named)
    inputs = arrays_for(arguments, case.seed(seed))
    outputs = ReferenceProgram(model).run([inputs[name] for name in model.inputs])
    files = {"model.chipm": to_bytes(model), "model.txt": f"{model}\n".encode()}
    files |= {f"inputs/{name}.npy": _npy(array) for name, array in inputs.items()}
    named_outputs = zip(model.outputs, outputs, strict=True)
    files |= {f"outputs/{name}.npy": _npy(array) for name, array in named_outputs}
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
