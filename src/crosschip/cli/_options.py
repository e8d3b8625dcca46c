"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    Path, typer.Argument(help="A .pdmodel, a Paddle 3 .json, a folder with either, or an .onnx.")
]
Devices = Annotated[
    str, typer.Option(help="Devices in the order of preference, as in openvino,onnxruntime.")
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Fix the shape of an input, as in x=1x3x48x320."),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", help="Read an input from a file, as in x=image.npy."),
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="How many processor threads a run may use.")
]
Precision = Annotated[
    str, typer.Option(help="Arithmetic for float32 operations: float32, bfloat16 or float16.")
]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache-dir", help="Where compiled programs are kept; see `crosschip cache`."),
]
UseCache = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Whether to keep and use compiled programs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


def shapes(given: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """The shapes that `--shape NAME=1x3x48x320` gives, by input.

    Raises:
        typer.BadParameter: one is not like that.
    """
    found = {}
    for text in given or ():
        name, _, sizes = text.rpartition("=")
        try:
            found[name] = tuple(map(int, sizes.split("x"))) if sizes else ()
        except ValueError:
            name = ""
        if not name or min(found[name], default=0) < 0:
            raise typer.BadParameter(f"{text!r} is not like x=1x3x48x320", param_hint="--shape")
    return found


def files(given: Sequence[str] | None) -> dict[str, Path]:
    """The files that `--input NAME=FILE` gives, by input.

    Raises:
        typer.BadParameter: one is not like that.
    """
    found = {}
    for text in given or ():
        name, _, file = text.partition("=")
        if not name or not file:
            raise typer.BadParameter(f"{text!r} is not like x=image.npy", param_hint="--input")
        found[name] = Path(file)
    return found


def cache(use: bool, folder: Path | None) -> bool | Path:
    """The `cache` argument of `crosschip.compile`."""
    return folder or True if use else False
