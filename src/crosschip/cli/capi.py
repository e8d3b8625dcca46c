"""`crosschip capi`."""

import re
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import crosschip
from crosschip.cli import _options
from crosschip.cli._show import console, document, showing_progress
from crosschip.ir import InputError
from crosschip.ir.errors import install_command
from crosschip.ir.text import legible

app = typer.Typer(
    help="C libraries that programs for NNAdapter and NNRt link against, and such programs.",
    no_args_is_help=True,
)


class Interface(StrEnum):
    """An interface for which models are exported."""

    NNADAPTER = "nnadapter"
    NNRT = "nnrt"


@app.command()
def build(
    out: Annotated[Path, typer.Option(help="The folder to write lib and include into.")],
    as_json: _options.Json = False,
) -> None:
    """Compile the C libraries for this Python, with their headers and what pkg-config reads.

    It takes a C compiler, cc, and cffi (pip install "crosschip[native]"). The libraries use the
    Python and the crosschip that have built them, where these are now.
    """
    try:
        from crosschip.apis.c.building import build as build_libraries
    except ModuleNotFoundError as error:
        raise InputError(
            f"C libraries need {error.name}, which is not installed; {install_command('native')}"
        ) from error
    with showing_progress(f"building in {out}"):
        built = build_libraries(out)
    if as_json:
        document(
            [
                {
                    "library": str(files.library),
                    "headers": list(map(str, files.headers)),
                    "pkg-config": str(files.description),
                }
                for files in built
            ]
        )
        return
    for files in built:
        for path in (files.library, *files.headers, files.description):
            console.print(f"wrote {legible(str(path))}", highlight=False)


@app.command()
def program(
    model: _options.ModelPath,
    out: Annotated[Path, typer.Option(help="The folder to write the program into.")],
    interface: Annotated[
        Interface, typer.Option(help="The interface of the calls.")
    ] = Interface.NNADAPTER,
    as_json: _options.Json = False,
) -> None:
    """Write a model as a program in C that makes an interface's calls, with a file of weights."""
    face = import_module(f"crosschip.apis.{interface}")
    writing = import_module(f"crosschip.apis.{interface}.program")

    with showing_progress(f"writing {model} out"):
        written = face.calls(crosschip.load(model))
        out.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W", "_", model.resolve().stem, flags=re.ASCII)
        files = writing.write_program(written, out, name)
    if as_json:
        document({"source": str(files.source), "weights": str(files.weights)})
        return
    for path in files:
        console.print(f"wrote {legible(str(path))}", highlight=False)
