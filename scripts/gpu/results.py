"""Results of the parts: rows and remarks, in one file that is written as they come."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.subject import Row

_FILE = "results.json"


@dataclass(slots=True)
class PartResult:
    """The result of one part on one device.

    Attributes:
        device: the device; empty if the part is about the machine.
        rows: the cells of each row of the table, by heading.
        met: for each row, whether it meets the requirement; `None` if none applies to it.
        figures: the values of each row, by field.
        remarks: sentences below the table, such as failures and what was left out.
        seconds: how long it took.
    """

    device: str
    rows: list[Mapping[str, str]] = field(default_factory=list)
    met: list[bool | None] = field(default_factory=list)
    figures: list[Mapping[str, Any]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, row: Row | str) -> None:
        """Add a row, or a remark."""
        if isinstance(row, str):
            self.remarks.append(row)
            return
        self.rows.append(row.cells())
        self.met.append(row.met)
        self.figures.append(asdict(row))


def read(folder: Path, part: str) -> list[PartResult]:
    """Return the results of a part on all devices, as far as there are any."""
    return [PartResult(**document) for document in _documents(folder).get(part, [])]


def write(folder: Path, part: str, result: PartResult) -> None:
    """Write a part's result on a device, in place of an earlier one on this device."""
    others = [other for other in read(folder, part) if other.device != result.device]
    documents = _documents(folder) | {part: [asdict(each) for each in (*others, result)]}
    partial = folder / f"{_FILE}.part"
    partial.write_text(json.dumps(documents, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(folder / _FILE)  # whoever reads meanwhile reads all of it


def _documents(folder: Path) -> dict[str, list[dict[str, Any]]]:
    path = folder / _FILE
    if not path.exists():
        return {}
    documents: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return documents


def add_remark(folder: Path, part: str, device: str, remark: str) -> None:
    """Add a remark to what a part has written about a device so far."""
    known = {result.device: result for result in read(folder, part)}
    result = known.get(device, PartResult(device))
    result.add(remark)
    write(folder, part, result)
