"""The pytest plug-in, in a project that has nothing but a device and a line of configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEVICE = """
from crosschip.hal import YES, Capabilities, Device, Kind, Support
from crosschip.devices.reference import ReferenceProgram
import numpy as np


class Program(ReferenceProgram):
    def run(self, inputs):
        return [{made} for output in super().run(inputs)]

    def save(self):
        return None


class Npu(Device):
    vendor = "me"
    kind = Kind.ACCELERATOR
    version = "1"

    def supports(self, operation, options):
        return YES if operation.type == "ABS" else Support.no(operation, "", "not on this chip")

    def compile(self, model, options):
        return Program(model)
"""


CONFIGURED = """
    @classmethod
    def known_properties(cls):
        return {"cores": "how many cores work"}

    def capabilities(self):
        return Capabilities(threads=True)

    def compile(self, model, options):
        found = options.threads, options.performance.value, self.properties
        assert found == (2, "high", {"cores": "4"}), found
        return Program(model)
"""


FEW = ("-k", "ABS or ADD or DEVICE")
"""Selects some operators' tests."""


def run(folder: Path, made: str, *arguments: str, more: str = "") -> tuple[int, str]:
    (folder / "npu.py").write_text(DEVICE.format(made=made) + more)
    configured = "crosschip_conformance_config = chip.toml\n" if more else ""
    (folder / "pytest.ini").write_text(f"[pytest]\ncrosschip_conformance = npu:Npu\n{configured}")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_a_device_that_is_right(tmp_path: Path) -> None:
    status, out = run(tmp_path, "output", "--conformance-quick", *FEW)
    assert status == 0, out
    assert "2 passed" in out
    assert "ADD: not on this chip" in out


def test_a_device_that_is_wrong(tmp_path: Path) -> None:
    status, out = run(tmp_path, "output + 1", "--conformance-quick", *FEW)
    assert status == 1, out
    assert "ABS/0/plain: output0: " in out


def test_a_configuration_says_how_it_compiles(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text(
        'threads = 2\nperformance = "high"\n[properties."npu:Npu"]\ncores = 4\n'
        "[properties.other]\nrooms = 1\n"
    )
    status, out = run(tmp_path, "output", "--conformance-quick", "-k", "ABS", more=CONFIGURED)
    assert (status, "1 passed" in out) == (0, True), out


def test_a_configuration_that_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "chip.toml").write_text("thread = 2\n")
    status, out = run(tmp_path, "output", "--conformance-quick", more=CONFIGURED)
    assert status == 4, out
    assert "ERROR: crosschip_conformance_config: " in out
    assert "there is no option 'thread' (did you mean 'threads'?)" in out


def test_nothing_happens_without_the_line(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout


def test_pytest_imports_nothing_of_the_kit_without_the_line(tmp_path: Path) -> None:
    """The plug-in is loaded in every environment that has crosschip, whatever is tested there."""
    (tmp_path / "test_mine.py").write_text(
        "import sys\n\n\n"
        "def test_mine():\n"
        "    assert 'crosschip.conformance.plugin' in sys.modules\n"
        "    ours = {name for name in sys.modules if name.startswith('crosschip')}\n"
        "    assert ours == {'crosschip', 'crosschip._interpreter', 'crosschip.conformance', "
        "'crosschip.conformance.plugin'}\n"
        "    assert not {'numpy', 'onnx', 'ml_dtypes', 'rich'} & set(sys.modules)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout
