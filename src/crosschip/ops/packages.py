"""Operator packages: registered in code, or installed with an entry point.

An entry point of the group `crosschip.opdefs` names an object with the attributes of `Package`,
such as a `crosschip.opdef.Package`. A package that fails to load causes a warning and a line in
`crosschip ops`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from crosschip.ir import InputError
from crosschip.ir.entry_points import entry_points
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.registry import operators

if TYPE_CHECKING:
    from crosschip.ir.entry_points import EntryPoint

GROUP = "crosschip.opdefs"

logger = logging.getLogger("crosschip")


class Package(Protocol):
    """Package of operators.

    Attributes:
        name: the package's name.
        operators: its operators, by type.
    """

    @property
    def name(self) -> str: ...

    @property
    def operators(self) -> Mapping[str, type[PackagedOperator]]: ...


_packages: dict[str, Package] = {}
_by_title: dict[str, list[type[PackagedOperator]]] = {}
_failures: dict[str, str] = {}
_lock = threading.RLock()
_state: Literal["new", "loading", "done"] = "new"


def register(package: Package) -> None:
    """Register a package in this process; a package of the same name is replaced.

    Raises:
        InputError: another package has an operator of the same type.
    """
    _load_installed()
    _add(package)


def _add(package: Package) -> None:
    with _lock:
        for other in _packages.values():
            shared = sorted(package.operators.keys() & other.operators.keys())
            if shared and other.name != package.name:
                raise InputError(
                    f"there are two operators {shared[0]!r}, from the packages {other.name!r} and "
                    f"{package.name!r}; take one of them away"
                )
        _packages[package.name] = package
        _index_titles()


def unregister(name: str) -> None:
    """Remove a package from the registry, if it is there."""
    with _lock:
        _packages.pop(name, None)
        _index_titles()


def update(package: Package) -> None:
    """Register operators that were added to a package since it was registered.

    Raises:
        InputError: another package has an operator of the same type.
    """
    with _lock:
        if _packages.get(package.name) is package:
            _add(package)


def _index_titles() -> None:
    """Index the operators by title, because importers look up each node by title."""
    global _by_title
    by_title: dict[str, list[type[PackagedOperator]]] = {}
    for operator in packaged_operators().values():
        by_title.setdefault(operator.title, []).append(operator)
    _by_title = by_title


def packages() -> Mapping[str, Package]:
    """Return the installed and registered packages by name."""
    _load_installed()
    with _lock:
        return dict(sorted(_packages.items()))


def failures() -> Mapping[str, str]:
    """Return the error of each installed package that failed to load, by its entry point."""
    _load_installed()
    with _lock:
        return dict(_failures)


def packaged_operators() -> Mapping[str, type[PackagedOperator]]:
    """Return the operators of all packages, by type."""
    operators: dict[str, type[PackagedOperator]] = {}
    for package in packages().values():
        operators.update(package.operators)
    return operators


def all_operators() -> Mapping[str, type[Operator]]:
    """Return the standard operators and those of packages, by type."""
    return {**operators(), **packaged_operators()}


def operator_titled(title: str, domain: str | None = None) -> type[PackagedOperator] | None:
    """Return the operator with a title in a framework's file; `None` if no package has it.

    Args:
        title: the operator's name in the file.
        domain: the operator set in the file; empty for the framework's default set, `None` if the
            file format has no operator sets.

    Raises:
        InputError: several packages have such an operator.
    """
    _load_installed()
    candidates = _by_title.get(title)
    if not candidates:
        return None
    if domain:
        matching = [each for each in candidates if each.domain == domain]
    elif domain is None:
        matching = candidates
    else:
        matching = [each for each in candidates if each.overrides or not each.domain]
    if len(matching) > 1:
        both = " and ".join(sorted(each.package for each in matching))
        raise InputError(
            f"there are two operators called {title!r}, in the packages {both}; take one away"
        )
    return matching[0] if matching else None


def overriding_operator(standard: str) -> type[PackagedOperator] | None:
    """Return the operator that replaces a standard operator when models are imported."""
    _load_installed()
    return next((each for each in _by_title.get(standard, ()) if each.overrides), None)


def _load_installed() -> None:
    """Load the installed packages once."""
    global _state
    if _state == "done":
        return
    with _lock:
        if _state != "new":  # loading a package may import models, which calls this function
            return
        _state = "loading"
        for entry in _entries():
            _load(entry)
        _state = "done"


def _load(entry: EntryPoint) -> None:
    try:
        _add(entry.load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # code of others may raise anything
        _failures[entry.name] = f"{type(error).__name__}: {error}".splitlines()[0]
        logger.warning(
            "the package of operators %r failed to load: %s", entry.name, _failures[entry.name]
        )


def _entries() -> Iterable[EntryPoint]:
    """Return the entry points, without duplicates."""
    return {(e.name, e.value): e for e in entry_points(GROUP)}.values()
