"""`crosschip export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crosschip
from crosschip.cli import _options
from crosschip.cli._show import console, document
from crosschip.exporters import Export, export, exporters
from crosschip.ir.text import legible


def command(
    model: _options.ModelPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, such as model.tflite.")
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="The format; by the suffix of the file if left out.",
            autocompletion=lambda: list(exporters()),
        ),
    ] = None,
    signature: _options.Signature = None,
    shape: _options.Shapes = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", help="A setting of the format, as in opset=17."),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify/--no-verify", help="Whether to run the file in its engine."),
    ] = True,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Write a model as ONNX, TensorFlow Lite, TOSA or .chipm, and check it in an engine.

    The file is written only if an engine that reads the format computes the same from it, on random
    inputs, as the `reference` device from the model.
    """
    limits = _options.budget(budget)
    result = export(
        crosschip.load(model, signature=signature, budget=limits),
        output,
        format,
        shapes=_options.shapes(shape),
        properties=_parse_properties(properties),
        verification=verify,
        budget=limits,
    )
    if as_json:
        document(_as_json(result))
        return
    console.print(
        f"{legible(str(result.path))}: {result.size / 2**20:.1f} MB of {result.format}, "
        f"{result.operations} operations",
        highlight=False,
    )
    if result.verification is not None:
        checked = result.verification
        console.print(f"run with {checked.engine}: error {checked.error:.1e}", highlight=False)


def _as_json(result: Export) -> dict[str, object]:
    checked = result.verification
    return {
        "file": str(result.path),
        "format": result.format,
        "bytes": result.size,
        "operations": result.operations,
        "verification": checked
        and {"engine": checked.engine, "error": checked.error, "shapes": checked.shapes},
    }


def _parse_properties(texts: list[str] | None) -> dict[str, str]:
    values = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not like opset=17", param_hint="--property")
        values[name] = value
    return values
