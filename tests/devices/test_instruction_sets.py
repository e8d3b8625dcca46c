"""OpenVINO with kernels limited to an instruction set by the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.modelling import python_path

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.hal import processor

pytestmark = pytest.mark.slow

MODELS = """
import numpy as np
import crosschip
from crosschip.hal import Options
from crosschip.devices.openvino import OpenVinoDevice
from tests.modelling import float32, model_of
from crosschip.ops.standard.activation import PRelu, Softsign
from crosschip.ops.standard.normalization import InstanceNormalization, LayerNormalization

image = np.random.default_rng(0).normal(size=(2, 5, 7, 9)).astype(np.float32)
for make in (LayerNormalization, InstanceNormalization, Softsign):
    model = model_of(lambda b, x: b.add(make, x), float32(*image.shape))
    answer = OpenVinoDevice().supports(model.operations[0], Options())
    found, wanted = (
        crosschip.compile(model, [*devices, "reference"], cache=False)(image)
        for devices in (["openvino"], [])
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)
    print(make.type, answer.reason)
"""


def run(limit: str) -> str:
    environment = {**os.environ, "PYTHONPATH": python_path(), "ONEDNN_MAX_CPU_ISA": limit}
    done = subprocess.run(
        [sys.executable, "-c", MODELS], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif("avx512f" not in processor().split(), reason="this processor has no AVX-512")
@pytest.mark.parametrize("limit", ["AVX2", "SSE41"])
def test_normalizations_are_declined_and_right(limit: str) -> None:
    told = f"OpenVINO computes it wrong with ONEDNN_MAX_CPU_ISA={limit} here (quirk limited-"
    lines = run(limit).splitlines()
    for line, operator in zip(lines, ("LAYER", "INSTANCE"), strict=False):
        assert line.startswith(f"{operator}_NORMALIZATION")
        assert f"{told}mvn)" in line
    assert (f"{told}to-sse41)" in lines[2]) == (limit == "SSE41")


def test_a_program_is_tied_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded program chooses kernels anew, and some would die."""
    device = OpenVinoDevice()
    tied = {}
    for limit in ("AVX2", "SSE41", ""):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit) if limit else monkeypatch.delenv(
            "ONEDNN_MAX_CPU_ISA", raising=False
        )
        tied[limit] = device.capabilities().tied_to
    assert len(set(tied.values())) == len(tied)
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in tied["AVX2"]
