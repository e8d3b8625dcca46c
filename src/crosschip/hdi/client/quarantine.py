"""Runs that have killed their driver twice: they are refused, and kept as files that show it."""

from __future__ import annotations

import hashlib
import io
import json
import time
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.hdi.wire import values
from crosschip.ir import Array, DeviceError
from crosschip.ops.definition.serialization import to_bytes

if TYPE_CHECKING:
    from crosschip.hdi.client.program import RemoteProgram


class Quarantine:
    """The runs that a driver is not asked for any more; false while there are none.

    Args:
        name: the driver's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._reasons: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._reasons)

    def check(self, program: RemoteProgram, inputs: Sequence[Array]) -> None:
        """Refuse a run that is one of them.

        Raises:
            DeviceError: it is.
        """
        reason = self._reasons.get(_digest(program, inputs))
        if reason is not None:
            raise DeviceError(reason)

    def add(self, program: RemoteProgram, inputs: Sequence[Array], why: str) -> DeviceError:
        """Keep a run from the driver from now on; the error that says so."""
        try:
            where = f"it is kept in {_saved(self._name, program, inputs, why)}; "
        except OSError as error:
            where = f"it could not be kept ({error.strerror}); "
        reason = (
            f"this run has killed the driver twice, and is not tried again; {where}"
            f"`crosschip driver replay FILE` runs it once more. Last: {why}"
        )
        self._reasons[_digest(program, inputs)] = reason
        return DeviceError(reason)


def _digest(program: RemoteProgram, inputs: Sequence[Array]) -> str:
    digest = hashlib.sha256(str(id(program)).encode())
    for value in inputs:
        digest.update(values.to_bytes(value))
    return digest.hexdigest()


def _saved(name: str, program: RemoteProgram, inputs: Sequence[Any], why: str) -> Path:
    from platformdirs import user_cache_path

    folder = user_cache_path("crosschip") / "quarantine"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{_digest(program, inputs)[:8]}.zip"
    about = {"device": name, "reason": why, "options": asdict(program.options)}
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("about.json", json.dumps(about, default=lambda value: value.value))
        file.writestr("model.chipm", to_bytes(program.model))
        for index, value in enumerate(inputs):
            if isinstance(value, np.ndarray) and not value.dtype.hasobject:
                content = io.BytesIO()
                np.save(content, value, allow_pickle=False)
                file.writestr(f"input{index}.npy", content.getvalue())
            else:
                file.writestr(f"input{index}.value", values.to_bytes(value))
    return path
