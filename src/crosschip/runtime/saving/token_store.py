"""A whole compiled model in a store, under a token: NNAdapter's way to cache.

What is kept under a token is used only if it is of the very model, devices and options that are
asked for, whatever the token is: whoever chooses tokens may err, and no model runs as another.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from crosschip.ir import Budget, CacheError, DeviceError, Model, ModelFileError, UnsupportedError
from crosschip.ir.version import VERSION
from crosschip.runtime.cache.container import Container
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.store import Store
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.saving.form import Header, check_fit, read_header
from crosschip.runtime.saving.identity import Identity
from crosschip.runtime.saving.loading import load_file

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
        """The compiled model; `None`, after a warning if there is cause, if there is none."""
        saved = self._store.read(self._entry)
        if saved is None:
            return None
        try:
            with Container(saved) as file:
                header = read_header(file)
                self._check(file, header)
                return load_file(file, header, self._devices, in_flight, queue_size, self._budget)
        except (CacheError, DeviceError, ModelFileError) as error:
            self._store.discard(self._entry, str(error))
            return None

    def save(self, compiled: CompiledModel) -> bool:
        """Keep a compiled model.

        Returns:
            Whether all of its devices save their programs; if not, a warning says so.
        """
        try:
            content = compiled.to_bytes()
        except (DeviceError, UnsupportedError) as error:
            logger.warning("token %s: %s", self._entry.key, error)
            return False
        self._store.write(self._entry, content)
        return True

    def _check(self, file: Container, header: Header) -> None:
        """Refuse what is of something else.

        Raises:
            CacheError: it is; the message says of what.
            DeviceError: a device is another than the one that compiled it.
        """
        wanted, found = self._identity, header.identity
        if found.token != wanted.token:
            raise CacheError(f"{file.where}: was kept under another token, {found.token}")
        if found.model != wanted.model:
            raise CacheError(f"{file.where}: is of another model ({header.name})")
        check_fit(file, header, self._devices)
        if found.request != wanted.request:
            raise CacheError(f"{file.where}: was compiled for other devices, or with other options")
