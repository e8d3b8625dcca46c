"""Makes the models of `corpus.made`, each in a process of the environment that has the tools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from corpus.entry import FOLDER, ROOT, Entry

_LIST = ROOT / "corpus" / "requirements.txt"
_LIMIT_SECONDS = 600


def make(entries: Sequence[Entry]) -> list[str]:
    """Make the models that are not there.

    Returns:
        What could not be made, a line each.
    """
    missing = [entry for entry in entries if not entry.file.exists()]
    python = _python() if missing else Path()
    return [failure for entry in missing if (failure := _make(entry, python))]


def _python() -> Path:
    """The interpreter of the environment with the tools, which is made anew if the list changed."""
    folder = FOLDER / "venv"
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    if not installed.exists() or installed.read_bytes() != _LIST.read_bytes():
        print(f"== installing the tools in {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), *install, "--requirement", str(_LIST)], check=True)
        shutil.copyfile(_LIST, installed)
    return python


def _make(entry: Entry, python: Path) -> str:
    shutil.rmtree(entry.file.parent.with_name(f"{entry.file.parent.name}.part"), True)
    try:
        done = subprocess.run(
            [python, "-m", "corpus.made", entry.name],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{entry.name}: not made within {_LIMIT_SECONDS} s"
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        return f"{entry.name}: {said[-1]}"
    print(f"made {entry.name}", flush=True)
    return ""
