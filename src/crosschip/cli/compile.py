"""`crosschip compile`."""

from pathlib import Path
from typing import Annotated

import typer

import crosschip
from crosschip.cli import _options
from crosschip.cli._show import console, document, doing
from crosschip.ir.text import legible
from crosschip.runtime.cache.container import Container
from crosschip.runtime.saving.form import read_header


def command(
    model: _options.ModelPath,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write, such as model.chips.")
    ],
    devices: _options.Devices = "auto",
    shape: _options.Shapes = None,
    threads: _options.Threads = None,
    precision: _options.Precision = "float32",
    use_cache: _options.UseCache = True,
    cache_dir: _options.CacheFolder = None,
    property: _options.Properties = None,
    partition: _options.Partition = None,
    pin: _options.Pins = None,
    min_segment: _options.MinSegment = 1,
    max_segments: _options.MaxSegments = None,
    strict: _options.Strict = False,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Compile a model to a file that `run` and `bench` take, and `crosschip.load_compiled`.

    It runs where the same versions of the devices are, and, where that matters, the same processor.
    """
    limits = _options.budget(budget)
    shapes, settings = _options.shapes(shape), _options.properties(property)
    with doing(f"importing {model}"):
        loaded = crosschip.load(model, budget=limits)
    with (
        doing(f"compiling {loaded.name} for {devices}"),
        crosschip.compile(
            loaded,
            devices,
            shapes=shapes,
            cache=_options.cache(use_cache, cache_dir),
            precision=precision,
            threads=threads,
            properties=settings,
            partition=_options.partition(partition),
            pin=_options.pins(pin),
            min_segment=min_segment,
            max_segments=max_segments,
            strict=strict,
            budget=limits,
        ) as compiled,
    ):
        compiled.save(output)
    with Container(output) as file:
        header, digest = read_header(file), file.digest
    needed = [f"{needs.name} {needs.version}" for needs in header.devices]
    size = output.stat().st_size
    if as_json:
        document(
            {
                "file": str(output),
                "bytes": size,
                "digest": digest,
                "token": header.identity.token,
                "devices": [
                    {"name": needs.name, "version": needs.version} for needs in header.devices
                ],
                "placement": compiled.placement.summary(),
                "compile_ms": compiled.report.milliseconds,
                "cache": compiled.report.cache,
            }
        )
        return
    console.print(
        f"{legible(str(output))}: {size / 2**20:.1f} MB for crosschip {header.crosschip} with "
        f"{', '.join(needed)}\n{compiled.placement.summary()}\ndigest: {digest}",
        highlight=False,
    )
