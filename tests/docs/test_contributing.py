"""The steps of CONTRIBUTING.md lead where they say, followed literally in a copy of the sources."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
COPIED = ("src", "tests", "scripts", "docs", "examples", "benchmarks")

STEP = re.compile(
    r"(?P<verb>Create|Append\s+to)\s+`(?P<file>[^`]+)`:\n\n"
    r"    ```python\n(?P<text>.*?)\n    ```"
    r"|In\s+`(?P<importing>[^`]+)`,\s+add\s+`(?P<name>\w+)`\s+to\s+the\s+names\s+imported\s+from"
    r"\s+`(?P<module>[^`]+)`"
    r"|In\s+`(?P<edited>[^`]+)`,\s+replace\s+`(?P<old>[^`]+)`\s+with\s+`(?P<new>[^`]+)`"
    r"|(?<!`)`(?P<command>(?:ruff|python|pytest|crosschip) [^`]+)`",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, with the compiled modules, which its commands need not compile."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name)
    for file in ("pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile"):
        shutil.copy(ROOT / file, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "files", "commands"),
    [
        ("Add an operator", 9, 11),
        ("Add a pass", 2, 1),
        ("Add a device", 0, 2),
        ("Add a command", 1, 1),
    ],
)
def test_the_steps_work(checkout: Path, title: str, files: int, commands: int) -> None:
    """Files are written and commands run in the order in which the page names them."""
    (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    written = run = 0
    for step in STEP.finditer(section):
        if step["command"]:
            if "conformance acme_npu" not in step["command"]:  # after the tutorial, not before
                execute(checkout, step["command"])
            run += 1
        else:
            edit(checkout, step)
            written += step["file"] is not None
    assert (written, run) == (files, commands)


def edit(checkout: Path, step: re.Match[str]) -> None:
    """Write what a step says to a file of the copy."""
    file = checkout / (step["file"] or step["importing"] or step["edited"])
    before = "" if step["verb"] == "Create" else file.read_text("utf-8")
    assert file.exists() != (step["verb"] == "Create"), file
    if step["file"]:
        file.write_text(f"{before}\n\n{dedent(step['text'])}\n".lstrip(), "utf-8")
        return
    old = step["old"] or f"from {step['module']} import (\n"
    new = step["new"] or f"{old}    {step['name']},\n"
    assert old in before, step[0]
    file.write_text(before.replace(old, new, 1), "utf-8")


def execute(checkout: Path, command: str) -> None:
    """Run a command of the page on the copy's sources."""
    program, *arguments = shlex.split(command)
    options = ["-p", "no:cacheprovider"] if program == "pytest" else []
    module = [] if program == "python" else ["-m", program]
    path = os.pathsep.join((str(checkout / "src"), str(checkout)))
    done = subprocess.run(
        [sys.executable, *module, *arguments, *options],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path, "CROSSCHIP_CACHE_DIR": str(checkout / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
