"""`crosschip run`."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, with_options
from crosschip.cli._show import console, document, table
from crosschip.ir import InputError
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.inputs import write_value

_MAX_NAME = 50  # of an output in a file name: no file system takes them at any length

_MEANINGFUL = ("model", "input", "shape", "save", "seed", "budget", "as_json")
"""The parameters that apply to a compiled model."""


@with_options(Compilation)
def command(
    context: typer.Context,
    model: _options.ModelPath,
    compilation: Compilation,
    save: Annotated[
        Path | None, typer.Option(help="Write each output to this folder, as .npy or .json.")
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """Compile a model, run it once on files or random inputs, and show the devices.

    A file that `crosschip compile` wrote runs without compiling.
    """
    compiled, inputs = compilation.load_or_compile(model, context, _MEANINGFUL)
    with compiled:
        start = time.perf_counter()
        outputs = compiled.run(inputs)
        latency = (time.perf_counter() - start) * 1e3
        files = _save(outputs, save) if save else {}
        if as_json:
            document(_report(compiled, outputs, files, latency))
        else:
            _print(compiled, outputs, files, latency)


def _report(
    compiled: CompiledModel, outputs: dict[str, Any], files: dict[str, str], latency: float
) -> dict[str, object]:
    return {
        "outputs": [
            {
                "name": name,
                "shape": list(value.shape) if isinstance(value, np.ndarray) else None,
                "dtype": str(compiled.outputs[name].type.element_type),
                "file": files.get(name),
            }
            for name, value in outputs.items()
        ],
        "segments": [
            {"device": segment.device, "operations": len(segment.model.operations)}
            for segment in compiled.placement.segments
        ],
        "latency_ms": latency,
        "placement": compiled.placement.summary(),
        "compile_ms": compiled.report.milliseconds,
        "cache": compiled.report.cache,
        "choice": asdict(compiled.placement.choice) if compiled.placement.choice else None,
    }


def _shape(value: Any) -> str:
    """Return the shape of a tensor; of other values the kind and length."""
    if isinstance(value, np.ndarray):
        return str(list(value.shape))
    return "none" if value is None else f"{type(value).__name__} of {len(value)}"


def _save(outputs: dict[str, Any], folder: Path) -> dict[str, str]:
    files = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, (name, value) in enumerate(outputs.items()):
            legible = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
            path = folder / f"{index}-{legible[:_MAX_NAME]}"
            files[name] = str(write_value(path, value))
    except OSError as error:
        raise InputError(f"--save {folder}: cannot be written to: {error.strerror}") from None
    return files


def _print(
    compiled: CompiledModel, outputs: dict[str, Any], files: dict[str, str], latency: float
) -> None:
    table(
        "Outputs",
        ("name", "shape", "element type", "file"),
        [
            (name, _shape(v), compiled.outputs[name].type.element_type, files.get(name, ""))
            for name, v in outputs.items()
        ],
    )
    table(
        "Segments",
        ("device", "operations"),
        [(s.device, len(s.model.operations)) for s in compiled.placement.segments],
        numbers="operations",
    )
    console.print(compiled.placement.summary(), highlight=False)
    report = compiled.report
    how = "loaded" if report.cache == "file" else "compiled"
    console.print(
        f"{how} in {report.milliseconds:.0f} ms (cache: {report.cache}), "
        f"first run took {latency:.2f} ms"
    )
    if compiled.placement.choice:
        console.print(f"chosen by measurement: {compiled.placement.choice}", highlight=False)
