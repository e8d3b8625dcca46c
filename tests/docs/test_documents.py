"""What the documents say is so: examples run, generated tables are fresh, links lead somewhere."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", ["README.md", "docs/road.md"])
def test_examples_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = doctest.testfile(str(ROOT / name), module_relative=False, encoding="utf-8")
    assert result.attempted > 0
    assert result.failed == 0


def test_generated_tables_are_fresh() -> None:
    script = ROOT / "scripts" / "write_tables.py"
    result = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    prose = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#]+)", prose)
    missing = [
        target
        for target in targets
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert not missing


def test_formats_page_has_the_versions_of_the_code() -> None:
    from crosschip.ops.definition import serialization
    from crosschip.runtime import cache, entry

    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    assert f"`{cache.SUFFIX}`" in page or f"<key>{cache.SUFFIX}" in page
    assert f"A cache entry (`<key>{cache.SUFFIX}`), format version {entry.FORMAT_VERSION}" in page
    assert f"A saved model, format version {serialization.FORMAT_VERSION}" in page
    first, second = re.findall(r"\| 8 \| 4 \| format version, unsigned: (\d+) \|", page)
    assert (int(first), int(second)) == (entry.FORMAT_VERSION, serialization.FORMAT_VERSION)
    assert serialization.MAGIC.hex(" ").upper() in page
