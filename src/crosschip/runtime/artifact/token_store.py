"""A whole compiled model in a store, under a token: NNAdapter's way to cache.

What is kept under a token is used only if it is of the very model, devices and options that are
asked for, whatever the token is: whoever chooses tokens may err, and no model runs as another.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from crosschip.ir import Budget, CacheError, DeviceError, Model, ModelFileError, UnsupportedError
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.compiled_model import check_devices
from crosschip.runtime.artifact.container import Artifact
from crosschip.runtime.artifact.header import KIND, Header, Identity, read_header
from crosschip.runtime.artifact.loading import load_file
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.store import Store, open_stored, write_stored
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.guard.devices import GuardedDevice

logger = logging.getLogger("crosschip.cache")


class TokenStore:
    """The place of a compiled model.

    Args:
        store: where it is kept.
        identity: what it is known by, if it is the right one.
        model: what is to be compiled.
        devices: those that it may have been compiled for.
        budget: what loading may cost.
    """

    def __init__(
        self,
        store: Store,
        identity: Identity,
        model: Model,
        devices: Mapping[str, GuardedDevice],
        budget: Budget | None,
    ) -> None:
        self._store = store
        self._identity = identity
        self._devices = devices
        self._budget = budget
        self._entry = Entry(
            identity.token,
            ",".join(devices),
            VERSION,
            model.name,
            len(model.operations),
            whole=True,
        )

    def load(self, in_flight: int | None, queue_size: int) -> CompiledModel | None:
        """Return the compiled model; `None`, with a warning if it is unusable, if there is none."""
        try:
            artifact = open_stored(self._store, self._entry)
            if artifact is None:
                return None
            with artifact as file:
                header = read_header(file)
                self._check(file, header)
                return load_file(file, header, self._devices, in_flight, queue_size, self._budget)
        except (CacheError, DeviceError, ModelFileError) as error:
            self._store.discard(self._entry, str(error))
            return None

    def save(self, compiled: CompiledModel) -> bool:
        """Store a compiled model.

        Returns:
            Whether all of its devices save their programs; if not, a warning says so.
        """
        try:
            contents = compiled._contents()
        except (DeviceError, UnsupportedError) as error:
            logger.warning("token %s: %s", self._entry.key, error)
            return False
        write_stored(self._store, self._entry, KIND, *contents)
        return True

    def _check(self, file: Artifact, header: Header) -> None:
        """Refuse a compiled model that is not the requested one.

        Raises:
            CacheError: it is; the message says of what.
            DeviceError: a device is another than the one that compiled it.
        """
        wanted, actual = self._identity, header.identity
        if actual.token != wanted.token:
            raise CacheError(f"{file.location}: was kept under another token, {actual.token}")
        if actual.model != wanted.model:
            raise CacheError(f"{file.location}: is of another model ({header.name})")
        check_devices(file, header, self._devices)
        if actual.request != wanted.request:
            raise CacheError(
                f"{file.location}: was compiled for other devices, or with other options"
            )
