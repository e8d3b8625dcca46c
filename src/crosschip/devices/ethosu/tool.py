"""Driver of Vela, Arm's compiler for Ethos-U; runs in the environment of that package.

Each compilation is a process: Vela writes its reasons to the standard output.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

SOURCE = "model.tflite"
PROGRAM = "model_vela.tflite"
_LAYERS = "model_per-layer.csv"
_REFUSAL = re.compile(r"operator: (\S+), ofm: '(.*)'\nReason: (.*)")


def describe() -> Mapping[str, Any]:
    """Return the version of the tool."""
    return {"version": metadata.version("ethos-u-vela")}


def compile(folder: str, settings: Mapping[str, str]) -> Sequence[str]:
    """Compile `model.tflite` for the chip."""
    _run_vela(folder, settings)
    return [PROGRAM]


def report(folder: str, settings: Mapping[str, str]) -> Mapping[str, Any]:
    """Compile `model.tflite`, and return what Vela says about it.

    Returns:
        `layers`, a list of the name of each layer's output, whether the chip computes it, its
        cycles and the bytes of SRAM while it runs; `clock` in Hz; `sram` in KiB; `reasons`, why
        layers stay on the processor, by the names of their outputs.
    """
    printed = _run_vela(folder, settings)
    with open(os.path.join(folder, _LAYERS), encoding="utf-8", newline="") as file:
        layers = [
            [row["Name"], row["Target"] == "NPU", int(row["Op Cycles"]), int(row["Staging Usage"])]
            for row in csv.DictReader(file)
        ]
    (summary,) = Path(folder).glob("model_summary_*.csv")
    with summary.open(encoding="utf-8", newline="") as file:
        (totals,) = csv.DictReader(file)
    return {
        "layers": layers,
        "clock": float(totals["core_clock"]),
        "sram": float(totals["sram_memory_used"]),
        "reasons": {name: f"{why} ({op})" for op, name, why in _REFUSAL.findall(printed)},
    }


def load(folder: str, settings: Mapping[str, str]) -> None:
    """Do nothing: there is no chip."""


def run(inputs: Sequence[Any]) -> Sequence[Any]:
    """Refuse to run: Vela has no simulator."""
    raise RuntimeError("is compiled for a chip, and does not run here; save it and load it there")


def _run_vela(folder: str, settings: Mapping[str, str]) -> str:
    """Compile, and return what Vela prints."""
    arguments = [item for name, value in settings.items() for item in (f"--{name}", value)]
    arguments += ["--output-dir", folder, "--verbose-performance", "--show-cpu-operations"]
    command = [sys.executable, "-m", "ethosu.vela", os.path.join(folder, SOURCE), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if process.returncode or not os.path.exists(os.path.join(folder, PROGRAM)):
        raise RuntimeError((process.stderr + process.stdout).strip()[-2000:] or "Vela failed")
    return process.stdout
