"""The documents that tests read: right ones, and wrong ones with one defect each."""

from __future__ import annotations

from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
RIGHT = sorted((CORPUS / "right").glob("*.xml"))
WRONG = sorted((CORPUS / "wrong").glob("*.xml"))
ALL = [*RIGHT, *WRONG]


def named(path: Path) -> str:
    return path.stem


def expected() -> dict[str, list[str]]:
    """Return the messages for each wrong document, in full."""
    found: dict[str, list[str]] = {}
    for line in (CORPUS / "expected.txt").read_text("utf-8").splitlines():
        found.setdefault(line.partition(".xml:")[0], []).append(line)
    return found
