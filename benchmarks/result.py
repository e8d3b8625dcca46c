"""The result of one benchmark, and its file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.subject import Row, Subject
from benchmarks.subjects import names, subject

PERFORMANCE = "performance"
"""The document of the subjects that name no other."""

_FIGURES = "figures"
"""The folder of the results, beside the documents."""


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a benchmark.

    Attributes:
        name: the name of the subject.
        about: the machine and the versions.
        rows: the rows of the table, by heading; if it failed, the rows measured before.
        met: for each row, whether it meets the requirement; `None` if none applies to it.
        failure: the error if it failed, else empty.
    """

    name: str
    about: Mapping[str, str]
    rows: Sequence[Mapping[str, str]]
    met: Sequence[bool | None]
    failure: str = ""

    @classmethod
    def of(
        cls, name: str, about: Mapping[str, str], rows: Sequence[Row], failure: str = ""
    ) -> Result:
        """The result with the rows that were measured."""
        return cls(name, about, [row.cells() for row in rows], [row.met for row in rows], failure)

    @property
    def subject(self) -> Subject:
        """What was measured."""
        return subject(self.name)

    @property
    def title(self) -> str:
        """The subject, in a line."""
        return self._description().partition("\n")[0].rstrip(".")

    @property
    def method(self) -> str:
        """The method of measurement."""
        return self._description().partition("\n")[2].strip()

    @property
    def document(self) -> str:
        """The document that it is in."""
        return getattr(self.subject, "DOCUMENT", PERFORMANCE)

    @property
    def verdict(self) -> str:
        """Whether the figures meet the requirement, and the number of those that do."""
        if self.failure:
            return f"**failed**: {self.failure}"
        judged = [met for met in self.met if met is not None]
        if all(judged):
            return f"yes, by all {len(judged)} measurements"
        return f"**no**, by {sum(judged)} of {len(judged)} measurements"

    def _description(self) -> str:
        return inspect.cleandoc(self.subject.__doc__ or "")


def keep(result: Result, drawing: str, folder: Path) -> None:
    """Write a result and its picture, an SVG that may be empty, in place of those before."""
    path = folder / _FIGURES / f"{result.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
    picture = path.with_suffix(".svg")
    picture.unlink(missing_ok=True)
    if drawing:
        picture.write_text(drawing, encoding="utf-8")


def kept(folder: Path) -> list[Result]:
    """The results in a folder of documents, of the subjects that there are."""
    paths = [folder / _FIGURES / f"{name}.json" for name in names()]
    return [
        Result(**json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.exists()
    ]


def picture_of(result: Result, folder: Path) -> str:
    """The path of a result's picture, from the documents; empty if it has none."""
    picture = f"{_FIGURES}/{result.name}.svg"
    return picture if (folder / picture).exists() else ""
