"""Folders for cached data, which can be recreated, and for the user's data, which cannot."""

from __future__ import annotations

import os
import sys


def cache_folder() -> str:
    """Return `CROSSCHIP_CACHE_DIR` (`~` is the home folder), or the platform's cache folder."""
    configured = os.environ.get("CROSSCHIP_CACHE_DIR")
    if configured:
        return os.path.expanduser(configured)
    return _xdg_folder("XDG_CACHE_HOME", "~/.cache") or _platformdirs_folder("user_cache_dir")


def data_folder() -> str:
    """Return the platform's folder for user data."""
    return _xdg_folder("XDG_DATA_HOME", "~/.local/share") or _platformdirs_folder("user_data_dir")


def _xdg_folder(variable: str, usual: str) -> str | None:
    """Return the folder on Linux without the slow import of `platformdirs`; else `None`.

    Source: https://specifications.freedesktop.org/basedir-spec/latest
    """
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    folder = os.environ.get(variable, "")
    return os.path.join(folder if folder.strip() else os.path.expanduser(usual), "crosschip")


def _platformdirs_folder(function: str) -> str:
    import platformdirs

    folder: str = getattr(platformdirs, function)("crosschip")
    return folder
