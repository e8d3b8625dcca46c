"""Programs of the device: saving, threads, overflow, and what is there without the tools."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf
from tests.devices.conftest import built
from tests.devices.tosa.conftest import TOOLS

import crosschip
from crosschip.devices.kits.tosa import reference_model
from crosschip.devices.tosa import TosaDevice
from crosschip.hal import Options
from crosschip.hal.device import OutOfRange
from crosschip.ir import Array, DeviceError, Model
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Gelu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.creation import Rank
from crosschip.ops.standard.indexing import GatherND, ScatterND
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.searching import NonZero

WEIGHTS = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)


def _product(rows: int = 4) -> tuple[Model, Array]:
    array = np.random.default_rng(1).normal(size=(rows, 8)).astype(np.float32)
    return built(lambda b, x: b.add(MatMul, x, WEIGHTS), [array]), array


def _sum_of_integers() -> Model:
    return built(lambda b, x, y: b.add(Add, x, y), [np.zeros(2, np.int32)] * 2)


def test_a_saved_program_is_the_file(device: TosaDevice) -> None:
    model, array = _product()
    program = device.compile(model, Options())
    saved = program.save()
    (expected,) = program.run([array])
    assert saved is not None
    assert saved[4:8] == b"TOSA"
    np.testing.assert_allclose(expected, array @ WEIGHTS, rtol=1e-5, atol=1e-6)
    loaded = device.load(saved, model, Options())
    np.testing.assert_array_equal(loaded.run([array])[0], expected)
    with pytest.raises(DeviceError, match="no TOSA file"):
        device.load(b"damaged data", model, Options())


def test_threads_run_a_program_at_once(device: TosaDevice) -> None:
    model, array = _product()
    program = device.compile(model, Options())
    with ThreadPoolExecutor(4) as threads:
        arrays = [array * factor for factor in range(8)]
        for factor, (result,) in enumerate(threads.map(lambda x: program.run([x]), arrays)):
            np.testing.assert_allclose(result, factor * array @ WEIGHTS, rtol=1e-5, atol=1e-5)


def test_overflow_is_refused(device: TosaDevice) -> None:
    program = device.compile(_sum_of_integers(), Options())
    least, most = np.array([[-(2**31), -1], [2**31 - 1, -1]], np.int32)
    np.testing.assert_array_equal(program.run([least, -least - 1])[0], [-1, -1])
    with pytest.raises(OutOfRange, match="positive overflow"):
        program.run([most, most])


@pytest.mark.parametrize("index", [[0, 3], [2, 0], [0, -4]])
@pytest.mark.parametrize("operator", [GatherND, ScatterND])
def test_indices_out_of_range_are_errors(
    device: TosaDevice, operator: type[Operator], index: list[int]
) -> None:
    arrays = [np.zeros((2, 3), np.float32), np.array([index], np.int32)]
    if operator is ScatterND:
        arrays.append(np.ones(1, np.float32))
    program = device.compile(built(lambda b, *x: b.add(operator, *x), arrays), Options())
    with pytest.raises(DeviceError, match="k >= 0 && k < K"):
        program.run(arrays)


def test_elements_that_are_not_read_may_be_any(device: TosaDevice) -> None:
    x = np.full((2, 3), 2**40)
    (result,) = device.compile(built(lambda b, x: b.add(Rank, x), [x]), Options()).run([x])
    assert result == 2


@pytest.mark.parametrize("pads", [(1, -1), (-2, 2), (2, -1), (-1, 0)])
def test_padding_may_replace_all_elements(device: TosaDevice, pads: tuple[int, int]) -> None:
    x = np.array([5, 6], np.float32)
    model = built(lambda b, x: b.add(Pad, x, pads, value=np.array(1, np.float32)), [x])
    (result,) = device.compile(model, Options()).run([x])
    expected = {(1, -1): [1, 5], (-2, 2): [1, 1], (2, -1): [1, 1, 5], (-1, 0): [6]}[pads]
    np.testing.assert_array_equal(result, expected)


def test_decomposed_operators_are_supported(device: TosaDevice) -> None:
    array = np.linspace(-3, 3, 8, dtype=np.float32)
    model = built(lambda b, x: b.add(Gelu, x), [array])
    assert device.query(model, Options()).answers[0]
    program = device.compile(model, Options())
    exact = array * (1 + erf(array / np.sqrt(2))) / 2
    np.testing.assert_allclose(program.run([array])[0], exact, rtol=1e-5, atol=1e-6)


def test_refusals_have_reasons(device: TosaDevice) -> None:
    model = built(lambda b, x: b.add(NonZero, x), [np.ones(3, np.float32)])
    (answer,) = device.query(model, Options()).answers
    assert not answer
    assert answer.reason == "NON_ZERO.output: its sizes must be known"


def test_the_runtime_compiles_each_shape(device: TosaDevice) -> None:
    model = built(lambda b, x: b.add(MatMul, x, WEIGHTS), [np.zeros((1, 8), np.float32)])
    with crosschip.compile(model, [device], cache=False) as compiled:
        assert {decision.device for decision in compiled.placement.decisions} == {"tosa"}


def test_it_is_simulated_so_that_auto_does_not_choose_it() -> None:
    (instance,) = TosaDevice.probe()
    assert instance.simulated
    assert not instance.problem


def test_the_property_names_the_program(tmp_path: Path) -> None:
    path = str(TOOLS / "tosa_reference_model")
    with TosaDevice({"model": path}) as device:
        assert device.version == "2026.8.0"
    with pytest.raises(DeviceError, match="property model: there is no program"):
        TosaDevice({"model": str(tmp_path / "none")})


def test_without_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(reference_model.TOOLS_VARIABLE, str(tmp_path))
    command = "pip install --no-deps tosa-tools"
    with pytest.raises(DeviceError, match=command):
        TosaDevice()
    assert command in TosaDevice.probe()[0].problem
