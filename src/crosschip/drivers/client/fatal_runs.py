"""Files of runs that killed their driver, sufficient to repeat them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crosschip.drivers.protocol import values
from crosschip.hal import Options
from crosschip.ir import Error, InputError, Model
from crosschip.ir.files import open_regular
from crosschip.ops.definition.serialization import from_bytes, to_bytes

_HEADER, _MODEL = "about.json", "model.chipm"


class _Header(msgspec.Struct, frozen=True):
    """The metadata of a run, beside its model and inputs."""

    device: str
    properties: dict[str, str]
    reason: str
    options: Options


@dataclass(frozen=True, slots=True)
class FatalRun:
    """A run with everything needed to repeat it.

    Attributes:
        device: the device's name.
        properties: the device's properties.
        reason: how the driver died.
        options: the compile options.
        model: the model.
        inputs: the inputs, in the model's order.
    """

    device: str
    properties: Mapping[str, str]
    reason: str
    options: Options
    model: Model
    inputs: Sequence[Any]

    def write(self, path: Path) -> None:
        """Write the run to a new file.

        Raises:
            OSError: the file exists, or cannot be written.
        """
        header = _Header(self.device, dict(self.properties), self.reason, self.options)
        with zipfile.ZipFile(path, "x") as file:
            file.writestr(_HEADER, msgspec.json.encode(header))
            file.writestr(_MODEL, to_bytes(self.model))
            for index, value in enumerate(self.inputs):
                if isinstance(value, np.ndarray) and not value.dtype.hasobject:
                    content = io.BytesIO()
                    np.save(content, value, allow_pickle=False)
                    file.writestr(f"input{index}.npy", content.getvalue())
                else:
                    file.writestr(f"input{index}.value", values.to_bytes(value))

    @classmethod
    def read(cls, path: Path) -> FatalRun:
        """Read a run from a file.

        Raises:
            InputError: the file holds no run, or is damaged.
        """
        try:
            with io.BufferedReader(open_regular(path)) as content, zipfile.ZipFile(content) as file:
                if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()):
                    raise ValueError("it is compressed")
                header = msgspec.json.decode(file.read(_HEADER), type=_Header)
                model = from_bytes(file.read(_MODEL), "the model")
                inputs = [_input(file, index) for index in range(len(model.inputs))]
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (zipfile.BadZipFile, LookupError, ValueError, EOFError, Error) as error:
            raise InputError(f"{path}: holds no run of a driver, or is damaged: {error}") from None
        return cls(header.device, header.properties, header.reason, header.options, model, inputs)


def _input(file: zipfile.ZipFile, index: int) -> Any:
    if f"input{index}.value" in file.namelist():
        return values.from_bytes(file.read(f"input{index}.value"))
    return np.load(io.BytesIO(file.read(f"input{index}.npy")), allow_pickle=False)
