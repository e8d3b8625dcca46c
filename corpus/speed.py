"""Times every model that is right, against the same engine reading the same file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from corpus.children import run
from corpus.entry import FOLDER, Entry
from corpus.running import is_right, results

ENGINES = ("onnxruntime", "openvino")
SPEEDS = FOLDER / "speed.json"
LEAST, ADDED_MICROSECONDS = 0.97, 6.0
"""The least ratio of a model above a millisecond, and the most that is added to one below."""

_LIMIT_SECONDS = 300


def measure(entries: Sequence[Entry], engines: Sequence[str], threads: int) -> list[str]:
    """Time models, and keep what is known about others.

    Args:
        entries: the models.
        engines: the engines, which are the devices' names, too.
        threads: how many either of the two uses.

    Returns:
        What is too slow or could not be timed, a line each.
    """
    failures = []
    for entry in entries:
        if entry.file.suffix == ".tflite":
            continue  # ONNX Runtime reads no such file, and OpenVINO not all of them
        for engine in engines:
            if not is_right(results().get(entry.name, {}).get(engine, {"verdict": ""})):
                continue
            ended = run("pace", entry.name, engine, str(threads), seconds=_LIMIT_SECONDS)
            figures: dict[str, Any] = (
                {"said": ended.failure} if ended.failure else json.loads(ended.printed[-1])
            )
            figures["threads"] = threads
            line = f"{entry.name} on {engine}: {said(figures)}"
            print(line, flush=True)
            if not held(figures):
                failures.append(line)
            known = speeds()
            known.setdefault(entry.name, {})[engine] = figures
            SPEEDS.write_text(json.dumps(known, indent=1), encoding="utf-8")
    return failures


def speeds() -> dict[str, dict[str, Any]]:
    """What is known: by model, by engine."""
    if not SPEEDS.exists():
        return {}
    known: dict[str, dict[str, Any]] = json.loads(SPEEDS.read_text(encoding="utf-8"))
    return known


def held(figures: dict[str, Any]) -> bool:
    """True if we are about as fast as the engine."""
    if "said" in figures:
        return False
    if figures["engine_ms"] < 1:
        return bool(figures["added_us"] <= ADDED_MICROSECONDS)
    return bool(figures["ratio"] >= LEAST)


def said(figures: dict[str, Any]) -> str:
    """Figures in a line."""
    if "said" in figures:
        return str(figures["said"])
    return (
        f"engine {figures['engine_ms']:.3f} ms, ours {figures['ours_ms']:.3f} ms, ratio "
        f"{figures['ratio']:.3f} ± {figures['error']:.3f}, added {figures['added_us']:.1f} µs"
    )
