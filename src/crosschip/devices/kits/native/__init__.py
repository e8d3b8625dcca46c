"""Devices written in C: shared libraries that implement the driver contract of `crosschip_hal.h`.

A library `lib<name>.so` in a folder of `CROSSCHIP_DEVICE_PATH` is the device `<name>`. A package
can also provide a library by an entry point, like any other device:

    from crosschip.devices.kits.native.device import NativeDevice

    class MyChip(NativeDevice):
        library = Path(__file__).with_name("libmychip.so")
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.hal.device import Device
from crosschip.ir import InputError
from crosschip.ir.errors import install_command

if TYPE_CHECKING:
    from pathlib import Path

PATH_VARIABLE = "CROSSCHIP_DEVICE_PATH"
"""The environment variable with the folders of libraries, separated by `:`."""


def libraries() -> Mapping[str, Sequence[Path]]:
    """Return the libraries in these folders by device name, without loading them.

    A name has several libraries if several folders contain one.

    Raises:
        InputError: a folder does not exist.
    """
    by_name: dict[str, list[Path]] = {}
    folders = os.environ.get(PATH_VARIABLE, "")
    if not folders:
        return by_name
    # Imported late: few users set the variable, and pathlib imports slowly.
    from pathlib import Path

    for folder in dict.fromkeys(folders.split(os.pathsep)):
        if folder and not Path(folder).is_dir():
            raise InputError(
                f"{PATH_VARIABLE} names {folder!r}, which is no folder; take it out, or make it"
            )
        for path in sorted(Path(folder).glob("lib*.so")) if folder else ():
            by_name.setdefault(path.stem.removeprefix("lib"), []).append(path.resolve())
    return by_name


def device_of(path: Path) -> type[Device]:
    """Return the device class of a library.

    Raises:
        ImportError: cffi is not installed.
    """
    try:
        from crosschip.devices.kits.native.device import NativeDevice
    except ModuleNotFoundError as error:
        raise ImportError(
            f"devices written in C need {error.name}, which is not installed; "
            f"{install_command('native')}"
        ) from error
    return type(path.stem, (NativeDevice,), {"library": path})
