"""`crosschip costs`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Crosschip
from tests.modelling import python_path
from tests.runtime.costs.devices import compilation_of, sleeping

from crosschip.hal import Options
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.costs.records import BlockRecord, Records, TransferRecord


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cache with costs of two devices, and a program."""
    cache = Cache(tmp_path / "cache")
    records = Records(compilation_of(sleeping(a={}, b={})).devices, Options(), cache)
    records.set_launch("a", TransferRecord(12.5e-6, 1e-10))
    records.set_transfer("a", "b", TransferRecord(30e-6, 2e-9))
    records.add_block("a", "f" * 32, BlockRecord(0.0015, 0.0001, "2 operations"))
    records.add_block("b", "f" * 32, BlockRecord(0.0025, 0.0001, "2 operations"))
    records.save()
    cache.write(Entry("0" * 64, "npu", "1.0", "model", 3), b"program")
    return cache.folder


def test_costs_are_listed(crosschip: Crosschip, folder: Path) -> None:
    document = crosschip("costs", "list", "--cache-dir", folder, "--json").document
    by_device = {record["device"]: record for record in document["devices"]}
    assert set(by_device) == {"a", "b"}
    assert by_device["a"]["launch"] == {"seconds": 12.5e-6, "seconds_per_byte": 1e-10}
    assert by_device["a"]["transfers"] == {"b 1.0": {"seconds": 30e-6, "seconds_per_byte": 2e-9}}
    assert by_device["b"]["blocks"]["f" * 32]["seconds"] == 0.0025
    shown = crosschip("costs", "list", "--blocks", "--cache-dir", folder).out
    assert "12.5" in shown
    assert "30.0" in shown
    assert "2 operations  1.500" in shown
    only = crosschip("costs", "list", "--device", "b", "--cache-dir", folder, "--json").document
    assert [record["device"] for record in only["devices"]] == ["b"]


def test_costs_are_cleared_and_programs_stay(crosschip: Crosschip, folder: Path) -> None:
    outcome = crosschip("costs", "clear", "--device", "a", "--cache-dir", folder, "--json")
    assert outcome.document == {"folder": str(folder), "removed": 1}
    assert crosschip("costs", "clear", "--cache-dir", folder).out == "1 records removed\n"
    assert crosschip("costs", "list", "--cache-dir", folder, "--json").document["devices"] == []
    (left,) = crosschip("cache", "list", "--cache-dir", folder, "--json").document["entries"]
    assert left["model"] == "model"


def test_costs_are_exported(crosschip: Crosschip, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "costs.json"
    outcome = crosschip("costs", "export", file, "--cache-dir", folder, "--json")
    assert outcome.document == {"file": str(file), "devices": 2, "blocks": 2}
    written = json.loads(file.read_text())
    listed = crosschip("costs", "list", "--cache-dir", folder, "--json").document["devices"]
    assert written == listed
    shown = crosschip("costs", "export", file, "--device", "a", "--cache-dir", folder).out
    assert shown == f"1 blocks of 1 devices, in {file}\n"


def test_costs_are_read_without_engines(folder: Path) -> None:
    script = (
        "import sys; from crosschip.cli import run; "
        f"run(['costs', 'list', '--cache-dir', {str(folder)!r}]); "
        "print(sorted({'onnxruntime', 'openvino', 'jax', 'onnx'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "[]"
