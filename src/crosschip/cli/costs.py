"""`crosschip costs`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document, table, write
from crosschip.hal.folders import cache_folder
from crosschip.ir.text import legible
from crosschip.runtime.cache.folder import Cache, ListedEntry
from crosschip.runtime.costs.records import DeviceRecord, TransferRecord, stored_records
from crosschip.runtime.plain import to_plain

app = typer.Typer(
    help="Show and remove the measured costs of blocks on devices.", no_args_is_help=True
)

Device = Annotated[
    str, typer.Option("--device", help="Only this device, as in openvino; all if left out.")
]


@app.command("list")
def list_(
    device: Device = "",
    blocks: Annotated[bool, typer.Option("--blocks", help="List the blocks, too.")] = False,
    folder: _options.CacheFolder = None,
    as_json: _options.Json = False,
) -> None:
    """List what has been measured on each device: launches, transfers and blocks."""
    cache = Cache(folder or cache_folder())
    records = [record for _, record in _selected(cache, device)]
    if as_json:
        document({"folder": str(cache.folder), "devices": list(map(_fields, records))})
        return
    table(
        legible(str(cache.folder)),
        ("device", "options", "machine", "blocks", "launch µs"),
        map(_row, records),
        numbers="blocks,launch µs",
    )
    _print_transfers(records)
    for record in records if blocks else ():
        rows = [
            (
                signature[:12],
                each.description,
                _milliseconds(each.seconds),
                _milliseconds(each.uncertainty),
            )
            for signature, each in record.blocks.items()
        ]
        columns = "block", "work", "ms", "± ms"
        table(legible(f"{record.device} {record.version}"), columns, rows, numbers="ms,± ms")


@app.command()
def clear(
    device: Device = "", folder: _options.CacheFolder = None, as_json: _options.Json = False
) -> None:
    """Remove the measured costs; what is needed of them is measured again."""
    cache = Cache(folder or cache_folder())
    cache.check_writable()
    removed = sum(cache.remove(listed.path) for listed, _ in _selected(cache, device))
    if as_json:
        document({"folder": str(cache.folder), "removed": removed})
    else:
        console.print(f"{removed} records removed")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The JSON file to write.")],
    device: Device = "",
    folder: _options.CacheFolder = None,
    as_json: _options.Json = False,
) -> None:
    """Write the measured costs to a JSON file, for other programs."""
    cache = Cache(folder or cache_folder())
    records = [record for _, record in _selected(cache, device)]
    write(file, json.dumps([_fields(record) for record in records], indent=1) + "\n")
    count = sum(len(record.blocks) for record in records)
    if as_json:
        document({"file": str(file), "devices": len(records), "blocks": count})
    else:
        console.print(
            f"{count} blocks of {len(records)} devices, in {legible(str(file))}", highlight=False
        )


def _selected(cache: Cache, device: str) -> list[tuple[ListedEntry, DeviceRecord]]:
    return [pair for pair in stored_records(cache) if device in ("", pair[1].device)]


def _fields(record: DeviceRecord) -> dict[str, object]:
    fields: dict[str, object] = to_plain(record)
    return fields


def _row(record: DeviceRecord) -> tuple[object, ...]:
    launch = "" if record.launch is None else f"{record.launch.seconds * 1e6:.1f}"
    return (
        legible(f"{record.device} {record.version}"),
        legible(record.options),
        legible(record.machine),
        len(record.blocks),
        launch,
    )


def _print_transfers(records: Sequence[DeviceRecord]) -> None:
    rows = [
        (legible(record.device), legible(destination), *_transfer_columns(transfer))
        for record in records
        for destination, transfer in record.transfers.items()
    ]
    if rows:
        table("Transfers", ("from", "to", "µs", "ms per MB"), rows, numbers="µs,ms per MB")


def _transfer_columns(transfer: TransferRecord) -> tuple[str, str]:
    return f"{transfer.seconds * 1e6:.1f}", f"{transfer.seconds_per_byte * 1e9:.3f}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
