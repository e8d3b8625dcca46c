"""Programs that packages written for ONNX Runtime are run with, a module each.

A module of this folder is named after its package and defines `load`, which imports the package,
loads its models and returns a function without arguments: it runs the package on a sample and
returns what the package answers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Any

Run = Callable[[], Any]
"""Runs a package on its sample; returns text, numbers and arrays, nested in lists and mappings."""


def names() -> list[str]:
    """Return the names of all programs."""
    return sorted(
        module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")
    )


def load(name: str) -> Run:
    """Import a program's package and load its models."""
    run: Run = import_module(f"{__name__}.{name}").load()
    return run
