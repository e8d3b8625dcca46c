"""The folders where crosschip keeps what it can make again, and what it cannot."""

from __future__ import annotations

import os
import sys


def cache_folder() -> str:
    """`CROSSCHIP_CACHE_DIR` (`~` is the user's home), or the platform's folder for caches."""
    configured = os.environ.get("CROSSCHIP_CACHE_DIR")
    if configured:
        return os.path.expanduser(configured)
    return _of_linux("XDG_CACHE_HOME", "~/.cache") or _platforms("user_cache_dir")


def data_folder() -> str:
    """The platform's folder for the user's data."""
    return _of_linux("XDG_DATA_HOME", "~/.local/share") or _platforms("user_data_dir")


def _of_linux(variable: str, usual: str) -> str | None:
    """A folder on Linux, where its rule is shorter than importing the library takes; else `None`.

    Source: https://specifications.freedesktop.org/basedir-spec/latest
    """
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    folder = os.environ.get(variable, "")
    return os.path.join(folder if folder.strip() else os.path.expanduser(usual), "crosschip")


def _platforms(which: str) -> str:
    import platformdirs

    folder: str = getattr(platformdirs, which)("crosschip")
    return folder
