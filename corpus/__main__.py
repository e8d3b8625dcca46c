"""Get the corpus and try it: `python -m corpus fetch|make|list|run|speed|table [NAME …]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from corpus.entry import Entry
from corpus.fetching import fetch
from corpus.made import all_made
from corpus.making import make
from corpus.packages import sources
from corpus.running import DEVICES, try_all
from corpus.speed import ENGINES, measure

Wanted = Callable[[Entry], bool]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m corpus", description=__doc__)
    parser.add_argument("task", choices=_TASKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models, as in `minilm*`")
    parser.add_argument("--devices", action="append", choices=DEVICES, help="one list only")
    options = parser.parse_args(arguments)

    def wanted(entry: Entry) -> bool:
        return not options.names or any(fnmatch(entry.name, name) for name in options.names)

    failures = _TASKS[options.task](wanted, options.devices or DEVICES)
    for failure in failures:
        print(failure, file=sys.stderr)
    return int(bool(failures))


def _fetch(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    chosen = [
        replace(source, members=[m for m in source.members if wanted(m.entry)])
        for source in sources()
    ]
    return fetch(chosen)


def _make(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    return make([made.entry for made in all_made().values() if wanted(made.entry)])


def _list(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    for entry in entries():
        if wanted(entry):
            print(f"{entry.name:40} {entry.group:12} {entry.family:30} {entry.origin}")
    return []


def _run(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    return try_all(list(filter(wanted, entries())), devices)


def _speed(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    return measure(
        list(filter(wanted, entries())), [engine for engine in ENGINES if engine in devices]
    )


def _table(wanted: Wanted, devices: Sequence[str]) -> list[str]:
    from corpus.table import write

    write(entries())
    return []


def entries() -> list[Entry]:
    """Every model, those out of packages first."""
    fetched = [member.entry for source in sources() for member in source.members]
    return fetched + [made.entry for made in all_made().values()]


def entry_called(name: str) -> Entry:
    """The model of a name."""
    return next(entry for entry in entries() if entry.name == name)


_TASKS: Mapping[str, Callable[[Wanted, Sequence[str]], list[str]]] = {
    "fetch": _fetch,
    "make": _make,
    "list": _list,
    "run": _run,
    "speed": _speed,
    "table": _table,
}

if __name__ == "__main__":
    sys.exit(main())
