"""Programs in the cache of devices whose code is edited, or that run in a driver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.drivers.serving import short_folder
from tests.modelling import chain, python_path

import crosschip
from crosschip.devices.kits.toolchain import Toolchain
from crosschip.hal import Device
from crosschip.hal.device import code_of
from crosschip.ops.standard.activation import Relu

DEVICE = """
import numpy as np
from crosschip import hal
from {helper} import FACTOR

class Program(hal.Program):
    def run(self, inputs):
        return [inputs[0] * np.float32(self.factor)]
    def save(self):
        return str(self.factor).encode()

class Npu(hal.Device):
    vendor, kind, version = "tests", hal.Kind.ACCELERATOR, "1"
    def supports(self, operation, options):
        return hal.YES
    def compile(self, model, options):
        program = Program()
        program.factor = FACTOR
        return program
    def load(self, saved, model, options):
        program = Program()
        program.factor = float(saved)
        return program
"""

RUN = """
import sys
import numpy as np, crosschip
from tests.modelling import chain
from crosschip.ops.standard.activation import Relu
with crosschip.compile(chain(Relu), [sys.argv[1]]) as compiled:
    print(compiled.report.cache, float(compiled(np.ones(2, np.float32))[0]))
"""


def project(folder: Path, *, package: bool) -> Path:
    """A device that is installed in place, as setuptools does it; the file to edit."""
    source = folder / "src"
    info = source / "npu.egg-info"
    info.mkdir(parents=True)
    (info / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: npu\nVersion: 1\n")
    place = source / "npu" if package else source
    place.mkdir(exist_ok=True)
    name = "npu.parts" if package else "npu_parts"
    (place / ("__init__.py" if package else "npu.py")).write_text(DEVICE.format(helper=name))
    helper = place / ("parts.py" if package else "npu_parts.py")
    helper.write_text("FACTOR = 2\n")
    entry = "[crosschip.devices]\nedited_npu = npu:Npu\n"
    (info / "entry_points.txt").write_text(entry)
    return helper


def run(folder: Path, name: str) -> str:
    """What a process of its own says: `hit` or `miss`, and what one becomes."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{python_path()}",
        "CROSSCHIP_CACHE_DIR": str(folder / "cache"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
    }
    (folder / "run").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", RUN, name], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.mark.slow
@pytest.mark.parametrize("package", [True, False])
def test_a_device_that_is_edited_in_place_compiles_anew(folder: Path, package: bool) -> None:
    helper = project(folder, package=package)
    assert run(folder, "edited_npu") == "miss 2.0"
    assert run(folder, "edited_npu") == "hit 2.0"
    helper.write_text("FACTOR = 30\n")
    assert run(folder, "edited_npu") == "miss 30.0"


@pytest.mark.slow
def test_a_driver_shares_entries_with_the_device_and_is_as_new(folder: Path) -> None:
    helper = project(folder, package=True)
    assert run(folder, "edited_npu@driver") == "miss 2.0"
    assert run(folder, "edited_npu") == "hit 2.0"
    helper.write_text("FACTOR = 30\n")
    assert run(folder, "edited_npu") == "miss 30.0"
    # The driver of the old code may be there still.
    assert run(folder, "edited_npu@driver") == "hit 30.0"


@pytest.mark.slow
def test_a_driver_shares_entries_whatever_its_time_limits_are(tmp_path: Path) -> None:
    model, x = chain(Relu), np.array([-1, 2], np.float32)
    words = []
    for name, properties in (
        ("reference", {}),
        ("reference@driver", {"driver_silence": "7"}),
        ("reference@driver", {}),
    ):
        with crosschip.compile(
            model, [name], cache=tmp_path, properties={name: properties}
        ) as compiled:
            compiled(x)
            words.append(compiled.report.cache)
    assert words == ["miss", "hit", "hit"]


def test_what_is_installed_has_no_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    (site / "installed_npu-1.dist-info").mkdir(parents=True)
    (site / "installed_npu.py").write_text(DEVICE.format(helper="installed_parts"))
    (site / "installed_parts.py").write_text("FACTOR = 1\n")
    monkeypatch.syspath_prepend(str(site))
    module = __import__("installed_npu")
    assert code_of(module.Npu) == ""


def test_files_besides_the_package_count(tmp_path: Path) -> None:
    script = tmp_path / "tool.py"
    script.write_text("")

    def device() -> type[Device]:
        return type("Chip", (Toolchain,), {"script": script, "compile": Toolchain.compile})

    before = code_of(device())
    assert code_of(device()) == before
    script.write_text("# edited")
    assert code_of(device()) != before
