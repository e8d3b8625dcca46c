"""Launches of segments and transfers between devices."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from tests.runtime.costs.devices import (
    LAUNCH_SECONDS,
    SleepingDevice,
    SleepingProgram,
    compilation_of,
)

from crosschip.hal import Options, Program
from crosschip.ir import Array, Model
from crosschip.runtime.cache.store import Memory
from crosschip.runtime.costs.records import Records
from crosschip.runtime.costs.transfers import DEFAULT, measure_transfers

pytestmark = pytest.mark.slow

SECONDS_PER_BYTE = 1e-8


class Copying(SleepingDevice):
    """A device with memory of its own: each run copies its inputs there and its outputs back."""

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options).close()
        return CopyingProgram(self, model)


class CopyingProgram(SleepingProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs = super().run(inputs)
        time.sleep(SECONDS_PER_BYTE * sum(array.nbytes for array in inputs))
        return outputs


def test_launches_and_copies_are_those_of_the_devices() -> None:
    devices = {"near": SleepingDevice("near", {}), "far": Copying("far", {})}
    compilation = compilation_of(devices)
    records = Records(compilation.devices, Options(), None)
    measure_transfers(compilation, records)
    for name in devices:
        launch = records[name].launch
        assert launch is not None
        assert LAUNCH_SECONDS / 2 < launch.seconds < 5 * LAUNCH_SECONDS
    near, far = records["near"].launch, records["far"].launch
    assert near is not None
    assert far is not None
    difference = far.seconds_per_byte - near.seconds_per_byte
    assert SECONDS_PER_BYTE / 3 < difference < 3 * SECONDS_PER_BYTE
    for pair in (("near", "far"), ("far", "near")):
        transfer = records.transfer(*pair)
        assert transfer is not None
        assert 0 <= transfer.seconds < LAUNCH_SECONDS
        assert 0 <= transfer.seconds_per_byte < SECONDS_PER_BYTE


def test_stored_transfers_are_not_measured_again() -> None:
    store = Memory()
    for compiled in (True, False):
        devices = {name: SleepingDevice(name, {}) for name in ("a", "b")}
        compilation = compilation_of(devices)
        records = Records(compilation.devices, Options(), store)
        measure_transfers(compilation, records)
        records.save()
        assert [bool(device.compiled) for device in devices.values()] == [compiled] * 2
        assert [device.opened for device in devices.values()] == [0, 0]


def test_a_device_without_the_operator_has_assumed_costs() -> None:
    devices = {"a": SleepingDevice("a", {}), "b": SleepingDevice("b", {}, fails=("RELU",))}
    compilation = compilation_of(devices)
    records = Records(compilation.devices, Options(), None)
    measure_transfers(compilation, records)
    assert records["b"].launch == DEFAULT
    assert records.transfer("a", "b") == DEFAULT
    assert records["a"].launch != DEFAULT


@pytest.mark.parametrize("name", ["a", "b"])
def test_one_device_needs_no_transfers(name: str) -> None:
    compilation = compilation_of({name: SleepingDevice(name, {})})
    records = Records(compilation.devices, Options(), None)
    measure_transfers(compilation, records)
    launch = records[name].launch
    assert launch is not None
    assert np.isfinite(launch.seconds)
    assert not records[name].transfers
