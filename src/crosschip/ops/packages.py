"""Packages of operators: found by the entry point group `crosschip.opdefs`, or registered.

An entry point names an object with the attributes of `Package`; `crosschip.opdef.Package` is one.
A package that cannot be loaded is a warning and a line in `crosschip ops`, not a failure of ours.
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
    """A package of operators.

    Attributes:
        name: its name.
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
_state: Literal["new", "looking", "done"] = "new"


def register(package: Package) -> None:
    """Make the operators of a package known to this process; one of its name is replaced.

    Raises:
        InputError: another package has an operator of the same type.
    """
    _look()
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
        _sort()


def unregister(name: str) -> None:
    """Forget a package; nothing happens if there is none of the name."""
    with _lock:
        _packages.pop(name, None)
        _sort()


def renew(package: Package) -> None:
    """Take note of operators that a package has got since it was made known, if it was.

    Raises:
        InputError: another package has an operator of the same type.
    """
    with _lock:
        if _packages.get(package.name) is package:
            _add(package)


def _sort() -> None:
    """Sort the operators by title: each node of a model is looked up so."""
    global _by_title
    by_title: dict[str, list[type[PackagedOperator]]] = {}
    for operator in packaged_operators().values():
        by_title.setdefault(operator.title, []).append(operator)
    _by_title = by_title


def packages() -> Mapping[str, Package]:
    """The packages by name, those that are installed and those that are registered."""
    _look()
    with _lock:
        return dict(sorted(_packages.items()))


def failures() -> Mapping[str, str]:
    """The reason for each installed package that could not be loaded, by its entry point."""
    _look()
    with _lock:
        return dict(_failures)


def packaged_operators() -> Mapping[str, type[PackagedOperator]]:
    """The operators of all packages, by type."""
    operators: dict[str, type[PackagedOperator]] = {}
    for package in packages().values():
        operators.update(package.operators)
    return operators


def every_operator() -> Mapping[str, type[Operator]]:
    """The standard operators, and those of packages."""
    return {**operators(), **packaged_operators()}


def of_title(title: str, domain: str | None = None) -> type[PackagedOperator] | None:
    """The operator that a framework's file means by a title; `None` if no package has it.

    Args:
        title: the operator's name in the file.
        domain: the set of operators that the file says it is of; empty for the framework's own,
            `None` if files say nothing.

    Raises:
        InputError: several packages have one, and nothing tells which is meant.
    """
    _look()
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


def overriding(standard: str) -> type[PackagedOperator] | None:
    """The operator that takes the place of a standard one wherever a model is imported."""
    _look()
    return next((each for each in _by_title.get(standard, ()) if each.overrides), None)


def _look() -> None:
    """Load the packages that are installed, once."""
    global _state
    if _state == "done":
        return
    with _lock:
        if _state != "new":  # a package that is being loaded may load models itself
            return
        _state = "looking"
        for entry in _entries():
            _load(entry)
        _state = "done"


def _load(entry: EntryPoint) -> None:
    try:
        _add(entry.load())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # foreign code: whatever it raises is its failure
        _failures[entry.name] = f"{type(error).__name__}: {error}".splitlines()[0]
        logger.warning(
            "the package of operators %r failed to load: %s", entry.name, _failures[entry.name]
        )


def _entries() -> Iterable[EntryPoint]:
    """The entry points, one of each that is found twice."""
    return {(e.name, e.value): e for e in entry_points(GROUP)}.values()
