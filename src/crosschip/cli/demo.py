"""`crosschip demo`."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._show import console, document, showing_progress, table
from crosschip.ir import InputError
from crosschip.ir.errors import install_command
from crosschip.runtime.discovery import automatic

if TYPE_CHECKING:
    from crosschip.demo.ocr import Ocr, Stage
    from crosschip.demo.reader import Line


@with_options(Engines)
def command(
    *,
    image: Annotated[Path | None, typer.Option(help="The picture to read.")] = None,
    devices: _options.Devices = "auto",
    save: Annotated[Path, typer.Option(help="The file to write the picture with boxes to.")] = Path(
        "crosschip-demo.png"
    ),
    use_cache: _options.UseCache = True,
    engines: Engines,
    as_json: _options.Json = False,
) -> None:
    """Read the text in a picture with PP-OCRv4, and say which device ran what, and why."""
    try:
        from crosschip.demo import ocr, picture
        from crosschip.demo.reader import draw
    except ImportError as error:
        raise InputError(f"{error}; run: {install_command('demo')}") from None
    names = _preferred() if devices == "auto" else devices.split(",")
    settings = engines.configuration(names)
    try:
        pixels = picture.load(image or picture.DEMO_PICTURE)
    except (OSError, ValueError) as error:
        raise InputError(f"{image}: cannot be read as a picture: {error}") from None
    with showing_progress(f"compiling three models for {', '.join(names)}"):
        reading = ocr.Ocr(names, use_cache, settings)
    with reading:
        try:
            reading.reader.read(pixels)
        except ValueError as error:
            raise InputError(f"{image}: {error}") from None
        reading.reset_times()  # of the first runs, in which engines allocate and warm up
        start = time.perf_counter()
        lines = reading.reader.read(pixels)
        total = (time.perf_counter() - start) * 1e3
        try:
            draw(pixels, lines).save(save)
        except (OSError, ValueError) as error:
            raise InputError(f"--save {save}: cannot be written: {error}") from None
        if as_json:
            document(_report(reading, lines, total, save))
        else:
            _print(reading, lines, total, save)


def _preferred() -> list[str]:
    """Return the devices of `"auto"`, without the slow reference if there are others."""
    names = automatic()
    return [name for name in names if name != "reference"] or names


def _why(stage: Stage) -> str:
    decisions = stage.compiled.placement.decisions
    texts = {
        f"{device}: {text}"
        for decision in decisions
        for device, text in decision.reasons.items()
        if text != "supported"
    }
    if not texts:
        return "its first choice, and supports all of it"
    more = [f"… and {len(texts) - 3} more reasons"] if len(texts) > 3 else []
    return "\n".join([*sorted(texts)[:3], *more])


def _rows(reading: Ocr) -> list[dict[str, object]]:
    return [
        {
            "model": stage.name,
            "device": segment.device,
            "operations": len(segment.model.operations),
            "why": _why(stage),
            "compile_ms": stage.compiled.report.milliseconds,
            "cache": stage.compiled.report.cache,
            "runs": len(stage.milliseconds),
            "median_ms": statistics.median(stage.milliseconds) if stage.milliseconds else None,
        }
        for stage in reading.stages.values()
        for segment in stage.compiled.placement.segments
    ]


def _report(reading: Ocr, lines: list[Line], total: float, picture: Path) -> dict[str, object]:
    return {
        "lines": [asdict(line) for line in lines],
        "models": _rows(reading),
        "total_ms": total,
        "picture": str(picture),
    }


def _print(reading: Ocr, lines: list[Line], total: float, picture: Path) -> None:
    table(
        "Text",
        ("#", "text", "score", "turned"),
        [
            (number, line.text, f"{line.score:.3f}", "yes" if line.turned else "")
            for number, line in enumerate(lines, 1)
        ],
        numbers="#,score",
    )
    rows = _rows(reading)
    table(
        "Who ran what, and why",
        ("model", "device", "operations", "why"),
        [(row["model"], row["device"], row["operations"], row["why"]) for row in rows],
        numbers="operations",
    )
    table(
        "Latencies",
        ("model", "compiled in ms", "cache", "runs", "median ms"),
        [
            (
                stage.name,
                f"{stage.compiled.report.milliseconds:.0f}",
                stage.compiled.report.cache,
                len(stage.milliseconds),
                f"{statistics.median(stage.milliseconds):.2f}" if stage.milliseconds else "",
            )
            for stage in reading.stages.values()
        ],
        numbers="compiled in ms,runs,median ms",
    )
    console.print(f"read {len(lines)} lines in {total:.0f} ms; the boxes are in {picture}")
