"""`crosschip driver`."""

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options

app = typer.Typer(help="Drivers in processes of their own.", no_args_is_help=True)


@app.command()
def serve(
    device: Annotated[str, typer.Argument(help="The device that the driver runs.")],
    socket: Annotated[Path, typer.Option(help="The path of the Unix socket to answer on.")],
    workers: Annotated[
        int | None, typer.Option(help="How many runs are under way at once.", min=1)
    ] = None,
    linger: Annotated[
        float | None,
        typer.Option(help="After how many seconds without a client to end; never if left out."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(help="The most bytes that one client may share.", min=1)
    ] = None,
    programs: Annotated[
        int, typer.Option(help="The most programs that one client may have prepared.", min=1)
    ] = 1024,
    properties: _options.Properties = None,
) -> None:
    """Run a device as a service for other processes of the same user, until it is stopped."""
    from crosschip.hdi.service.limits import Limits
    from crosschip.hdi.service.server import Service
    from crosschip.runtime.discovery import open_device

    given = _options.properties(properties).get(device.partition(":")[0], {})
    opened = open_device(device, given)
    limits = Limits(programs=programs) if memory is None else Limits(memory, programs)
    at_once = workers or opened.capabilities.concurrency or os.cpu_count() or 1
    service = Service(opened.device, device, socket, at_once, limits, linger)
    signal.signal(signal.SIGTERM, lambda *_: service.stop())
    service.serve()
