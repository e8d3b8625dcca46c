"""What `pkg-config` says, called as in the guides, binds a program to the libraries' folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.modelling import ROOT


@pytest.mark.parametrize("page", ["nnadapter", "nnrt"])
def test_the_guides_give_an_absolute_search_path(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    paths = re.findall(r"PKG_CONFIG_PATH=(\S+)", text)
    assert paths
    assert all(path.startswith("$PWD/") for path in paths)


@pytest.mark.parametrize("library", ["nnadapter", "neural_network_runtime"])
def test_folders_are_absolute(libraries: Path, library: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", library],
        env={**os.environ, "PKG_CONFIG_PATH": str(libraries / "lib" / "pkgconfig")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    flags = done.stdout.split()
    folders = [flag[2:] for flag in flags if flag.startswith(("-L", "-I"))]
    folders += [flag.rpartition(",")[2] for flag in flags if flag.startswith("-Wl,-rpath")]
    resolved = {os.path.normpath(folder) for folder in folders}
    assert resolved == {str(libraries / "lib"), str(libraries / "include")}
