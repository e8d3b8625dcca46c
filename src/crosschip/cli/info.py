"""`crosschip info`."""

from __future__ import annotations

from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import typer

import crosschip
from crosschip.cli import _options
from crosschip.cli._show import console, document, table
from crosschip.importers import file_metadata
from crosschip.ir import Model
from crosschip.ir.text import legible
from crosschip.runtime.artifact.compiled_model import restore_placement
from crosschip.runtime.artifact.container import Artifact, looks_like_shipped_file
from crosschip.runtime.artifact.header import MODELS, PLACEMENT, Header, read_header
from crosschip.summary import Summary

_LONGEST_FACT = 120
"""The maximum number of characters of a text of the file in a table."""


def command(
    model: Annotated[
        Path,
        typer.Argument(help=f"{_options.MODEL_HELP} Or what `crosschip compile` wrote."),
    ],
    signature: _options.Signature = None,
    shape: _options.Shapes = None,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Say what a model is: inputs, outputs, open sizes, operators, parameters, arithmetic, memory.

    No device is needed. Amounts that depend on open sizes are formulas, and numbers with --shape.
    A multiply-add is a product that a convolution, matrix product or the like adds up.
    """
    limits, shapes = _options.budget(budget), _options.shapes(shape)
    if looks_like_shipped_file(model):
        loaded, facts = _read_compiled(model)
    else:
        loaded = crosschip.load(model, signature=signature, budget=limits)
        facts = file_metadata(model)
    summary = loaded.summary(shapes)
    if as_json:
        document({"file": str(model), "metadata": facts, **summary.to_json()})
    else:
        _print(model, facts, summary)


def _read_compiled(path: Path) -> tuple[Model, dict[str, str]]:
    """Return the model in a compiled file, and what the file says about itself."""
    with Artifact(path) as file:
        header = read_header(file)
        models, placement = bytes(file.part(MODELS)), bytes(file.part(PLACEMENT))
        facts = {"format": f"compiled by crosschip {file.version}", **_facts(header)}
        facts["digest"] = file.digest
        model = restore_placement(models, placement, header, file.location).original
    return model, facts


def _facts(header: Header) -> dict[str, str]:
    facts: dict[str, Any] = {
        "devices": ", ".join(f"{device.name} {device.version}" for device in header.devices),
        "segments": ", ".join(
            f"{segment.operations} operations on {segment.device}" for segment in header.segments
        ),
        "precision": header.options.precision.value,
        "token": header.identity.token,
    }
    return {name: str(value) for name, value in facts.items() if value}


def _print(path: Path, facts: dict[str, str], summary: Summary) -> None:
    rows = [
        (legible(name), shorten(legible(value), _LONGEST_FACT, placeholder=" …"))
        for name, value in {"name": summary.name, **facts}.items()
    ]
    table(str(path), ("field", "value"), rows)
    for each in summary.tables():
        table(each.title, each.columns, each.rows, ",".join(each.numbers))
    if summary.sizes:
        console.print("formulas become numbers with --shape", highlight=False)
