"""Runs that killed their driver: files to repeat them, and their refusal."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crosschip.drivers.endpoint import Endpoint
from crosschip.drivers.protocol import values
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError, Error, InputError, Model
from crosschip.ir.files import open_regular
from crosschip.ops.definition.serialization import from_bytes, to_bytes

if TYPE_CHECKING:
    from crosschip.drivers.client.program import RemoteProgram


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


class Quarantine:
    """The refused runs of a driver; false if there are none.

    Args:
        endpoint: the driver's endpoint.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._reasons: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def check(self, program: RemoteProgram, inputs: Sequence[Array]) -> None:
        """Raise `DeviceError` if a run is refused.

        Raises:
            DeviceError: it is.
        """
        reason = self._reasons.get(_digest(program, inputs))
        if reason is not None:
            raise DeviceError(reason)

    def add(self, program: RemoteProgram, inputs: Sequence[Array], death: str) -> DeviceError:
        """Refuse a run from now on and write its file; return the error."""
        digest = _digest(program, inputs)
        properties = dict(self._endpoint.properties)
        run = FatalRun(
            self._endpoint.device, properties, death, program.options, program.model, inputs
        )
        try:
            path = _new_file(digest)
            run.write(path)
            location = f"it is kept in {path}; "
        except OSError as error:
            location = f"it could not be kept ({error.strerror}); "
        reason = (
            f"this run has killed the driver twice, and is not tried again; {location}"
            f"`crosschip driver replay FILE` runs it once more. Last: {death}"
        )
        self._reasons[digest] = reason
        return DeviceError(reason)


def _digest(program: RemoteProgram, inputs: Sequence[Array]) -> str:
    digest = hashlib.sha256(str(id(program)).encode())
    for value in inputs:
        digest.update(values.to_bytes(value))
    return digest.hexdigest()


def _new_file(digest: str) -> Path:
    """Return the path of a new file in the quarantine folder."""
    from platformdirs import user_cache_path

    folder = user_cache_path("crosschip") / "quarantine"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{digest[:8]}.zip"
