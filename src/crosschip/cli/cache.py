"""`crosschip cache`."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document, showing_progress, table
from crosschip.hal.folders import cache_folder
from crosschip.ir.text import legible
from crosschip.runtime.artifact.container import Artifact
from crosschip.runtime.cache.archive import export_entries, import_entries
from crosschip.runtime.cache.folder import Cache, ListedEntry
from crosschip.runtime.cache.secret import secret_file

app = typer.Typer(
    help="Show, check and clean the cache of compiled programs.", no_args_is_help=True
)

Archive = Annotated[Path, typer.Argument(help="A file of cache entries.")]


@app.command("list")
def list_(folder: _options.CacheFolder = None, as_json: _options.Json = False) -> None:
    """List what is kept, the most recently used first; programs are not read for that."""
    cache = _cache(folder)
    listing = cache.listing(whole=False)
    if as_json:
        document({**_folder_fields(cache), "entries": list(map(_describe, listing))})
        return
    _print(cache, listing)
    console.print(
        f"{len(listing)} entries, {_megabytes(sum(listed.size for listed in listing))} of at most "
        f"{_megabytes(cache.limit)}; {_megabytes(cache.unfinished_nbytes())} being written"
    )


@app.command()
def verify(folder: _options.CacheFolder = None, as_json: _options.Json = False) -> None:
    """Read and check everything that is kept; the exit status is 1 if something is damaged."""
    cache = _cache(folder)
    with showing_progress(f"checking {cache.folder}"):
        listing = cache.listing()
    damaged = [listed for listed in listing if listed.problem]
    if as_json:
        document({**_folder_fields(cache), "good": len(listing) - len(damaged),
                  "damaged": list(map(_describe, damaged))})  # fmt: skip
    else:
        if damaged:
            _print(cache, damaged)
        console.print(
            f"{len(listing) - len(damaged)} of {len(listing)} entries are good"
            + ("; `crosschip cache clear --damaged` removes the others" if damaged else "")
        )
    if damaged:
        raise typer.Exit(1)


@app.command()
def clear(
    folder: _options.CacheFolder = None,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Remove only damaged entries.")
    ] = False,
    max_mb: Annotated[
        float | None,
        typer.Option(
            min=0, help="Remove damaged entries, and beyond this size the least recently used ones."
        ),
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """Remove what is kept: all of it, or what the options say."""
    cache = _cache(folder)
    removed = cache.prune(max_mb * 2**20 if max_mb is not None else inf if damaged else 0)
    remaining = cache.listing(whole=False)
    if as_json:
        document({**_folder_fields(cache), "removed": removed, "left": len(remaining)})
        return
    console.print(
        f"{removed} entries removed, {len(remaining)} left, "
        f"{_megabytes(sum(listed.size for listed in remaining))}"
    )


@app.command()
def path(folder: _options.CacheFolder = None, as_json: _options.Json = False) -> None:
    """Say where programs are kept, and where the secret is that they are authenticated with."""
    location = folder or cache_folder()
    if as_json:
        document({"folder": str(location), "secret": secret_file()})
    else:
        print(location)


@app.command("export")
def export(
    file: Archive, folder: _options.CacheFolder = None, as_json: _options.Json = False
) -> None:
    """Write all that is kept to one file, for another machine or user."""
    with showing_progress(f"writing {file}"):
        count = export_entries(_cache(folder), file)
    with Artifact(file) as written:
        digest = written.digest
    size = file.stat().st_size
    if as_json:
        document({"file": str(file), "entries": count, "bytes": size, "digest": digest})
        return
    console.print(f"{count} entries, {_megabytes(size)}, in {legible(str(file))}", highlight=False)
    console.print(f"digest: {digest}", highlight=False)


@app.command("import")
def import_(
    file: Archive,
    folder: _options.CacheFolder = None,
    digest: _options.Digest = None,
    as_json: _options.Json = False,
) -> None:
    """Take over what `export` wrote. It holds programs, which run with your rights.

    Import a file only if you trust whom it is from.
    """
    cache = _cache(folder)
    with showing_progress(f"reading {file}"):
        count = import_entries(cache, file, digest)
    if as_json:
        document({**_folder_fields(cache), "imported": count})
    else:
        console.print(f"{count} entries taken over to {legible(str(cache.folder))}")


def _cache(folder: Path | None) -> Cache:
    return Cache(folder or cache_folder())


def _folder_fields(cache: Cache) -> dict[str, object]:
    return {
        "folder": str(cache.folder),
        "limit": cache.limit,
        "unfinished": cache.unfinished_nbytes(),
    }


def _describe(listed: ListedEntry) -> dict[str, object]:
    entry_fields = asdict(listed.entry) if listed.entry else {}
    return {
        "file": listed.path,
        "bytes": listed.size,
        "used": listed.used,
        "problem": listed.problem,
        **entry_fields,
    }


def _print(cache: Cache, listing: Sequence[ListedEntry]) -> None:
    table(
        legible(str(cache.folder)),
        ("model", "device", "operations", "MB", "last used", "state"),
        map(_row, listing),
        numbers="operations,MB",
    )


def _row(listed: ListedEntry) -> tuple[object, ...]:
    entry = listed.entry
    return (
        legible(entry.model) if entry else f"{os.path.basename(listed.path)[:12]}…",
        legible(entry.device if entry.whole else f"{entry.device} {entry.device_version}")
        if entry
        else "",
        entry.operations if entry else "",
        f"{listed.size / 2**20:.1f}",
        time.strftime("%Y-%m-%d %H:%M", time.localtime(listed.used)),
        listed.problem or (f"token {entry.key}" if entry and entry.whole else "good"),
    )


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"
