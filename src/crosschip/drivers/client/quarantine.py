"""Refusal of runs that killed their driver twice, with files to reproduce them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosschip.drivers.client.fatal_runs import FatalRun
from crosschip.drivers.endpoint import Endpoint
from crosschip.drivers.protocol import values
from crosschip.ir import Array, DeviceError

if TYPE_CHECKING:
    from crosschip.drivers.client.program import RemoteProgram


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

    def add(self, program: RemoteProgram, inputs: Sequence[Array], why: str) -> DeviceError:
        """Refuse a run from now on and write its file; return the error."""
        digest = _digest(program, inputs)
        properties = dict(self._endpoint.properties)
        run = FatalRun(
            self._endpoint.device, properties, why, program.options, program.model, inputs
        )
        try:
            path = _new_file(digest)
            run.write(path)
            location = f"it is kept in {path}; "
        except OSError as error:
            location = f"it could not be kept ({error.strerror}); "
        reason = (
            f"this run has killed the driver twice, and is not tried again; {location}"
            f"`crosschip driver replay FILE` runs it once more. Last: {why}"
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
