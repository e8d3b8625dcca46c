"""`crosschip compile`."""

from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, with_options
from crosschip.cli._show import console, document
from crosschip.ir.text import legible
from crosschip.runtime.artifact.container import Artifact
from crosschip.runtime.artifact.header import read_header


@with_options(Compilation)
def command(
    model: _options.ModelPath,
    compilation: Compilation,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, such as model.chips.")
    ],
    as_json: _options.Json = False,
) -> None:
    """Compile a model to a file that `run`, `bench` and `profile` accept.

    The file requires the same versions of the devices and, for some devices, the same processor.
    `crosschip.load_compiled` loads it in Python.
    """
    with compilation.compile(compilation.load(model)) as compiled:
        compiled.save(output)
    with Artifact(output) as file:
        header, digest, version = read_header(file), file.digest, file.version
    needed = [f"{device.name} {device.version}" for device in header.devices]
    size = output.stat().st_size
    if as_json:
        document(
            {
                "file": str(output),
                "bytes": size,
                "digest": digest,
                "token": header.identity.token,
                "devices": [
                    {"name": device.name, "version": device.version} for device in header.devices
                ],
                "placement": compiled.placement.summary(),
                "compile_ms": compiled.report.milliseconds,
                "cache": compiled.report.cache,
            }
        )
        return
    console.print(
        f"{legible(str(output))}: {size / 2**20:.1f} MB for crosschip {version} with "
        f"{', '.join(needed)}\n{compiled.placement.summary()}\ndigest: {digest}",
        highlight=False,
    )
