"""`crosschip cache`."""

import time
from dataclasses import asdict
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document, table
from crosschip.hal.folders import cache_folder
from crosschip.ir.text import legible
from crosschip.runtime.cache.folder import Cache, Listed


def command(
    folder: _options.CacheFolder = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove all entries.")] = False,
    max_mb: Annotated[
        float | None, typer.Option(min=0, help="Remove the oldest entries beyond this size.")
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """List the compiled programs that are kept; remove damaged, old or all ones."""
    cache = Cache(folder or cache_folder())
    limit = 0 if clear else None if max_mb is None else max_mb * 2**20
    removed = 0 if limit is None else cache.prune(limit)
    listing = cache.listing()
    if as_json:
        entries = [_described(listed) for listed in listing]
        document(
            {
                "folder": str(cache.folder),
                "limit": cache.limit,
                "leftovers": cache.leftovers(),
                "removed": removed,
                "entries": entries,
            }
        )
        return
    table(
        legible(str(cache.folder)),
        ("model", "device", "operations", "MB", "last used", "state"),
        map(_row, listing),
        numbers="operations,MB",
    )
    console.print(
        f"{len(listing)} entries, {_megabytes(sum(listed.size for listed in listing))} of at most "
        f"{_megabytes(cache.limit)}; {_megabytes(cache.leftovers())} left over by unfinished "
        f"writes; {removed} removed"
    )


def _described(listed: Listed) -> dict[str, object]:
    about = asdict(listed.entry) if listed.entry else {}
    return {
        "file": str(listed.path),
        "bytes": listed.size,
        "used": listed.used,
        "problem": listed.problem,
        **about,
    }


def _row(listed: Listed) -> tuple[object, ...]:
    entry = listed.entry
    return (
        legible(entry.model) if entry else f"{listed.path.name[:12]}…",
        legible(f"{entry.device} {entry.device_version}") if entry else "",
        entry.operations if entry else "",
        f"{listed.size / 2**20:.1f}",
        time.strftime("%Y-%m-%d %H:%M", time.localtime(listed.used)),
        listed.problem or "good",
    )


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
