"""Devices whose compiler reads ONNX files: acceptance, refusals, saving and crashes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crosschip as cc
from crosschip.devices.kits.toolchain import Dialect, Toolchain
from crosschip.hal import CompileError, Instance, Kind, Options, Precision
from crosschip.ir import (
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.unary import Atan, Cos, Neg, Sin, Sqrt, Tan
from crosschip.runtime import discovery

HALF = Options(precision=Precision.FLOAT16)
FLOAT32, FLOAT16 = ElementType.FLOAT32, ElementType.FLOAT16


class HabitsDevice(Toolchain):
    """A chip with the compiler in `habits_tool.py`, which logs requests."""

    vendor = "Test"
    kind = Kind.ACCELERATOR
    package = "habits"
    module = "habits_tool"
    script = Path(__file__).with_name("habits_tool.py")
    dialect = Dialect(types=frozenset(ElementType), max_rank=4)
    journal: Path

    def settings(self, options: Options, *, quantized: bool) -> Mapping[str, Any]:
        half = options.precision is Precision.FLOAT16
        told = [word for word, holds in (("half", half), ("quantized", quantized)) if holds]
        return {"journal": str(self.journal), "told": told}

    @property
    def asked(self) -> list[str]:
        """Return the compilations since the last call."""
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        self.journal.write_text("")
        return lines


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(HabitsDevice, "journal", tmp_path / "journal", raising=False)


@pytest.fixture
def device() -> Iterator[HabitsDevice]:
    with HabitsDevice() as device:
        yield device


def chain(*operators: Any, type: ElementType = FLOAT32) -> Model:
    b = Builder("chain")
    value = b.input("x", TensorType(type, (3,)))
    for operator in operators:
        value = b.add(operator, value)
    b.output("y", value)
    return b.build()


def reasons(device: Toolchain, model: Model, options: Options = HALF) -> list[str]:
    return [answer.reason for answer in device.query(model, options).answers]


def where(compiled: cc.CompiledModel) -> list[str | None]:
    return [decision.device for decision in compiled.placement.decisions]


def test_float32_is_declined_unless_the_caller_asks_for_float16(device: HabitsDevice) -> None:
    (told,) = reasons(device, chain(Sqrt), Options())
    assert told.startswith("SQRT: is float32, which the chip does not compute: quantize the model")
    assert reasons(device, chain(Sqrt)) == [""]
    assert reasons(device, chain(Sqrt, type=FLOAT16), Options()) == [""]
    assert reasons(device, chain(Sqrt), Options(precision=Precision.BFLOAT16)) == [told]
    with HabitsDevice({"precision": "float16"}) as other:
        assert reasons(other, chain(Sqrt), Options()) == [""]
        other.compile(chain(Sqrt), Options()).close()
    assert device.asked[-1] == "Sqrt half"
    with pytest.raises(DeviceError, match="property precision is 'int8', but can only be float16"):
        HabitsDevice({"precision": "int8"})


def test_what_is_not_asked_for_is_not_compiled_either(device: HabitsDevice) -> None:
    model = chain(Sqrt)
    with pytest.raises(CompileError, match="float32 operations without the conversions") as caught:
        device.compile(model, Options())
    assert caught.value.operations == {model.operations[0].name}


def test_each_form_is_tried_once_by_whoever_asks(device: HabitsDevice) -> None:
    model = chain(Sqrt, Sin, Sqrt, Cos)
    expected = [
        "",
        "SIN: RuntimeError: compilation failed, see above",
        "",
        "COS: RuntimeError: internal error 3110",
    ]
    assert reasons(device, model) == expected
    assert device.asked == ["Sqrt half", "Sin half", "Cos half"]
    with HabitsDevice() as other:
        assert reasons(other, model) == expected
        assert reasons(other, chain(Neg)) == [""]
    assert device.asked == ["Neg half"]


def test_a_crash_and_a_hang_are_answers_like_others() -> None:
    with HabitsDevice({"seconds": "2"}) as device:
        tan, sqrt, atan = reasons(device, chain(Tan, Sqrt, Atan))
    assert tan == "TAN: habits: the process died of SIGABRT while compiling"
    assert sqrt == ""
    assert "took more than 2 seconds while compiling" in atan


def test_last_words_are_part_of_the_error_alone(device: HabitsDevice) -> None:
    """Outputs vary from run to run, so stored answers omit them."""
    with pytest.raises(CompileError, match="compiling; its last words: no tiles left"):
        device.compile(chain(Tan), HALF)


def test_a_reason_is_the_same_when_it_is_kept(
    device: HabitsDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HabitsDevice, "complaint", lambda self, told: "so it is " * 100)
    first = reasons(device, chain(Sin))
    assert first[0].startswith("SIN: so it is so")
    assert reasons(device, chain(Sin)) == first
    with HabitsDevice() as other:
        assert reasons(other, chain(Sin)) == first


def test_outputs_that_need_no_tool_are_filled_in(device: HabitsDevice) -> None:
    """Tools return fewer outputs than a model has, if some are equal or constant."""
    b = Builder("outputs")
    x, y = (b.input(name, TensorType(FLOAT32, (3,))) for name in "xy")
    root = b.add(Sqrt, x)
    fixed = b.constant(np.array([5, 6], np.float32))
    for index, output in enumerate((y, root, fixed, b.add(Neg, root), root, y)):
        b.output(f"output{index}", output)
    model = b.build()
    inputs = [np.array([1, 4, 9], np.float32), np.array([7, 8, 9], np.float32)]
    program = device.compile(model, HALF)
    assert device.asked == ["Sqrt Neg half"]
    saved = program.save()
    assert saved is not None
    for runs in (program, device.load(saved, model, HALF)):
        made = runs.run(inputs)
        lists = [array.tolist() for array in made]
        assert lists == [[7, 8, 9], [1, 2, 3], [5, 6], [-1, -2, -3], [1, 2, 3], [7, 8, 9]]
        for array in made:
            array[...] = 0
        assert [array.tolist() for array in runs.run(inputs)] == lists
        runs.close()


def test_quantized_outputs_that_need_no_tool_are_filled_in(
    device: HabitsDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, if the tool's inputs and outputs are real and the model's quantized."""
    dialect = replace(HabitsDevice.dialect, real_boundary=True)
    monkeypatch.setattr(HabitsDevice, "dialect", dialect)
    b = Builder("outputs")
    x = b.input("x", TensorType(ElementType.INT8, (3,), SCALE))
    made = b.add(Relu, x, quantization=SCALE)
    for name, output in (("x", x), ("made", made), ("again", made)):
        b.output(name, output)
    b.output("constant", b.constant(np.array([1, 2], np.int8), quantization=SCALE))
    program = device.compile(b.build(), Options())
    outputs = program.run([np.array([-9, 3, 10], np.int8)])
    assert [array.dtype for array in outputs] == [np.int8] * 4
    assert [array.tolist() for array in outputs] == [[-9, 3, 10], [3, 3, 10], [3, 3, 10], [1, 2]]
    program.close()


def test_a_wrong_number_of_seconds_is_an_error() -> None:
    with pytest.raises(DeviceError, match="property seconds is 'soon', but must be a number"):
        HabitsDevice({"seconds": "soon"})


def test_open_sizes_are_compiled_one_by_one(device: HabitsDevice, tmp_path: Path) -> None:
    """The compiler is asked once, with representative sizes; later runs load from the cache."""
    b = Builder("open")
    b.output("y", b.add(Sqrt, b.input("x", TensorType(FLOAT32, (symbol("N"), 2)))))
    for compilations in (1, 0):
        with cc.compile(b.build(), [device], precision="float16", cache=tmp_path) as compiled:
            device.asked  # noqa: B018  # forgets what has been asked to place the model
            for size in (3, 3, 4, 3):
                x = np.full((size, 2), 4, np.float32)
                np.testing.assert_allclose(compiled(x), np.full((size, 2), 2), rtol=1e-3)
            assert len([line for line in device.asked if "Sqrt" in line]) == 2 * compilations


def test_the_rest_goes_elsewhere(tmp_path: Path) -> None:
    with HabitsDevice({"precision": "float16"}) as device:
        model = chain(Sqrt, Sin, Neg)
        with cc.compile(model, [device, "reference"], cache=tmp_path / "programs") as compiled:
            assert where(compiled) == ["habits", "reference", "habits"]
            x = np.array([0, 1, 4], np.float32)
            np.testing.assert_allclose(compiled(x), -np.sin([0, 1, 2]), rtol=1e-3)


def test_refusals_of_the_whole_name_operations(device: HabitsDevice) -> None:
    model = chain(Sqrt, Sin, Neg, Sin)
    with pytest.raises(CompileError, match="RuntimeError: compilation failed") as caught:
        device.compile(model, HALF)
    assert caught.value.operations == {model.operations[1].name}
    assert device.asked == ["Sqrt Sin Neg Sin half"]


def test_refusals_without_names_are_found_by_halving(device: HabitsDevice) -> None:
    model = chain(Sqrt, Neg, Cos, Sqrt, Tan)
    with pytest.raises(CompileError, match="internal error 3110") as caught:
        device.compile(model, HALF)
    cos, tan = model.operations[2], model.operations[4]
    assert caught.value.operations == {cos.name, tan.name}


def test_what_only_the_whole_is_refused_for_names_nobody(device: HabitsDevice) -> None:
    model = chain(Neg, Neg, Neg)
    assert reasons(device, model) == [""] * 3
    with pytest.raises(CompileError, match="too many of them") as caught:
        device.compile(model, HALF)
    assert caught.value.operations == frozenset()


def test_a_saved_program_is_loaded_without_compiling(tmp_path: Path) -> None:
    model, x = chain(Sqrt, Neg), np.array([1, 4, 9], np.float32)
    words = []
    for _ in range(2):
        with HabitsDevice({"precision": "float16"}) as device:
            compiled = cc.compile(model, [device], cache=tmp_path / "programs")
            np.testing.assert_array_equal(compiled(x), [-1, -2, -3])
            words.append((compiled.report.cache, device.asked))
            compiled.close()
    assert [word for word, _ in words] == ["miss", "hit"]
    assert words[1][1] == []


def test_saved_programs_are_the_same_bytes_every_time(device: HabitsDevice) -> None:
    programs = [device.compile(chain(Sqrt), HALF) for _ in range(2)]
    one, other = (program.save() for program in programs)
    assert one == other
    for program in programs:
        program.close()
    for wrong in (b"", b"PK\x05\x06", one[: len(one or b"") // 2] if one else b""):
        with pytest.raises(DeviceError):
            device.load(wrong, chain(Sqrt), HALF)


def test_a_run_that_ends_the_process_costs_that_run_alone(device: HabitsDevice) -> None:
    program = device.compile(chain(Sqrt), HALF)
    x = np.array([1, 4, 9], np.float32)
    for _ in range(2):
        with pytest.raises(DeviceError, match="habits: the process died of SIGABRT while running"):
            program.run([np.full(3, np.nan, np.float32)])
        np.testing.assert_array_equal(program.run([x])[0], [1, 2, 3])
    program.close()


SCALE = Quantization((0.05,), (3,))
IMAGE = TensorType(ElementType.INT8, (1, 2, 4, 4), SCALE)


def image(b: Builder, real: Operand) -> Operand:
    return b.add(Quantize, real, scale=[0.05], zero_point=[3.0], dtype=ElementType.INT8)


def network(*, tail: bool = False) -> Model:
    """Return a convolution and a sum between conversions, and perhaps a real operation."""
    b = Builder("network")
    random = np.random.default_rng(0)
    x = b.input("x", IMAGE)
    weights = random.integers(-9, 9, (2, 2, 1, 1)).astype(np.int8)
    filters = b.constant(weights, quantization=Quantization((0.1,)))
    real = b.add(Dequantize, x)
    made = image(b, b.add(Relu, b.add(Conv2D, real, b.add(Dequantize, filters))))
    total = image(b, b.add(Add, b.add(Dequantize, made), real))
    b.output("y", b.add(Sqrt, b.add(Dequantize, total)) if tail else total)
    return b.build()


def test_quantized_models_run_as_they_are() -> None:
    model = network()
    x = np.random.default_rng(1).integers(-128, 128, (1, 2, 4, 4)).astype(np.int8)
    expected = cc.compile(model, ["reference"], cache=False)(x)
    with HabitsDevice() as device:
        with cc.compile(model, [device], cache=False) as compiled:
            np.testing.assert_allclose(compiled(x), expected, atol=1)
        assert "quantized" in device.asked[-1]


def test_quantized_operations_come_whole_or_not_at_all(device: HabitsDevice) -> None:
    model = network(tail=True)
    offer = device.query(model, Options())
    told = {
        operation.type: answer
        for operation, answer in zip(model.operations, offer.answers, strict=True)
    }
    assert not told["SQRT"]
    assert told["CONV_2D"]
    (group,) = offer.groups
    assert {model.operations[index].type for index in group.operations} == {
        *("DEQUANTIZE", "CONV_2D", "RELU", "QUANTIZE", "ADD")
    }
    with cc.compile(model, ["reference", device], cache=False) as compiled:
        assert set(where(compiled)) == {"reference"}


def test_probing_looks_for_the_package_where_the_tool_is_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (instance,) = HabitsDevice.probe()
    assert instance.simulated
    assert "habits is not installed; pip install it" in instance.problem
    python = tmp_path / "bin" / "python"
    monkeypatch.setenv("CROSSCHIP_HABITS_PYTHON", str(python))
    assert HabitsDevice.probe()[0].problem
    (tmp_path / "lib/python3.9/site-packages/habits_tool").mkdir(parents=True)
    assert HabitsDevice.probe() == [Instance(kind=Kind.ACCELERATOR, simulated=True)]
    with pytest.raises(DeviceError, match="does not start"):
        HabitsDevice()
    with HabitsDevice({"python": sys.executable}) as device:
        assert device.version == "7"


def test_a_tool_that_is_not_there_is_an_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "tool.py"
    script.write_text("import there_is_no_such_sdk\n")
    monkeypatch.setattr(HabitsDevice, "script", script)
    told = "there_is_no_such_sdk'; habits must be installed for .*, or another Python be named by "
    with pytest.raises(DeviceError, match=told + "property python or CROSSCHIP_HABITS_PYTHON"):
        HabitsDevice()


def test_auto_never_takes_a_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib/python3.9/site-packages/habits_tool").mkdir(parents=True)
    monkeypatch.setenv("CROSSCHIP_HABITS_PYTHON", str(tmp_path / "bin" / "python"))
    values = {
        "habits": f"{__name__}:HabitsDevice",
        "reference": "crosschip.devices.reference:ReferenceDevice",
    }
    found = {name: [EntryPoint(name, value, discovery.GROUP)] for name, value in values.items()}
    monkeypatch.setattr(discovery, "entries", lambda: found)
    listed = dict(discovery.instances())
    assert listed["habits"].simulated
    assert not listed["habits"].problem
    assert discovery.automatic() == ["reference"]


def test_memory_of_programs_that_are_closed_is_given_back(device: HabitsDevice) -> None:
    program = device.compile(chain(Sqrt), HALF)
    folder = Path(program._folder.name)  # type: ignore[attr-defined]
    assert sorted(file.name for file in folder.iterdir()) == ["kept.onnx", "model.onnx"]
    program.close()
    assert not folder.exists()
