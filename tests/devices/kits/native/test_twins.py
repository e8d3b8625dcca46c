"""The same device in C and in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.devices.kits.native.twin import Twin

import crosschip
from crosschip.devices.kits.native import device_of
from crosschip.hal import CompileError, Device, Kind, Options, Precision, Rule
from crosschip.ir import Builder, DeviceError, ElementType, Model, TensorType, symbol
from crosschip.ops import operator_named
from crosschip.runtime import discovery

Open = Callable[..., Device]


@pytest.fixture(params=["c", "python"])
def twin(request: pytest.FixtureRequest, twin_library: Path) -> type[Device]:
    return device_of(twin_library) if request.param == "c" else Twin


@pytest.fixture
def opened(twin: type[Device]) -> Iterator[Open]:
    made: list[Device] = []

    def make(properties: Mapping[str, str] | None = None) -> Device:
        made.append(twin(properties))
        return made[-1]

    yield make
    for device in made:
        device.close()


def model_of(*operators: str, shape: tuple[Any, ...] = (2, 3), name: str = "op") -> Model:
    b = Builder("model")
    x = b.input("x", TensorType(ElementType.FLOAT32, shape))
    for index, operator in enumerate(operators):
        x = b.add(operator_named(operator), x, name=f"{name}{index}")
    b.output("y", x)
    return b.build()


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_what_it_is(opened: Open) -> None:
    device = opened()
    found = device.capabilities()
    assert (device.vendor, device.kind, device.version) == ("Gemini", Kind.GPU, "2.5")
    assert (found.threads, found.max_rank, found.alignment, found.concurrency) == (True, 4, 64, 2)
    assert found.types == {ElementType.FLOAT32}
    assert found.narrowed == {ElementType.INT64: ElementType.INT32}
    assert found.precisions == {Precision.FLOAT32, Precision.FLOAT16}


def test_answers(opened: Open) -> None:
    device = opened()
    yes, no = device.query(model_of("NEG", "TANH"), Options()).answers
    assert yes
    assert yes.estimate is not None
    assert (yes.estimate.seconds, yes.estimate.bytes) == (0.5, 16)
    assert (no.slot, no.rule, no.reason) == ("input", Rule.VALUE, "TANH.input: TANH is not for us")
    unlucky = device.supports(model_of("NEG").operations[0], Options(threads=13))
    assert (unlucky.rule, unlucky.reason) == (Rule.OPTION, "NEG: 13 threads bring bad luck")


@pytest.mark.parametrize("shape", [(2, 3), (symbol("N"), symbol("M")), (0, 3), ()])
@pytest.mark.parametrize("loaded", [False, True])
def test_runs(opened: Open, shape: tuple[Any, ...], loaded: bool) -> None:
    x = {(): np.array(7, np.float32), (0, 3): np.zeros((0, 3), np.float32)}.get(shape, X)
    device = opened({"scale": "3"})
    for operator, wanted in (("NEG", -3 * x), ("SQUARE", x * x)):
        model = model_of(operator, shape=shape)
        program = device.compile(model, Options())
        if loaded:
            saved = program.save()
            assert saved == operator.lower().encode()
            program.close()
            program = device.load(saved, model, Options())
        for _ in range(3):
            (made,) = program.run([x])
            np.testing.assert_array_equal(made, wanted)
            assert made.shape == wanted.shape
        program.close()


def test_failures(opened: Open) -> None:
    device = opened()
    with pytest.raises(CompileError, match="bad things do not compile") as raised:
        device.compile(model_of("NEG", name="bad"), Options())
    assert raised.value.operations == {"bad0"}
    with pytest.raises(CompileError, match="one at a time") as raised:
        device.compile(model_of("NEG", "NEG"), Options())
    assert not raised.value.operations
    program = device.compile(model_of("NEG"), Options())
    with pytest.raises(DeviceError, match="the number of the beast"):
        program.run([np.full((2, 3), 666, np.float32)])
    np.testing.assert_array_equal(program.run([X])[0], -X)
    program.close()
    with pytest.raises(DeviceError, match="that is not what was saved"):
        device.load(b"something else", model_of("NEG"), Options())


def test_a_property_that_there_is_not(opened: Open) -> None:
    with pytest.raises(DeviceError, match="scale"):
        opened({"size": "3"})


def test_memory_of_the_device(opened: Open) -> None:
    device = opened()
    buffer = device.allocate(ElementType.FLOAT32, (2, 3))
    buffer.write(X)
    np.testing.assert_array_equal(buffer.array(), X)
    np.testing.assert_array_equal(np.from_dlpack(buffer), X)
    program = device.compile(model_of("NEG"), Options())
    target = device.allocate(ElementType.FLOAT32, (2, 3))
    submission = program.submit([buffer], [target], ())
    assert submission.event.wait(60)
    assert submission.outputs[0] is target
    np.testing.assert_array_equal(target.array(), -X)
    # What the device made stays there, and is read again without the host.
    again = program.submit([submission.outputs[0]], [], [submission.event])
    np.testing.assert_array_equal(again.outputs[0].array(), X)
    program.close()


def test_memory_goes_with_its_device(twin_library: Path) -> None:
    device = device_of(twin_library)()
    buffer = device.allocate(ElementType.FLOAT32, (2, 3))
    device.close()
    with pytest.raises(DeviceError, match="went with its device, which is closed"):
        buffer.array()
    with device_of(twin_library)() as again, pytest.raises(DeviceError, match="a megabyte is all"):
        again.allocate(ElementType.FLOAT32, (1024, 1024))


@pytest.mark.parametrize("shape", [(2, 3), (symbol("N"), symbol("M"))])
def test_failures_come_out_of_the_event(opened: Open, shape: tuple[Any, ...]) -> None:
    device = opened()
    program = device.compile(model_of("NEG", shape=shape), Options())
    given = device.allocate(ElementType.FLOAT32, (2, 3))
    given.write(np.full((2, 3), 666, np.float32))
    with pytest.raises(DeviceError, match="the number of the beast"):
        program.submit([given], [], ()).event.wait(60)
    given.write(X)
    np.testing.assert_array_equal(program.submit([given], [], ()).outputs[0].array(), -X)
    program.close()


def test_in_a_model(twin: type[Device], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Placed, combined with another device, cached and run like any device."""
    origin = discovery.Origin(lambda: "a test", lambda: twin)
    known = {**discovery.origins(), "twin": [origin]}
    monkeypatch.setattr(discovery, "origins", lambda: known)
    model = model_of("SQUARE", "TANH", "NEG", shape=(symbol("N"), 3))
    for expected in ("miss", "hit"):
        with crosschip.compile(
            model, ["twin", "reference"], cache=tmp_path, properties={"twin": {"scale": "2"}}
        ) as compiled:
            assert [d.device for d in compiled.placement.decisions] == ["twin", "reference", "twin"]
            assert compiled.report.cache == expected
            for size in (2, 5, 2):
                x = np.full((size, 3), 0.5, np.float32)
                np.testing.assert_allclose(compiled(x), -2 * np.tanh(x * x), rtol=1e-6)
