"""Drivers' shared libraries: loaded once per process, and validated on load."""

from __future__ import annotations

import threading
from functools import cache
from pathlib import Path
from typing import Any

from crosschip.devices.kits.native.interface import enumerators, foreign, members, text
from crosschip.hal.capabilities import Kind
from crosschip.hal.device import CONTRACT_VERSION
from crosschip.ir import DeviceError

_REQUIRED = (
    *("open_device", "close_device", "create_context", "destroy_context", "validate_program"),
    *("create_program", "destroy_program", "execute_program"),
)
_ALL_OR_NONE = (
    ("allocate_memory", "free_memory", "write_memory", "read_memory"),
    ("save_program", "load_program"),
)


class Library:
    """A driver's shared library.

    Attributes:
        path: the file.
        driver: its `crosschip_device`.
        vendor, version, kind, simulated: what the driver declares.

    Raises:
        DeviceError: the file is no driver, or implements another version of the contract.
    """

    def __init__(self, path: Path, name: str) -> None:
        ffi = foreign()
        self.path = path
        symbol = f"__nnadapter_device__{name.replace('-', '_')}"
        self.driver = self._load_symbol(symbol)
        contract = self.driver.contract
        if contract != CONTRACT_VERSION:
            raise DeviceError(
                f"{path}: is made for version {contract} of the driver contract; this is version "
                f"{CONTRACT_VERSION}; compile it with this version's crosschip_hal.h"
            )
        expected_size = ffi.sizeof("crosschip_device")
        if self.driver.size < ffi.offsetof("crosschip_device", "last_error"):
            raise DeviceError(
                f"{path}: its {symbol} has {self.driver.size} bytes, too few to hold what is "
                f"required; set .size to sizeof(crosschip_device), which is {expected_size}"
            )
        self._validate(symbol)
        self.vendor = text(self.driver.vendor)
        self.version = text(self.driver.version)
        self.kind = members(Kind)[self.driver.type]
        self.simulated = bool(self.driver.simulated)
        self._lock = threading.Lock()
        self._users = 0
        self._device = ffi.NULL

    def function(self, name: str) -> Any | None:
        """Return a function of the driver; `None` if it has none."""
        ffi = foreign()
        end = ffi.offsetof("crosschip_device", name) + ffi.sizeof("void *")
        if self.driver.size < end:
            return None
        function = getattr(self.driver, name)
        return None if function == ffi.NULL else function

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a code.

        Raises:
            DeviceError: the code is not that of success.
        """
        function = self.function(name)
        assert function is not None, f"callers check that {name} exists"
        self.check(function(*arguments), name)

    def check(self, code: int, doing: str) -> None:
        """Raise a DeviceError unless a code is that of success."""
        if code == 0:
            return
        names = {number: word for word, number in enumerators("crosschip_result").items()}
        status = names.get(code, f"code {code}").removeprefix("CROSSCHIP_")
        last_error = self.function("last_error")
        more = text(last_error()) if last_error is not None else ""
        raise DeviceError(f"{doing} returned {status}{': ' if more else ''}{more}")

    def acquire(self) -> Any:
        """Return the open device, which all contexts of the process share."""
        with self._lock:
            if not self._users:
                device = foreign().new("void **")
                self.call("open_device", device)
                self._device = device[0]
            self._users += 1
            return self._device

    def release(self) -> None:
        """Close the device if this was its last user."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self.driver.close_device(self._device)

    def _load_symbol(self, symbol: str) -> Any:
        ffi = foreign()
        try:
            self._handle = ffi.dlopen(str(self.path), ffi.RTLD_NOW | ffi.RTLD_LOCAL)
        except OSError as error:
            raise DeviceError(f"{self.path}: cannot be loaded: {error}") from error
        ffi.cdef(f"extern crosschip_device {symbol};", override=True)
        try:
            return ffi.addressof(self._handle, symbol)
        except (KeyError, AttributeError) as error:
            raise DeviceError(f"{self.path}: does not export {symbol}") from error

    def _validate(self, symbol: str) -> None:
        for name in ("name", "vendor", "version"):
            if getattr(self.driver, name) == foreign().NULL:
                raise DeviceError(f"{self.path}: {symbol} has no {name}; set it")
        for name in _REQUIRED:
            if self.function(name) is None:
                raise DeviceError(f"{self.path}: {symbol} has no {name}; set it")
        for names in _ALL_OR_NONE:
            present = [self.function(name) is not None for name in names]
            if any(present) and not all(present):
                missing = names[present.index(False)]
                raise DeviceError(
                    f"{self.path}: {symbol} has no {missing}, but {names[present.index(True)]}; "
                    "set all of them or none"
                )
        if self.driver.type not in members(Kind):
            raise DeviceError(f"{self.path}: {symbol} has the type {self.driver.type}; use 0 to 2")


@cache
def open_library(path: Path, name: str) -> Library:
    """Return the library of a driver, loaded once per process.

    Raises:
        DeviceError: the library cannot be used.
    """
    return Library(path, name)
