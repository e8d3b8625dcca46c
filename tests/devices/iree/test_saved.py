"""Saved programs: run without the compiler and JAX, and compiled for another machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.devices.iree.test_programs import X, model_of

import crosschip
from crosschip.hal import Device
from crosschip.ir import Array, DeviceError, Model
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.matrix import MatMul

WEIGHTS: Array = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)

_ELF = b"\x7fELF"
_AARCH64 = 183
"""The number of the architecture in a file's header (the ELF standard's EM_AARCH64)."""

_CHILD = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name in ("jax", "jaxlib", "iree.compiler"):
            raise ImportError(f"{name} is hidden")

sys.meta_path.insert(0, Hiding())
import numpy as np
import crosschip

file, inputs, outputs = sys.argv[1:]
with crosschip.load_compiled(file) as compiled:
    np.save(outputs, compiled(np.load(inputs)))
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of(lambda b, x: [b.add(Relu, b.add(MatMul, x, WEIGHTS))], X)


@pytest.mark.usefixtures("device")
def test_a_saved_program_needs_the_runtime_alone(model: Model, tmp_path: Path) -> None:
    with crosschip.compile(model, "iree", cache=False) as compiled:
        compiled.save(tmp_path / "model.chips")
    np.save(tmp_path / "x.npy", X)
    files = [str(tmp_path / name) for name in ("model.chips", "x.npy", "y.npy")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", _CHILD, *files], check=True, env=environment)
    y = np.load(tmp_path / "y.npy")
    np.testing.assert_allclose(y, np.maximum(X @ WEIGHTS, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("device")
def test_a_program_for_another_machine(model: Model, tmp_path: Path) -> None:
    other = "riscv64-linux-gnu" if os.uname().machine == "aarch64" else "aarch64-linux-gnu"
    properties = {"iree": {"target": other}}
    path = tmp_path / "model.chips"
    with crosschip.compile(model, "iree", cache=False, properties=properties) as compiled:
        compiled.save(path)
        with pytest.raises(DeviceError, match=f"the program is for {other}"):
            compiled(X)
    saved = path.read_bytes()
    header = saved[saved.index(_ELF) :]
    if other.startswith("aarch64"):
        assert int.from_bytes(header[18:20], "little") == _AARCH64
    with (
        crosschip.load_compiled(path) as loaded,
        pytest.raises(DeviceError, match="save it and run it there"),
    ):
        loaded(X)


def test_damaged_programs_are_refused(device: Device, model: Model) -> None:
    from crosschip.hal import Options

    for saved in (b"", b"CHIPIRE1" + bytes(8), b"CHIPIRE1" + (2).to_bytes(8, "little") + b"[]x"):
        with pytest.raises(DeviceError, match="iree failed to load"):
            device.load(saved, model, Options())
