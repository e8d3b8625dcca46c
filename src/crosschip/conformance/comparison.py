"""Differences between two reports of a device."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosschip.conformance.judge import Verdict
from crosschip.drawing.tables import Table, to_html
from crosschip.ir import InputError


@dataclass(frozen=True, slots=True)
class Comparison:
    """The cases whose verdicts differ between two reports.

    Attributes:
        changed: the ids of cases by the old and the new verdict, as in `fail -> pass`.
        new: the ids of cases that only the later report has.
        gone: the ids of cases that only the earlier report has.
        worse: the ids of cases that fail now and did not before.
    """

    changed: Mapping[str, Sequence[str]]
    new: Sequence[str]
    gone: Sequence[str]
    worse: Sequence[str]

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return asdict(self)

    def table(self, most: int) -> Table:
        """Return the number of cases by change, with at most so many of their ids."""
        changes = {**self.changed, "new": self.new, "gone": self.gone}
        rows = [(name, len(ids), ", ".join(ids[:most])) for name, ids in changes.items()]
        return Table("What changed", ("change", "cases", "such as"), rows, ("cases",))

    def _repr_html_(self) -> str:
        return to_html(f"{len(self.worse)} cases are worse", [self.table(_SHOWN)])


_SHOWN = 20
"""The most cases of a change that notebooks show."""


def compare(before: Path, after: Path) -> Comparison:
    """Group the cases whose verdict changed by the old and the new verdict.

    Args:
        before: the path of the earlier report, as printed by `crosschip conformance --json`.
        after: the path of the later report.

    Raises:
        InputError: a file is not such a report.
    """
    old, new = _verdicts(before), _verdicts(after)
    changed: dict[str, list[str]] = {}
    for id, verdict in new.items():
        if id in old and old[id] != verdict:
            changed.setdefault(f"{old[id]} -> {verdict}", []).append(id)
    fail = Verdict.FAIL.value
    return Comparison(
        changed,
        [id for id in new if id not in old],
        [id for id in old if id not in new],
        [id for id, verdict in new.items() if verdict == fail and old.get(id) != fail],
    )


def _verdicts(path: Path) -> Mapping[str, str]:
    try:
        verdicts: object = json.loads(path.read_text("utf-8"))["verdicts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: is not a report; write one with `crosschip conformance DEVICE --json`: "
            f"{error}"
        ) from None
    if not isinstance(verdicts, dict):
        raise InputError(f"{path}: its verdicts are not by case id")
    return verdicts
