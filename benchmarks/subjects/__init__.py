"""What is measured, a module each; one that is put here is a benchmark."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import cast

from benchmarks.subject import Subject


def names() -> list[str]:
    """The names of all benchmarks."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def subject(name: str) -> Subject:
    """The benchmark of that name."""
    return cast(Subject, import_module(f"{__name__}.{name}"))
