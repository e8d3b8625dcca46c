"""`scripts/gpu`, as far as a machine without a GPU can run it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

pytest.importorskip("jax", reason="the engine of the device that is measured")
pytest.importorskip("torch", reason="the engine that networks are written for")

from gpu.engines import engine_of
from gpu.networks import Network, networks
from gpu.page import write_page
from gpu.results import PartResult, read, write

NETWORKS = [(network, "float32") for network in networks(quick=True)]
NARROW = [(network, "bfloat16") for network in networks(quick=True)[:4]]


@pytest.mark.parametrize(
    ("network", "precision"), NETWORKS + NARROW, ids=[f"{n.name}-{p}" for n, p in NETWORKS + NARROW]
)
def test_networks_are_the_same_in_jax_and_in_pytorch(network: Network, precision: str) -> None:
    x = network.input(2)
    torch, jax = engine_of("torch:cpu"), engine_of("xla:cpu")
    expected = np.asarray(torch.open(network, x, "float32", "eager")())
    result = np.asarray(jax.open(network, x, precision, "jit")())
    tolerance = 1e-5 if precision == "float32" else 0.05
    np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def _run(folder: Path, *options: str) -> None:
    command = [sys.executable, "scripts/gpu", "run", "--quick", f"--output={folder}", *options]
    subprocess.run(command, cwd=ROOT, check=True, timeout=300)


@pytest.mark.slow
def test_a_part_runs_on_the_processor_and_a_missing_device_is_left_out(tmp_path: Path) -> None:
    _run(tmp_path, "--device=xla:cpu", "--device=xla:gpu:7", "--parts=precision")
    figures = [figure for result in read(tmp_path, "precision") for figure in result.figures]
    errors = {(f["product"], f["precision"]): f["error"] for f in figures if f["error"] is not None}
    for product in ("matrices", "convolution"):
        assert errors[product, "float32"] < 2e-5 < errors[product, "bfloat16"] < 2e-2
    [processor, missing] = sorted(read(tmp_path, "devices"), key=lambda result: result.device)
    assert processor.figures[0]["version"]
    assert not processor.figures[0]["reason"]
    assert "gpu:7" in missing.figures[0]["reason"]
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "gpu:7" in page
    assert "Precision of products" in page


def test_the_page_has_the_row_for_the_table_of_chips(tmp_path: Path) -> None:
    row = {"cases": "quick", "pass": "3", "FAIL": "0", "refused": "1"}
    write(tmp_path, "kit", PartResult("xla:gpu:0", [row], [True], [{}]))
    write(tmp_path, "models", PartResult("xla:gpu:0", [{"model": "a"}], [False], [{}]))
    fact = {"what": "NVIDIA's GPUs", "value": "NVIDIA X, 1 MiB, 5"}
    write(tmp_path, "machine", PartResult("", [fact], [None], [{}]))
    text = write_page(tmp_path).read_text(encoding="utf-8")
    assert (
        "run on NVIDIA X: `xla:gpu:0` quick cases 3 pass, 0 fail, 1 refused; 0 of 1 models right |"
        in text
    )
