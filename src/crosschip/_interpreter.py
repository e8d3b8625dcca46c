"""The check of the interpreter that imports crosschip."""

from __future__ import annotations

from importlib import import_module

_MODULES = ("_interpreters", "_xxsubinterpreters")
"""The standard library's module of interpreters: from Python 3.13 on, and before."""


def check() -> None:
    """Raise ImportError if this is a subinterpreter in which NumPy cannot be imported."""
    if not _is_main():
        try:
            import_module("numpy")
        except ImportError as error:
            raise ImportError(
                "crosschip needs NumPy, which only one interpreter of a process can import, and "
                "this is a second one; use crosschip in the main interpreter (mod_wsgi: "
                "WSGIApplicationGroup %{GLOBAL}), or in a process of its own"
            ) from error


def _is_main() -> bool:
    """Return whether this is the main interpreter, also if that is unknown."""
    for name in _MODULES:
        try:
            interpreters = import_module(name)
        except ImportError:
            continue
        main: bool = interpreters.get_current() == interpreters.get_main()
        return main
    return True
