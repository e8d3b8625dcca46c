"""Tells which quirks of engines are still there, by running their reproductions.

python scripts/quirks.py                     # all engines
python scripts/quirks.py openvino xla        # some of them
python scripts/quirks.py --name relu-of-nan  # one quirk
python scripts/quirks.py --json              # one JSON document

The exit status is 1 if a quirk is gone or different, of which the record does not say so: with the
oldest version of the engine that has it no more, the record and what avoids it can go.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from crosschip.devices.kits.quirks import ENGINES, Quirk, Verdict, quirks_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the reproductions and print what has become of the quirks; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", choices=[[], *ENGINES], help="all if left out")
    parser.add_argument("--name", help="the quirk of this name only")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    rows: list[dict[str, str | bool]] = []
    for engine in options.engines or ENGINES:
        try:
            records = quirks_of(engine)
        except ImportError:
            records = {}
            rows.append({"engine": engine, "quirk": "", "verdict": _MISSING, "news": False})
        for record in records.values():
            if options.name in (None, record.name):
                rows.append(_row(record))
                if not options.json:
                    print("  ".join(f"{rows[-1][key]:<{width}}" for key, width in _WIDTHS.items()))
    counts = Counter(str(row["verdict"]) for row in rows)
    if options.json:
        print(json.dumps({"quirks": rows, "counts": counts}, indent=2))
    else:
        print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return int(any(row["news"] for row in rows))


_MISSING = Verdict.NOT_INSTALLED.value
_WIDTHS = {"engine": 11, "verdict": 21, "quirk": 32, "summary": 0}


def _row(record: Quirk) -> dict[str, str | bool]:
    verdict = record.verdict()
    return {
        "engine": record.engine,
        "quirk": record.name,
        "verdict": verdict.value,
        "news": record.is_news(verdict),
        "versions": record.versions,
        "fixed_in": record.fixed_in,
        "summary": f"where {record.condition}, it {record.symptom}",
    }


if __name__ == "__main__":
    raise SystemExit(main())
