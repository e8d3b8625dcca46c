"""Writes what the documentation says about devices and operators, out of the code.

python scripts/write_tables.py          # rewrites README.md and docs/operators.md
python scripts/write_tables.py --check  # says what is stale, exit status 1 if anything is
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from inspect import getdoc
from pathlib import Path

import crosschip
from crosschip.hal import Device
from crosschip.ops import Operator, operators
from crosschip.runtime.discovery import open_device

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Write or check every generated table; the exit status."""
    with_devices = [
        open_device(report.name) for report in crosschip.list_devices() if report.available
    ]
    pages = {
        ROOT / "README.md": _filled(
            (ROOT / "README.md").read_text("utf-8"), "devices", _device_table(with_devices)
        ),
        ROOT / "docs" / "operators.md": _operators_page(with_devices),
    }
    stale = [path for path, text in pages.items() if _old(path) != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; run: make docs")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path], "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def _device_table(devices: Sequence[Device]) -> str:
    rows = []
    for device in devices:
        ways = [_way(device, operator) for operator in operators().values()]
        extra = "" if device.name == "reference" else f'`pip install "crosschip[{device.name}]"`'
        rows.append(
            (
                f"`{device.name}`",
                device.kind.value,
                str(getdoc(type(device))).split("\n")[0].rstrip("."),
                f"{ways.count('yes')} of {len(ways)}",
                str(ways.count("decomposed")),
                extra or "always there",
            )
        )
    head = ("device", "kind", "what does the work", "operators", "and decomposed", "install")
    return _table(head, rows)


def _operators_page(devices: Sequence[Device]) -> str:
    rows = [
        (f"`{name}`", _summary(operator), *(_way(device, operator) for device in devices))
        for name, operator in operators().items()
    ]
    table = _table(("operator", "what it computes", *(d.name for d in devices)), rows)
    return (
        "# Operators and who runs them\n\n"
        "Written by `make docs` from the operators' definitions in `src/crosschip/ops`.\n"
        "*decomposed*: the runtime runs it there as simpler operators where its parameters allow\n"
        "that. A device may decline single uses of what it runs; `crosschip explain` says why.\n\n"
        f"{table}"
    )


def _way(device: Device, operator: type[Operator]) -> str:
    if operator.type in device.operators():
        return "yes"
    return "decomposed" if operator.decompose is not Operator.decompose else "no"


def _summary(operator: type[Operator]) -> str:
    paragraph = str(getdoc(operator)).split("\n\n")[0]
    return " ".join(paragraph.split()).replace("|", "\\|")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _filled(text: str, name: str, table: str) -> str:
    pattern = rf"(<!-- table:{name} -->\n).*?(<!-- end -->)"
    return re.sub(pattern, lambda found: found[1] + table + found[2], text, flags=re.DOTALL)


def _old(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
