"""A compiled model in a store under a token, like NNAdapter's cache.

It is used only if its model, devices and options equal the requested ones, so that an error in the
choice of tokens never runs another model.
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
    """The entry of a compiled model under a token.

    Args:
        store: the store.
        identity: the requested identity.
        model: the requested model.
        devices: the candidate devices.
        budget: the largest cost of loading.
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
        """Return the compiled model; `None` if there is none, or, with a warning, if unusable."""
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
            Whether all of its devices can save programs; if not, a warning is logged.
        """
        try:
            contents = compiled._contents()
        except (DeviceError, UnsupportedError) as error:
            logger.warning("token %s: %s", self._entry.key, error)
            return False
        write_stored(self._store, self._entry, KIND, *contents)
        return True

    def _check(self, file: Artifact, header: Header) -> None:
        """Check that a compiled model is the requested one.

        Raises:
            CacheError: it is another; the message names the difference.
            DeviceError: a device differs from the one that compiled it.
        """
        requested, actual = self._identity, header.identity
        if actual.token != requested.token:
            raise CacheError(f"{file.location}: was kept under another token, {actual.token}")
        if actual.model != requested.model:
            raise CacheError(f"{file.location}: is of another model ({header.name})")
        check_devices(file, header, self._devices)
        if actual.request != requested.request:
            raise CacheError(
                f"{file.location}: was compiled for other devices, or with other options"
            )
