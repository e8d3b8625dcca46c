"""`crosschip driver`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document, showing_progress

app = typer.Typer(help="Drivers in processes of their own.", no_args_is_help=True)

Sockets = Annotated[
    list[Path] | None,
    typer.Option("--socket", help="The socket of a driver that another program started."),
]


@app.command()
def serve(
    device: Annotated[str, typer.Argument(help="The device that the driver runs.")],
    socket: Annotated[
        Path | None,
        typer.Option(
            help="The path of the Unix socket; if left out, the one that DEVICE@driver uses."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The number of concurrent runs.", min=1)
    ] = None,
    linger: Annotated[
        float | None,
        typer.Option(help="End after this many seconds without a client; never if left out."),
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option(help="The maximum number of bytes that one client may share.", min=1),
    ] = None,
    programs: Annotated[
        int, typer.Option(help="The maximum number of prepared programs of one client.", min=1)
    ] = 1024,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="A port of 127.0.0.1 for Prometheus to read; 0 for any."
        ),
    ] = None,
    properties: _options.Properties = None,
) -> None:
    """Run a device as a service for other processes of the same user, until it is stopped."""
    from crosschip.drivers.endpoint import Endpoint
    from crosschip.drivers.service.limits import Limits
    from crosschip.drivers.service.metrics import require, serve_metrics
    from crosschip.drivers.service.server import Service
    from crosschip.runtime.discovery import open_device

    settings = _options.properties(properties).get(device.partition(":")[0], {})
    if metrics_port is not None:
        require()
    opened = open_device(device, settings)
    path = socket or Endpoint.of(device, "driver", settings, opened.code).path
    limits = Limits(programs=programs) if memory is None else Limits(memory, programs)
    at_once = workers or opened.capabilities.concurrency or os.cpu_count() or 1
    service = Service(opened.device, device, path, at_once, limits, linger)
    signal.signal(signal.SIGTERM, lambda *_: service.stop())
    with service, serve_metrics(service, metrics_port) as address:
        if address:
            print(f"metrics: {address}", flush=True)
        service.serve()


@app.command("list")
def list_(socket: Sockets = None, as_json: _options.Json = False) -> None:
    """List the drivers that run, and those that died in the last day, with the reason."""
    from crosschip.cli._drivers import show
    from crosschip.drivers.client.monitor import look

    reports = look(socket)
    if as_json:
        document([report.document() for report in reports])
    elif not reports:
        console.print("no driver runs, and none has died of late")
    else:
        show("Drivers", reports)


@app.command()
def top(
    socket: Sockets = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two updates.")] = 1.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="The number of updates; until Ctrl-C if left out.")
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """Watch the drivers and their clients at work, until Ctrl-C; with --json, look once."""
    from crosschip.cli._drivers import watch
    from crosschip.drivers.client.monitor import Monitor

    with Monitor(socket) as watcher:
        if as_json:
            document([report.document() for report in watcher.look()])
        else:
            watch(watcher, interval, count)


@app.command()
def stop(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(help="Devices, or paths of drivers' sockets.")
    ] = None,
    all_drivers: Annotated[
        bool, typer.Option("--all", help="Stop all drivers that crosschip started.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(min=0, help="Seconds after which a driver that still runs is killed."),
    ] = 10.0,
    as_json: _options.Json = False,
) -> None:
    """Stop drivers after their current runs. Their clients go on with new ones."""
    from crosschip.drivers.client.monitor import running
    from crosschip.drivers.client.process import stop as end

    if bool(names) == all_drivers:
        raise typer.BadParameter("name drivers, or give --all", ctx=context)
    stopped = []
    for path, owner in running(names or ()).items():
        with showing_progress(f"stopping {owner.device}"):
            ended = end(path, timeout)
        service = {"device": owner.device, "socket": str(path), "process": owner.process}
        stopped.append({**service, "killed": not ended})
    if as_json:
        document(stopped)
        return
    for each in stopped:
        how = "killed, as it did not end by itself" if each["killed"] else "ended"
        console.print(f"{each['device']}, process {each['process']}: {how}", highlight=False)
    if not stopped:
        console.print("no driver runs")


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A quarantined run.")],
    device: Annotated[
        str | None,
        typer.Option(help="The device to run it on; the one whose process it ended if left out."),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds after which the run counts as hanging.")
    ] = 60.0,
    properties: _options.Properties = None,
    as_json: _options.Json = False,
) -> None:
    """Run once more what killed a driver, in a fresh driver that nobody else uses.

    The exit status is 1 if it dies of it again, or fails. With another device, its properties are
    those of --property; else these come before those that the run was kept with.
    """
    from crosschip.cli import _replays
    from crosschip.drivers.client.fatal_runs import FatalRun
    from crosschip.drivers.client.replay import Outcome, replay

    run = FatalRun.read(file)
    name = (device or run.device).partition("@")[0]
    overrides = _options.properties(properties).get(name.partition(":")[0], {})
    settings = overrides if device else {**run.properties, **overrides}
    with showing_progress(f"running {run.model.name} on {name}"):
        outcome = replay(run, name, settings, timeout)
    if as_json:
        document({"file": str(file), "device": name, **_replays.document_of(run, outcome)})
    else:
        _replays.show(run, name, outcome)
    if outcome.outcome is not Outcome.RAN:
        raise typer.Exit(1)
