"""Distributions that contain the same package are told, by the records of what they contain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosschip.runtime.discovery import conflict


def install(folder: Path, name: str, *files: str) -> None:
    """Write the metadata of a distribution, as pip leaves it."""
    metadata = folder / f"{name.replace('-', '_')}-1.32.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.32.0\n")
    (metadata / "RECORD").write_text("".join(f"{file},sha256=0,1\n" for file in files))


def test_two_distributions_of_one_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "engine", "engine/__init__.py", "engine/core.so")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert conflict("engine") == ""
    install(tmp_path, "engine-plugin", "engine_plugin/__init__.py", "other/engine/__init__.py")
    assert conflict("engine") == ""
    install(tmp_path, "engine-gpu", "engine/__init__.py", "engine/core.so")
    assert conflict("engine") == (
        "engine 1.32.0 and engine-gpu 1.32.0 contain the same package 'engine', and have "
        "overwritten each other's files; keep one: pip uninstall -y engine engine-gpu, then pip "
        "install the one that you need"
    )


def test_a_package_that_nobody_has() -> None:
    assert conflict("a_package_that_nobody_has") == ""


@pytest.mark.slow
def test_the_command_warns(tmp_path: Path) -> None:
    """The device's own package is named by its class; the engine itself is not opened for it."""
    (tmp_path / "acme.py").write_text(
        "from crosschip.devices.reference import ReferenceDevice\n"
        "class AcmeDevice(ReferenceDevice):\n"
        "    vendor, version, module = 'Acme', '1', 'acme_engine'\n"
    )
    install(tmp_path, "acme", "acme.py")
    (tmp_path / "acme-1.32.0.dist-info" / "entry_points.txt").write_text(
        "[crosschip.devices]\nacme = acme:AcmeDevice\n"
    )
    for name in ("acme-engine", "acme-engine-fast"):
        install(tmp_path, name, "acme_engine/__init__.py")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "crosschip", "devices"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        "warning: acme-engine 1.32.0 and acme-engine-fast 1.32.0 contain the same package"
        in done.stdout
    )
