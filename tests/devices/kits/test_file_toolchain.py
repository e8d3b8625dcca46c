"""Devices whose compiler reads files of its own format."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import chain, float32, model_of, outputs_of

import crosschip
from crosschip.devices.kits.toolchain import FileToolchain
from crosschip.hal import YES, Kind, Options, Support
from crosschip.ir import DeviceError, Model, Operand, Operation, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add

WORDS = {"RELU": "relu", "TANH": "tanh", "ADD": "add"}
X = np.array([-1, 2, 3], np.float32)


class TextDevice(FileToolchain):
    """Writes the tool's language; the tool lacks TANH, which only compiling reveals."""

    vendor = "tests"
    kind = Kind.ACCELERATOR
    package = module = "numpy"
    script = Path(__file__).with_name("text_tool.py")

    def supports(self, operation: Operation, options: Options) -> Support:
        return YES if operation.type in WORDS else Support.no(operation, "", "no instruction")

    def write(self, model: Model, folder: Path) -> None:
        names: dict[Operand, str] = {o: f"in{i}" for i, o in enumerate(model.inputs.values())}
        lines = []
        for operation in model.operations:
            read = [names[o] for o in operation.inputs if o is not None and o in names]
            (output,) = operation.outputs
            names[output] = operation.name
            lines.append(f"{operation.name} = {WORDS[operation.type]} {' '.join(read)}")
        results = " ".join(names[operand] for operand in model.outputs.values())
        (folder / "program.txt").write_text("\n".join([*lines, f"return {results}"]))

    def named_in(self, model: Model, told: str) -> Collection[Operation]:
        return [operation for operation in model.operations if f"{operation.name} =" in told]


@pytest.fixture
def device() -> Iterator[TextDevice]:
    opened = TextDevice()
    opened.name = "text"
    yield opened
    opened.close()


def test_a_text_is_compiled_saved_and_run(device: TextDevice, tmp_path: Path) -> None:
    model = model_of(lambda b, x, y: b.add(Relu, b.add(Add, x, y)), float32(3), float32(3))
    for word in ("miss", "hit"):
        with crosschip.compile(model, [device], cache=tmp_path) as compiled:
            assert compiled.report.cache == word
            np.testing.assert_array_equal(compiled(X, X), np.array([0, 4, 6], np.float32))


def test_open_sizes_are_compiled_for_each_shape(device: TextDevice) -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))
    with crosschip.compile(model, [device], cache=False) as compiled:
        for size in (2, 3):
            np.testing.assert_array_equal(compiled(X[:size]), np.maximum(X[:size], 0))


def test_what_the_tool_names_goes_elsewhere(device: TextDevice) -> None:
    model = chain(Relu, Tanh)
    with crosschip.compile(model, [device, "reference"], cache=False) as compiled:
        x = {"x0": X[:2]}
        np.testing.assert_allclose(compiled.run(x)["y0"], outputs_of(model, x)["y0"])
        decisions = compiled.placement.decisions
        assert [decision.device for decision in decisions] == ["text", "reference"]
        assert "no such instruction" in decisions[1].reasons["text"]


def test_a_property_that_is_no_number_is_told() -> None:
    with pytest.raises(DeviceError, match="property seconds is 'soon', but must be a number"):
        TextDevice({"seconds": "soon"})
