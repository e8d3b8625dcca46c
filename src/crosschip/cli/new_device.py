"""`crosschip new-device`."""

from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document
from crosschip.ir.text import legible


def command(
    name: Annotated[str, typer.Argument(help="The device's name, as in acme_npu.")],
    folder: Annotated[
        Path, typer.Option("--in", help="The folder in which to create the project's folder.")
    ] = Path(),
    native: Annotated[bool, typer.Option("--native", help="A driver in C.")] = False,
    as_json: _options.Json = False,
) -> None:
    """Write the project of a new device: it installs, runs one operator, and has tests and CI."""
    from crosschip.scaffold.project import new_device

    written = new_device(name, folder, native=native)
    if as_json:
        document({"device": name, "files": [str(path) for path in written]})
        return
    for path in written:
        console.print(f"wrote {legible(str(path))}", highlight=False)
    project = legible(str(folder / name))
    first = f"make -C {project}" if native else f"pip install -e {project}"
    console.print(f"next: {first} && crosschip conformance {name} --quick", highlight=False)
