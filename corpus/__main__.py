"""Get the corpus and try it: `python -m corpus fetch|make|list|run|speed|table [NAME …]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from corpus.entry import Entry
from corpus.fetching import fetch
from corpus.made import all_made
from corpus.making import make
from corpus.packages import sources
from corpus.running import DEVICES, try_all
from corpus.speed import ENGINES, measure


@dataclass(frozen=True, slots=True)
class Asked:
    """What a task is to be done with.

    Attributes:
        names: of models, as in a shell; all if there are none.
        devices: the lists of devices to try.
        threads: how many a timed run uses.
    """

    names: Sequence[str]
    devices: Sequence[str]
    threads: int

    def wants(self, entry: Entry) -> bool:
        """True for the models that are meant."""
        return not self.names or any(fnmatch(entry.name, name) for name in self.names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m corpus", description=__doc__)
    parser.add_argument("task", choices=_TASKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models, as in `minilm*`")
    parser.add_argument(
        "--devices", action="append", choices=[*DEVICES, "reference"], help="one list only"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of `speed`")
    given = parser.parse_intermixed_args(arguments)
    asked = Asked(given.names, given.devices or DEVICES, given.threads)
    failures = _TASKS[given.task](asked)
    for failure in failures:
        print(failure, file=sys.stderr)
    return int(bool(failures))


def _fetch(asked: Asked) -> list[str]:
    return fetch(
        [
            replace(source, members=[m for m in source.members if asked.wants(m.entry)])
            for source in sources()
        ]
    )


def _make(asked: Asked) -> list[str]:
    return make([made.entry for made in all_made().values() if asked.wants(made.entry)])


def _list(asked: Asked) -> list[str]:
    for entry in filter(asked.wants, entries()):
        print(f"{entry.name:40} {entry.group:12} {entry.family:30} {entry.origin}")
    return []


def _run(asked: Asked) -> list[str]:
    return try_all(list(filter(asked.wants, entries())), asked.devices)


def _speed(asked: Asked) -> list[str]:
    engines = [engine for engine in ENGINES if engine in asked.devices]
    return measure(list(filter(asked.wants, entries())), engines, asked.threads)


def _table(asked: Asked) -> list[str]:
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


_TASKS: Mapping[str, Callable[[Asked], list[str]]] = {
    "fetch": _fetch,
    "make": _make,
    "list": _list,
    "run": _run,
    "speed": _speed,
    "table": _table,
}

if __name__ == "__main__":
    sys.exit(main())
