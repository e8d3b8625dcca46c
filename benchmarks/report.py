"""The results as documents."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.subject import Row, Subject

PERFORMANCE = "performance"
"""The document of the subjects that name no other."""

_GENERATED = "Written by `python -m benchmarks`; do not edit."


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of a benchmark.

    Attributes:
        name: of the subject.
        subject: what was measured.
        rows: the figures; if it failed, those before.
        failure: why it failed; empty if it did not.
    """

    name: str
    subject: Subject
    rows: Sequence[Row]
    failure: str = ""

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
        """The number of figures within the bar, and the number that should be."""
        if self.failure:
            return f"**failed**: {self.failure}"
        judged = [row.held for row in self.rows if row.held is not None]
        if all(judged):
            return f"yes, all {len(judged)}"
        return f"**no**: {sum(judged)} of {len(judged)}"

    def _description(self) -> str:
        return inspect.cleandoc(self.subject.__doc__ or "")


def write(results: Sequence[Result], about: Mapping[str, str], folder: Path) -> list[Path]:
    """Write the documents that there are results for; `performance.md` has a plot.

    Args:
        results: what was measured.
        about: the machine, in words.
        folder: where to write.

    Returns:
        The files that were written.
    """
    from benchmarks import plot  # here, for nothing else needs matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    documents: dict[str, str] = {}
    for name in dict.fromkeys(result.document for result in results):
        chosen = [result for result in results if result.document == name]
        if name != PERFORMANCE:
            documents[f"{name}.md"] = _document(name, chosen, about)
            continue
        drawing = plot.draw({result.name: result.rows for result in chosen})
        if drawing:
            documents[f"{name}.svg"] = drawing
        documents[f"{name}.md"] = _performance(chosen, about, bool(drawing))
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in documents]


def _performance(results: Sequence[Result], about: Mapping[str, str], with_plot: bool) -> str:
    summary = [
        {
            "what": f"[{result.title}](#{_anchor(result.title)})",
            "bar": result.subject.BAR,
            "held": result.verdict,
        }
        for result in results
    ]
    parts = [
        "# Performance",
        f"What crosschip costs, measured against the engines called directly. {_GENERATED} "
        "`make benchmark` measures again on your machine.",
        table(summary),
        *(["![Latency on one device and time per operation](performance.svg)"] * with_plot),
        *(part for result in results for part in _section(result)),
        "## The machine",
        _about(about),
    ]
    return "\n\n".join(parts) + "\n"


def _document(name: str, results: Sequence[Result], about: Mapping[str, str]) -> str:
    parts = [
        f"# {name.capitalize()}",
        _GENERATED,
        *(part for result in results for part in _section(result)),
        "## The machine",
        _about(about),
    ]
    return "\n\n".join(parts) + "\n"


def _section(result: Result) -> list[str]:
    held = f"The bar: {result.subject.BAR}. Held: {result.verdict}."
    figures = [table([row.cells() for row in result.rows])] if result.rows else []
    return [f"## {result.title}", result.method, held, *figures]


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows by heading as a Markdown table; columns of numbers are aligned to the right."""
    headings = list(rows[0])
    rules = [
        "---:" if all(_is_number(row[heading]) for row in rows) else "---" for heading in headings
    ]
    lines = [headings, rules, *([row[heading] for heading in headings] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _is_number(cell: str) -> bool:
    return not cell or cell.lstrip("-")[:1].isdigit()


def _about(about: Mapping[str, str]) -> str:
    return table([{"": name, " ": text} for name, text in about.items()])


def _anchor(title: str) -> str:
    """The anchor of a heading, as GitHub and its like make it."""
    kept = [c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_"]
    return "".join(kept)
