"""Output of `crosschip driver replay`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from crosschip.cli._drivers import short
from crosschip.cli._show import console, table
from crosschip.drivers.client.fatal_runs import FatalRun
from crosschip.drivers.client.replay import Outcome, Replay
from crosschip.ir.text import legible


def document_of(run: FatalRun, replay: Replay) -> Mapping[str, object]:
    """Return the outcome of a run as JSON values; numbers that are not finite are `null`."""
    return {
        "model": run.model.name,
        "kept_for": run.reason,
        "outcome": replay.outcome.value,
        "problem": replay.problem,
        "run_ms": replay.seconds * 1e3,
        "outputs": list(_outputs(run, replay)),
    }


def show(run: FatalRun, device: str, replay: Replay) -> None:
    """Print the outcome of a run."""
    console.print(f"kept for: {short(run.reason)}", highlight=False)
    if replay.outcome is not Outcome.RAN:
        outcome = "died of it" if replay.outcome is Outcome.DIED else "failed"
        console.print(f"{device} {outcome}: {legible(replay.problem)}", highlight=False)
        return
    console.print(f"{device} ran it in {replay.seconds * 1e3:.2f} ms", highlight=False)
    columns = ("name", "shape", "element type", "least", "greatest", "NaN")
    rows = [[_cell(value) for value in each.values()] for each in _outputs(run, replay)]
    table("Outputs", columns, rows, "least,greatest,NaN")


def _outputs(run: FatalRun, replay: Replay) -> Iterator[Mapping[str, Any]]:
    named = zip(run.model.outputs.items(), replay.outputs, strict=False)
    for (name, operand), value in named:
        yield {
            "name": legible(name),
            "shape": list(value.shape) if isinstance(value, np.ndarray) else None,
            "dtype": str(operand.type.element_type),
            **_range(value),
        }


def _range(value: Any) -> Mapping[str, Any]:
    """Return the least and the greatest finite element, and the number of the others."""
    if not isinstance(value, np.ndarray) or value.dtype.hasobject or np.iscomplexobj(value):
        return {"least": None, "greatest": None, "nan": None}
    numbers = value.astype(np.float64) if value.dtype.kind not in "biu" else value
    finite = numbers[np.isfinite(numbers)]
    ends = (finite.min().item(), finite.max().item()) if finite.size else (None, None)
    return {"least": ends[0], "greatest": ends[1], "nan": int(np.isnan(numbers).sum())}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
