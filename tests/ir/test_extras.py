"""Install hints name existing extras, and are quoted for all shells."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUFFIXES = {".py", ".md", ".in", ".yml"}


def texts() -> dict[Path, str]:
    """Return all texts that users read: code with messages, templates and documents."""
    folders = [ROOT / "src", ROOT / "docs", ROOT / "examples"]
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES]
    return {path: path.read_text("utf-8") for path in (*files, ROOT / "README.md")}


def test_commands_quote_extras_as_every_shell_takes_them() -> None:
    """Brackets are a pattern in zsh, and single quotes part of the name in cmd.exe."""
    unquoted = re.compile(r"""pip install[^"\n]*(?<!")\b(?:crosschip|\.)\[|'(?:crosschip|\.)\[""")
    assert [str(path) for path, text in texts().items() if unquoted.search(text)] == []


def test_extras_that_are_named_are_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    for path, text in texts().items():
        hints = re.findall(r"install_command\(['\"]([\w-]+)['\"]\)", text)
        commands = re.findall(r"crosschip\[([\w,-]+)\]", text)
        named = {name for each in (*hints, *commands) for name in each.split(",")}
        assert named <= extras, path
