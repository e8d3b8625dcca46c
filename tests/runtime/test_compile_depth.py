"""The number of calls between `crosschip.compile` and a device's `compile`."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from tests.modelling import DelegatingDevice, chain

import crosschip
from crosschip.hal import Options, Program
from crosschip.ir import Model
from crosschip.ops.definition.serialization import to_bytes
from crosschip.ops.standard.activation import Relu

MOST = 8


class Counting(DelegatingDevice):
    """A device that records the functions between its `compile` and `crosschip.compile`."""

    def __init__(self) -> None:
        super().__init__()
        self.between: list[str] = []

    def compile(self, model: Model, options: Options) -> Program:
        names = [frame.name for frame in traceback.extract_stack()]
        self.between = names[names.index("compile") + 1 : -1]
        return super().compile(model, options)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("from_file", [False, True])
def test_few_calls_lie_between_the_front_door_and_the_device(
    cached: bool, from_file: bool, tmp_path: Path
) -> None:
    device, path = Counting(), tmp_path / "model.chipm"
    path.write_bytes(to_bytes(chain(Relu)))
    model = path if from_file else chain(Relu)
    crosschip.compile(model, [device], cache=tmp_path / "cache" if cached else False).close()
    assert 0 < len(device.between) <= MOST, device.between
