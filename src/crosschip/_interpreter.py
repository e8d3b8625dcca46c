"""The interpreter that crosschip is imported in."""

from __future__ import annotations

from importlib import import_module

_MODULES = ("_interpreters", "_xxsubinterpreters")
"""The module of the standard library that knows interpreters: from Python 3.13 on, and before."""


def check() -> None:
    """Refuse an interpreter in which NumPy cannot be imported, with a sentence.

    Raises:
        ImportError: it is not the main one, and another one has imported NumPy.
    """
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
    """Tell whether this is the interpreter that the process began with, as far as is known."""
    for name in _MODULES:
        try:
            interpreters = import_module(name)
        except ImportError:
            continue
        main: bool = interpreters.get_current() == interpreters.get_main()
        return main
    return True
