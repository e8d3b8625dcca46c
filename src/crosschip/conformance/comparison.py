"""Differences between two reports of a device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosschip.conformance.judge import Verdict
from crosschip.ir import InputError


def compare(before: Path, after: Path) -> dict[str, Any]:
    """Group the cases whose verdict changed by the old and the new verdict.

    Args:
        before: the path of the earlier report, as printed by `crosschip conformance --json`.
        after: the path of the later report.

    Returns:
        `changed` (`{"fail -> pass": [ids]}`), `new` and `gone` (case ids), and `worse`: the cases
        that fail now and did not before.

    Raises:
        InputError: a file is not such a report.
    """
    old, new = _verdicts(before), _verdicts(after)
    changed: dict[str, list[str]] = {}
    for id, verdict in new.items():
        if id in old and old[id] != verdict:
            changed.setdefault(f"{old[id]} -> {verdict}", []).append(id)
    fail = Verdict.FAIL.value
    return {
        "changed": changed,
        "new": [id for id in new if id not in old],
        "gone": [id for id in old if id not in new],
        "worse": [id for id, verdict in new.items() if verdict == fail and old.get(id) != fail],
    }


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
