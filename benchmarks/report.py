"""The results as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.result import PERFORMANCE, Result, kept, picture_of

_GENERATED = "Written by `python -m benchmarks`; do not edit."
_INTRODUCTION = (
    f"What crosschip costs, measured against the engines called directly. {_GENERATED} "
    "`make benchmark` measures again on your machine."
)


def write(folder: Path) -> list[Path]:
    """Write the documents of all results that are kept in a folder.

    Returns:
        The files that were written.
    """
    results = kept(folder)
    written = []
    for name in dict.fromkeys(result.document for result in results):
        chosen = [result for result in results if result.document == name]
        head = _summary(chosen) if name == PERFORMANCE else [_GENERATED]
        sections = [part for result in chosen for part in _section(result, folder)]
        path = folder / f"{name}.md"
        text = "\n\n".join([f"# {name.capitalize()}", *head, *sections])
        path.write_text(f"{text}\n", encoding="utf-8")
        written.append(path)
    return written


def _summary(results: Sequence[Result]) -> list[str]:
    rows = [
        {
            "what": f"[{result.title}](#{_anchor(result.title)})",
            "requirement": result.subject.REQUIREMENT,
            "met": result.verdict,
        }
        for result in results
    ]
    return [_INTRODUCTION, table(rows)]


def _section(result: Result, folder: Path) -> list[str]:
    picture = picture_of(result, folder)
    return [
        f"## {result.title}",
        result.method,
        f"Requirement: {result.subject.REQUIREMENT}. Met: {result.verdict}.",
        *([f"![{result.title}]({picture})"] if picture else []),
        *([table(result.rows)] if result.rows else []),
        _about(result.about),
    ]


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
    return f"Measured: {'; '.join(f'{name} {text}' for name, text in about.items())}."


def _anchor(title: str) -> str:
    """The anchor of a heading, as GitHub and its like make it."""
    kept = [c for c in title.lower().replace(" ", "-") if c.isalnum() or c in "-_"]
    return "".join(kept)
