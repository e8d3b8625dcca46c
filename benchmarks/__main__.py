"""Run benchmarks: `python -m benchmarks [NAME …] [--quick] [--output FOLDER]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, report
from benchmarks.models import FOLDER, ROOT
from benchmarks.result import Result, keep
from benchmarks.subject import Row, Subject
from benchmarks.subjects import names, subject

_NAMES = ", ".join(names())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if something could not be measured."""
    options = _parser().parse_args(arguments)
    if not FOLDER.is_dir():
        print(f"{FOLDER}: the models are not there; `make models` writes them", file=sys.stderr)
        return 1
    failed = False
    for name in options.names or names():
        failed |= _run(name, quick=options.quick, output=options.output)
        written = report.write(options.output)
    for path in written:
        print(f"wrote {path}")
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", type=_known, help=_NAMES)
    parser.add_argument("--quick", action="store_true", help="try everything on little")
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "build" / "benchmarks",
        help="the folder of the documents, where earlier results of other benchmarks stay",
    )
    return parser


def _known(name: str) -> str:
    if name not in names():
        raise argparse.ArgumentTypeError(f"there is no benchmark {name!r}; there are {_NAMES}")
    return name


def _run(name: str, *, quick: bool, output: Path) -> bool:
    """Measure one subject, show and keep it; true if it failed, which is part of the report."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    measured = subject(name)
    about = machine.describe()
    rows: list[Row] = []
    failure = ""
    try:
        for row in measured.measure(quick=quick):
            rows.append(row)
            print(" | ".join(filter(None, row.cells().values())), flush=True)
    except Exception as error:  # the other subjects are still worth measuring
        failure = f"{type(error).__name__}: {error}"
    result = Result.of(name, about, rows, failure)
    keep(result, _drawing(measured, rows), output)
    print(f"met: {result.verdict} ({time.perf_counter() - start:.0f} s)\n", flush=True)
    return bool(failure)


def _drawing(measured: Subject, rows: Sequence[Row]) -> str:
    draw = getattr(measured, "draw", None)
    if not (draw and rows):
        return ""
    from benchmarks import plot  # here, for nothing else needs matplotlib

    return plot.svg(draw(rows))


if __name__ == "__main__":
    sys.exit(main())
