"""Runs and models that a driver dies of."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.drivers.client import fatal
from tests.drivers.models import RELUS
from tests.modelling import chain

import crosschip
from crosschip.drivers.client.device import RemoteDevice
from crosschip.hal import CompileError
from crosschip.ir import DeviceError
from crosschip.ir.entry_points import clear_entry_points
from crosschip.ops.definition.serialization import from_bytes
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Exp, Log
from crosschip.runtime.compiled import CompiledModel


@pytest.fixture(autouse=True)
def installed(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The device, and folders that nobody else writes to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fatal.install(tmp_path, monkeypatch)
    yield
    clear_entry_points()


def inputs(first: float) -> dict[str, np.ndarray]:
    x = np.full((1, 8), -1, np.float32)
    x[0, 0] = first
    return {"x0": x}


def right(compiled: CompiledModel, first: float = 5.0) -> bool:
    """Tell whether a harmless run gives what it must."""
    given = inputs(first)
    made = compiled.run(given)
    return np.array_equal(made["y0"], np.maximum(given["x0"], 0)) and np.array_equal(
        made["y1"], given["x0"] * 2
    )


def test_runs_that_kill_twice_are_refused_and_kept(tmp_path: Path) -> None:
    deaths = {
        fatal.SEGFAULT: "SIGSEGV",
        fatal.EXIT: "status 3",
        fatal.LOOP: "at a run for 0.3 seconds",
    }
    patience = {"fatal": {"driver_run_seconds": "0.3"}}
    with crosschip.compile(RELUS, "fatal@driver", cache=False, properties=patience) as compiled:
        for first, told in deaths.items():
            with pytest.raises(DeviceError, match=rf"(?s)killed the driver twice.*{told}"):
                compiled.run(inputs(first))
            assert right(compiled), "others go on"
        device = compiled.devices["fatal@driver"].device
        assert isinstance(device, RemoteDevice)
        for first in deaths:
            with pytest.raises(DeviceError, match="killed the driver twice"):
                compiled.run(inputs(first))
        assert device.driver.restarts == 2 * len(deaths), "what has been refused is not tried"
    folder = tmp_path / "cache" / "crosschip" / "quarantine"
    assert {kept(path) for path in folder.iterdir()} == set(deaths)


def test_silence_counts_only_without_work() -> None:
    patience = {"fatal": {"driver_silence": "0.1"}}
    with crosschip.compile(RELUS, "fatal@driver", cache=False, properties=patience) as compiled:
        assert right(compiled, fatal.WORK)
        device = compiled.devices["fatal@driver"].device
        assert isinstance(device, RemoteDevice)
        assert device.driver.restarts == 0
        with pytest.raises(DeviceError, match=r"(?s)twice.*not responded for 0\.1 seconds"):
            compiled.run(inputs(fatal.FREEZE))
        assert right(compiled)


def kept(path: Path) -> float:
    """The first element of the input that a file keeps, once it is seen to keep all of it."""
    with zipfile.ZipFile(path) as file:
        model = from_bytes(file.read("model.chipm"))
        assert [operation.type for operation in model.operations] == ["RELU", "ADD"]
        with file.open("input0.npy") as content:
            x = np.load(content)
    np.testing.assert_array_equal(x, inputs(x[0, 0])["x0"])
    return float(x[0, 0])


def test_what_compiles_for_ever_counts_as_dead() -> None:
    patience = {"fatal": {"driver_compile_seconds": "0.3"}}
    told = r"died 2 times while compiling: .* has been compiling for 0\.3 seconds"
    with pytest.raises(CompileError, match=told):
        crosschip.compile(chain(Log), "fatal@driver", cache=False, properties=patience)


def test_what_kills_as_it_is_compiled_goes_elsewhere() -> None:
    model = chain(Relu, Exp)
    x = np.array([-1, 2], np.float32)
    with crosschip.compile(model, ["fatal@driver", "reference"], cache=False) as compiled:
        assert [segment.device for segment in compiled.placement.segments] == [
            "fatal@driver",
            "reference",
        ]
        np.testing.assert_allclose(compiled(x), np.exp(np.maximum(x, 0)), rtol=1e-6)
    with pytest.raises(CompileError, match=r"died 2 times while compiling: .* status 4"):
        crosschip.compile(chain(Exp), "fatal@driver", cache=False)
