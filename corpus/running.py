"""Tries every model on every list of devices and writes down what came of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpus.children import run
from corpus.entry import FOLDER, Entry
from corpus.expected import path_of, read

DEVICES = (
    "onnxruntime",
    "openvino,onnxruntime",
    "auto",
    "openvino,reference",
    "openvino",
)
"""The lists of devices, as they are preferred."""

RESULTS = FOLDER / "results.json"

_LIMIT_SECONDS = 300


def try_all(entries: Sequence[Entry], devices: Sequence[str]) -> list[str]:
    """Try models, and keep what is known about others.

    Returns:
        What is not right, a line each.
    """
    failures = []
    for entry in entries:
        for chosen, result in _tried(entry, devices):
            line = f"{entry.name} on {chosen}: {said(result)}"
            print(line, flush=True)
            if chosen in DEVICES and not is_right(result):
                failures.append(line)
            known = results()
            known.setdefault(entry.name, {})[chosen] = result
            whole = RESULTS.with_suffix(".part")
            whole.write_text(json.dumps(known, indent=1), encoding="utf-8")
            whole.replace(RESULTS)  # who reads meanwhile reads all of it
    return failures


def results() -> dict[str, dict[str, Any]]:
    """What is known: by model, by list of devices; `engine` is what OpenVINO itself makes of it."""
    if not RESULTS.exists():
        return {}
    known: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return known


def is_right(result: Mapping[str, Any]) -> bool:
    """True if the model ran right, with its sizes fixed and with them open."""
    return {result["verdict"], result.get("open_verdict", "right")} == {"right"}


def said(result: Mapping[str, Any]) -> str:
    """A result in a line."""
    open = "" if result["verdict"] != "right" or is_right(result) else "open_"
    words = [result[f"{open}verdict"]]
    words += ["with open sizes"] * bool(open)
    words += [result[key] for key in (f"{open}said", f"{open}where") if key in result]
    if f"{open}apart" in result:
        pairs = zip(result[f"{open}apart"], result[f"{open}allowed"], strict=True)
        words += [", ".join(f"{_short(apart)} of {_short(allowed)}" for apart, allowed in pairs)]
    return "; ".join(words)


def _short(number: float | None) -> str:
    return "infinite" if number is None else f"{number:.2g}"


def _engine(entry: Entry) -> dict[str, Any]:
    """What OpenVINO makes of the file itself."""
    known = read(entry)
    apart, allowed = known.openvino, known.allowed(entry)
    if apart is None:
        return {"verdict": "refused", "said": "by OpenVINO itself"}
    right = all(a <= b for a, b in zip(apart, allowed, strict=True))
    finite = [None if math.isinf(a) else a for a in apart]
    return {"verdict": "right" if right else "wrong", "apart": finite, "allowed": allowed}


def _tried(entry: Entry, devices: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not entry.file.exists():
        return
    if not path_of(entry).exists():
        asked = run("expected", entry.name, seconds=_LIMIT_SECONDS)
        if not path_of(entry).exists():
            yield "engine", {"verdict": "refused", "said": f"onnxruntime: {asked.failure}"}
            return
    yield "engine", _engine(entry)
    left = list(devices)
    while left:
        # One process for all, as far as none ends it.
        tried = run("trial", entry.name, *left, seconds=_LIMIT_SECONDS * len(left))
        for line in tried.printed:
            yield left.pop(0), json.loads(line)
        if left:
            yield left.pop(0), {"verdict": "crash", "said": tried.failure}
