"""The page of figures, and the row for the table of chips."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import table
from gpu.machine import GPUS, PROCESSOR
from gpu.parts import NAMES, part
from gpu.results import PartResult, read

PAGE = "page.md"


def write_page(folder: Path) -> Path:
    """Write the page of all parts that have results in a folder; return its path."""
    sections = ["# Figures of a GPU", *_summary(folder)]
    for name in NAMES:
        results = read(folder, name)
        if results:
            sections += _section(name, results)
    path = folder / PAGE
    path.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return path


def verdict(results: Sequence[PartResult]) -> str:
    """Return how many rows meet the requirement, in words."""
    judged = [met for result in results for met in result.met if met is not None]
    return f"{sum(judged)} of {len(judged)}"


def _summary(folder: Path) -> list[str]:
    rows = []
    for name in NAMES:
        results = read(folder, name)
        if results and part(name).REQUIREMENT:
            seconds = sum(result.seconds for result in results)
            rows.append({"part": name, "met": verdict(results), "s": f"{seconds:.0f}"})
    row = _row(folder)
    return [
        *([table(rows)] if rows else []),
        *(["The row for `docs/chips.md`:", row] if row else []),
    ]


def _row(folder: Path) -> str:
    """Return the row of the table of chips; empty if no kit ran."""
    facts = {row["what"]: row["value"] for each in read(folder, "machine") for row in each.rows}
    chip = facts.get(GPUS, facts.get(PROCESSOR, "")).partition(",")[0]
    kits = read(folder, "kit")
    sentences = [_sentence(kit, read(folder, "models")) for kit in kits if kit.rows]
    names = "; ".join(f"`{kit.device}`" for kit in kits if kit.rows)
    tests = f"run on {chip}: {'; '.join(sentences)}"
    return f"| NVIDIA's GPUs, CUDA | `nvidia_tensorrt` | {names} | {tests} |" if sentences else ""


def _sentence(kit: PartResult, models: Sequence[PartResult]) -> str:
    """Return the counts of cases and models on one device."""
    counts = [
        f"{row['cases']} cases {row['pass']} pass, {row['FAIL']} fail, {row['refused']} refused"
        for row in kit.rows
    ]
    own = [each for each in models if each.device == kit.device]
    right = [f"{verdict(own)} models right"] if own else []
    return f"`{kit.device}` {'; '.join([*counts, *right])}"


def _section(name: str, results: Sequence[PartResult]) -> list[str]:
    module = part(name)
    title, _, method = inspect.cleandoc(module.__doc__ or "").partition("\n")
    rows = [row for result in results for row in result.rows]
    remarks = [f"- {remark}" for result in results for remark in result.remarks]
    requirement = f"Requirement: {module.REQUIREMENT}. Met by {verdict(results)}."
    return [
        f"## {title.rstrip('.')}",
        method.strip(),
        *([requirement] if module.REQUIREMENT else []),
        *([table(rows)] if rows else []),
        *(["\n".join(remarks)] if remarks else []),
    ]
