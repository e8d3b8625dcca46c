"""Claims of a device's maker: exclusions and wider accuracy, in the device's own file.

The file is `conformance.toml` beside the device's module:

    [[exclude]]
    case = "POW/3/*"
    reason = "the driver's pow of a negative base is wrong before version 2.1; see issue 7"

    [[accuracy]]
    operator = "EXP"
    type = "float16"
    tolerance = 0.01
"""

from __future__ import annotations

import inspect
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from crosschip.hal import Device
from crosschip.ir import InputError

FILE_NAME = "conformance.toml"


@dataclass(frozen=True, slots=True)
class Claims:
    """Exclusions by case id (which may have wildcards), and accuracy by operator and type."""

    exclusions: tuple[tuple[str, str], ...] = ()
    accuracies: tuple[tuple[str, str, float], ...] = ()

    def exclusion(self, id: str) -> str:
        """Return the reason why a case is excluded; empty if it is not."""
        return next((why for pattern, why in self.exclusions if fnmatchcase(id, pattern)), "")

    def accuracy(self, operator: str, element_type: str) -> float | None:
        """Return the tolerance that is claimed for an operator; `None` if there is no claim."""
        for name, type_, tolerance in self.accuracies:
            if name == operator and type_ in ("", element_type):
                return tolerance
        return None


def claims_of(device: type[Device], path: Path | None = None) -> Claims:
    """Read the claims in the file beside the device's module, or in `path`; none without a file.

    Raises:
        InputError: the file cannot be read, or an entry is malformed.
    """
    if path is None:
        path = Path(inspect.getfile(device)).with_name(FILE_NAME)
        if not path.exists():
            return Claims()
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    exclusions = [
        (_text(path, entry, "case"), _text(path, entry, "reason"))
        for entry in _entries(path, content, "exclude")
    ]
    accuracies = [
        (_text(path, entry, "operator"), str(entry.get("type", "")), _number(path, entry))
        for entry in _entries(path, content, "accuracy")
    ]
    return Claims(tuple(exclusions), tuple(accuracies))


def _entries(path: Path, content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    entries = content.get(name, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: {name} must be written as [[{name}]]")
    return entries


def _text(path: Path, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{path}: {entry} needs a {key!r}, a text that is not empty")
    return value


def _number(path: Path, entry: dict[str, Any]) -> float:
    value = entry.get("tolerance")
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise InputError(f"{path}: {entry} needs a 'tolerance' in [0, 1)")
    return float(value)
