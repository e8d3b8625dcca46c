"""Run benchmarks: `python -m benchmarks [NAME …] [--quick] [--output FOLDER]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import (
    accuracy,
    automatic,
    backend,
    bisect,
    border,
    caching,
    channels_last,
    conformance,
    decoder,
    drivers,
    endurance,
    latency,
    loading,
    machine,
    memory,
    operators,
    overhead,
    placement,
    quantized,
    rapidocr,
    report,
    requests,
    scaling,
    starting,
    throughput,
    tuning,
    xla,
)
from benchmarks.models import FOLDER, ROOT
from benchmarks.subject import Row, Subject

SUBJECTS: Mapping[str, Subject] = {
    "overhead": overhead,
    "border": border,
    "throughput": throughput,
    "endurance": endurance,
    "requests": requests,
    "drivers": drivers,
    "latency": latency,
    "decoder": decoder,
    "quantized": quantized,
    "tuning": tuning,
    "loading": loading,
    "starting": starting,
    "memory": memory,
    "caching": caching,
    "scaling": scaling,
    "placement": placement,
    "automatic": automatic,
    "accuracy": accuracy,
    "operators": operators,
    "channels_last": channels_last,
    "backend": backend,
    "conformance": conformance,
    "rapidocr": rapidocr,
    "xla": xla,
    "bisect": bisect,
}

_NAMES = ", ".join(SUBJECTS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if something could not be measured."""
    options = _parser().parse_args(arguments)
    if not FOLDER.is_dir():
        print(f"{FOLDER}: the models are not there; `make models` writes them", file=sys.stderr)
        return 1
    names = options.names or list(SUBJECTS)
    complete = set(names) == set(SUBJECTS) and not options.quick
    folder = options.output or ROOT / ("docs" if complete else "build/benchmarks")
    about = machine.describe()
    results = [_run(name, quick=options.quick) for name in names]
    for path in report.write(results, about, folder):
        print(f"wrote {path}")
    return int(any(result.failure for result in results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", type=_known, help=_NAMES)
    parser.add_argument("--quick", action="store_true", help="try everything on little")
    parser.add_argument(
        "--output",
        type=Path,
        help="where to write; docs if everything is measured, else build/benchmarks",
    )
    return parser


def _known(name: str) -> str:
    if name not in SUBJECTS:
        raise argparse.ArgumentTypeError(f"there is no benchmark {name!r}; there are {_NAMES}")
    return name


def _run(name: str, *, quick: bool) -> report.Result:
    """Measure one subject and show it; what fails is part of the report."""
    subject = SUBJECTS[name]
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    rows: list[Row] = []
    failure = ""
    try:
        for row in subject.measure(quick=quick):
            rows.append(row)
            print(" | ".join(filter(None, row.cells().values())), flush=True)
    except Exception as error:  # the other subjects are still worth measuring
        failure = f"{type(error).__name__}: {error}"
    result = report.Result(name, subject, rows, failure)
    print(f"held: {result.verdict} ({time.perf_counter() - start:.0f} s)\n", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
