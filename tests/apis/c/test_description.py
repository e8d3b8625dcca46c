"""What `pkg-config` says binds a program to the libraries' folder, wherever the two are called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize("library", ["nnadapter", "neural_network_runtime"])
def test_folders_are_absolute_where_the_search_path_is_relative(
    libraries: Path, library: str
) -> None:
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", library],
        env={**os.environ, "PKG_CONFIG_PATH": f"{libraries.name}/lib/pkgconfig"},
        cwd=libraries.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    flags = done.stdout.split()
    folders = [flag[2:] for flag in flags if flag.startswith(("-L", "-I"))]
    folders += [flag.rpartition(",")[2] for flag in flags if flag.startswith("-Wl,-rpath")]
    assert set(folders) == {str(libraries / "lib"), str(libraries / "include")}
