"""Both sides of versions 2.0 and 2.1: a crosschip device behind them, and that as a device."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crosschip
from crosschip.apis.nnrt.hdi.v1_0 import memory
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v1_0.types import (
    IOTensor,
    Model,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.apis.nnrt.hdi.v1_0.writer import write_model
from crosschip.apis.nnrt.hdi.v2_1.chip import Chip, ChipV2_0
from crosschip.apis.nnrt.hdi.v2_1.device import HdiDevice, device_over
from crosschip.apis.nnrt.hdi.v2_1.interface import IPreparedModel
from crosschip.apis.nnrt.hdi.v2_1.nodes import V2_0, V2_1
from crosschip.apis.nnrt.hdi.v2_1.types import ModelConfig
from crosschip.apis.nnrt.hdi.v2_1.types import NNRT_ReturnCode as Code
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import (
    Capabilities,
    CompileError,
    Device,
    Options,
    Program,
    Sizes,
    Sizing,
)
from crosschip.ir import Array, Builder, DeviceError, ElementType, TensorType, symbol
from crosschip.ir import Model as StandardModel
from crosschip.ops import examples_of
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.unary import Erf

FLOAT32 = ElementType.FLOAT32
CASES = {
    f"{operator.type}-{number}": (operator, arguments)
    for operator in V2_1.by_operator
    for number, arguments in enumerate(examples_of(operator)[:2])
}
X = np.array([[-2, -1, 0], [1, 2, 3]], np.float32)


def small(rows: int | str = 2) -> StandardModel:
    """The model of `max(x * x - 3, 0)`."""
    b = Builder("small")
    first = symbol(rows) if isinstance(rows, str) else rows
    x = b.input("x", TensorType(FLOAT32, (first, 3)))
    b.output("y", b.add(Relu, b.add(Add, b.add(Mul, x, x), np.full(3, -3, np.float32))))
    return b.build()


def wanted(x: Array) -> Array:
    made: Array = np.maximum(x * x - 3, 0)
    return made


def filled() -> StandardModel:
    """A model of as many numbers as its input says, which nothing but a run tells."""
    b = Builder("filled")
    count = b.input("count", TensorType(ElementType.INT64, (1,)))
    b.output("y", b.add(Fill, shape=count, value=np.array(7, np.float32)))
    return b.build()


@contextmanager
def prepared(
    model: StandardModel, chip: Chip, config: ModelConfig | None = None
) -> Iterator[IPreparedModel]:
    with write_model(model, nodes=V2_1) as written, chip:
        yield chip.PrepareModel(written.model, config or ModelConfig())


def tensor(chip: Chip, written: Model, index: int, array: Array, size: int = -1) -> IOTensor:
    """An input or output of a run, with an array in memory for so many bytes."""
    size = array.nbytes if size < 0 else size
    buffer = msgspec.structs.replace(chip.AllocateBuffer(max(size, 1)), dataSize=size)
    if size >= array.nbytes:
        memory.fill(buffer, array)
    own = written.allTensors[index]
    return IOTensor(own.name, own.dataType, array.shape, own.format, buffer)


@pytest.mark.parametrize("case", CASES)
def test_examples_give_what_the_device_itself_gives(case: str) -> None:
    operator, arguments = CASES[case]
    model, inputs = model_of(operator, arguments), list(arrays_for(arguments).values())
    with Chip(ReferenceDevice()) as chip:
        device = device_over(chip)
        (answer,) = device.query(model, Options()).answers
        if not answer:
            assert "HDI V2_1" in answer.reason or "driver interface" in answer.reason
            return
        with closing(device.compile(model, Options())) as program:
            made = program.run(inputs)
    for found, array in zip(
        made, ReferenceDevice().compile(model, Options()).run(inputs), strict=True
    ):
        assert found.dtype == array.dtype
        close = 4e-3 if array.dtype == np.float16 else 2e-5
        np.testing.assert_allclose(found, array, rtol=close, atol=close / 10)


def test_each_version_runs_its_own_nodes() -> None:
    b = Builder()
    b.output("y", b.add(Erf, b.input("x", TensorType(FLOAT32, (2, 3)))))
    for kind, nodes in ((Chip, V2_1), (ChipV2_0, V2_0)):
        with kind(ReferenceDevice()) as chip:
            device = device_over(chip)
            assert (chip.GetVersion(), device.nodes) == (nodes.version, nodes)
            assert device.version == f"HDI 2.{nodes.version[1]}"
            (answer,) = device.query(b.build(), Options()).answers
            assert bool(answer) is (nodes is V2_1)
            if not answer:
                assert answer.reason == "ERF: HDI V2_0 has no node for it"
            made = crosschip.compile(
                small(), [device], placement=crosschip.PlacementOptions(strict=True), cache=False
            ).run({"x": X})
            np.testing.assert_array_equal(made["y"], wanted(X))


class Older(Chip):
    def GetVersion(self) -> tuple[int, int]:
        return 1, 0


def test_a_driver_of_another_version_is_refused() -> None:
    with Older(ReferenceDevice()) as chip, pytest.raises(DeviceError, match=r"has version 1\.0"):
        device_over(chip)
    with pytest.raises(DeviceError, match="does not say how its driver is opened"):
        HdiDevice()


def test_ranges_are_those_of_the_model_and_the_options() -> None:
    ranged = Options(sizes=Sizes.of({"tensor_0_0": (1, 8)}, []))
    with prepared(small(), Chip(ReferenceDevice())) as known:
        assert known.GetInputDimRanges() == ([[2, 3]], [[2, 3]])
    with prepared(small("N"), Chip(ReferenceDevice())) as free:
        assert free.GetInputDimRanges() == ([[0, 3]], [[2**31 - 1, 3]])
    with prepared(small("N"), Chip(ReferenceDevice(), ranged)) as bounded:
        assert bounded.GetInputDimRanges() == ([[1, 3]], [[8, 3]])
        assert bounded.GetVersion() == (2, 1)


class Bounded(ReferenceDevice):
    """A chip that compiles open sizes within ranges only."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), sizing=Sizing.BOUNDED)


@pytest.mark.parametrize(
    ("ranges", "is_dynamic"), [({}, False), ({"tensor_9_0": (1, 8)}, True)], ids=["none", "other"]
)
def test_a_device_with_ranges_needs_them(
    ranges: dict[str, tuple[int, int]], is_dynamic: bool
) -> None:
    chip = Chip(Bounded(), Options(sizes=Sizes.of(ranges, [])))
    assert chip.IsDynamicInputSupported() is is_dynamic
    with pytest.raises(HdiError, match="must be known") as caught, prepared(small("N"), chip):
        pass
    assert caught.value.code is Code.NNRT_NOT_SUPPORT


def test_sizes_out_of_range_are_refused_on_both_sides() -> None:
    chip = Chip(Bounded(), Options(sizes=Sizes.of({"tensor_0_0": (1, 8)}, [])))
    with chip, write_model(small("N"), nodes=V2_1) as written:
        program = device_over(chip).compile(small("N"), Options())
        for rows in (1, 8):
            x = np.full((rows, 3), 2, np.float32)
            np.testing.assert_array_equal(program.run([x])[0], wanted(x))
        model = chip.PrepareModel(written.model, ModelConfig())
        for rows in (0, 9):
            x = np.full((rows, 3), 2, np.float32)
            told = rf"input 'x': axis 0 has the size {rows}, but must have 1 to 8"
            with pytest.raises(HdiError, match=told) as ours:
                program.run([x])
            given = [tensor(chip, written.model, written.model.inputIndex[0], x)]
            with pytest.raises(HdiError, match=told) as theirs:
                model.Run(given, [])
            assert ours.value.code is theirs.value.code is Code.NNRT_OUT_OF_DIMENTION_RANGES


def test_an_output_without_room_is_an_error() -> None:
    with Chip(ReferenceDevice()) as chip, write_model(small(), nodes=V2_1) as written:
        model = chip.PrepareModel(written.model, ModelConfig())
        (read,), (made,) = written.model.inputIndex, written.model.outputIndex
        given = tensor(chip, written.model, read, X)
        room = tensor(chip, written.model, made, np.zeros_like(X))
        assert model.Run([given], [room]) == [[2, 3]]
        held = memory.read(room.data).view(np.float32).reshape(2, 3)
        np.testing.assert_array_equal(held, wanted(X))
        short = tensor(chip, written.model, made, X, 23)
        with pytest.raises(HdiError, match=r"there are 23 bytes for \[2, 3\]") as caught:
            model.Run([given], [short])
        assert caught.value.code is Code.NNRT_INSUFFICIENT_BUFFER
        with pytest.raises(HdiError, match="there are 0 outputs, but must be 1") as caught:
            model.Run([given], [])
        assert caught.value.code is Code.NNRT_INVALID_PARAMETER
        flat = msgspec.structs.replace(given, dimensions=(6,))
        with pytest.raises(HdiError, match=r"has the sizes \[6\]") as caught:
            model.Run([flat], [room])
        assert caught.value.code is Code.NNRT_INVALID_PARAMETER


class Counting(Chip):
    """A driver that tells how often it was run, and with how much room."""

    def __init__(self) -> None:
        super().__init__(ReferenceDevice())
        self.rooms: list[int] = []

    def PrepareModel(self, model: Model, config: ModelConfig) -> IPreparedModel:
        return Counted(super().PrepareModel(model, config), self.rooms)


class Counted(IPreparedModel):
    def __init__(self, inner: IPreparedModel, rooms: list[int]) -> None:
        self.inner, self.rooms = inner, rooms

    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        return self.inner.ExportModelCache()

    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> Sequence[Sequence[int]]:
        self.rooms.append(outputs[0].data.dataSize)
        return self.inner.Run(inputs, outputs)

    def GetInputDimRanges(self) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
        return self.inner.GetInputDimRanges()

    def GetVersion(self) -> tuple[int, int]:
        return self.inner.GetVersion()


def test_room_is_doubled_where_only_a_run_tells_the_size() -> None:
    with Counting() as chip:
        program = device_over(chip).compile(filled(), Options())
        for count, rooms in ((5, [4096]), (4000, [4096, 8192, 16384]), (0, [16384])):
            (made,) = program.run([np.array([count])])
            np.testing.assert_array_equal(made, np.full(count, 7, np.float32))
            assert chip.rooms == rooms
            chip.rooms.clear()


def test_room_is_right_at_once_where_inference_tells_the_size() -> None:
    with Counting() as chip:
        program = device_over(chip).compile(small("N"), Options())
        for rows in (1, 2000, 3, 0):
            x = np.full((rows, 3), 2, np.float32)
            np.testing.assert_array_equal(program.run([x])[0], wanted(x))
        assert chip.rooms == [12, 24000, 36, 0]


class Scripted(Chip):
    """A driver whose prepared models answer as told."""

    def __init__(self, answer: Answering) -> None:
        super().__init__(ReferenceDevice())
        self.answer = answer

    def PrepareModel(self, model: Model, config: ModelConfig) -> IPreparedModel:
        return self.answer


class Answering(Counted):
    def __init__(
        self,
        sizes: Sequence[Sequence[int]] = (),
        code: Code | None = None,
        ranges: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] = ([[1]], [[1]]),
    ) -> None:
        self.sizes, self.code, self.ranges, self.rooms = sizes, code, ranges, []

    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> Sequence[Sequence[int]]:
        self.rooms.append(outputs[0].data.dataSize)
        if self.code is not None:
            raise HdiError(self.code, "as told")
        return self.sizes

    def GetInputDimRanges(self) -> tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]]:
        return self.ranges


def ran(answer: Answering) -> Sequence[Array]:
    with Scripted(answer) as chip, closing(device_over(chip).compile(filled(), Options())) as one:
        return one.run([np.array([1])])


def test_a_driver_that_tells_greater_sizes_gets_the_room_for_them() -> None:
    answer = Answering([[5000]])
    assert ran(answer)[0].shape == (5000,)
    assert answer.rooms == [4096, 20000]


def test_other_failures_are_not_tried_again() -> None:
    answer = Answering(code=Code.NNRT_DEVICE_ERROR)
    with pytest.raises(HdiError, match="as told") as caught:
        ran(answer)
    assert caught.value.code is Code.NNRT_DEVICE_ERROR
    assert len(answer.rooms) == 1


def test_room_is_not_doubled_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosschip.apis.nnrt.hdi.v1_0.arena._MAX_GUESS", 10000)
    answer = Answering(code=Code.NNRT_INSUFFICIENT_BUFFER)
    with pytest.raises(HdiError, match="as told"):
        ran(answer)
    assert answer.rooms == [4096, 8192, 10000]


def test_known_sizes_are_not_doubled() -> None:
    answer = Answering(code=Code.NNRT_INSUFFICIENT_BUFFER, ranges=([[2, 3]], [[2, 3]]))
    with Scripted(answer) as chip:
        program = device_over(chip).compile(small(), Options())
        with pytest.raises(HdiError, match="as told"):
            program.run([X])
    assert answer.rooms == [24]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answering([[1], [1]]), "the driver made 2 outputs, but the model has 1"),
        (Answering([[-1]]), r"the driver made an output of the sizes \[-1\]"),
        (Answering([[1]], ranges=([], [])), r"gives the ranges \[\] to \[\] for inputs of \[1\]"),
        (Answering([[1]], ranges=([[1]], [[1, 2]])), "gives the ranges"),
    ],
)
def test_a_driver_that_lies_is_found_out(answer: Answering, told: str) -> None:
    with pytest.raises(DeviceError, match=told):
        ran(answer)


@pytest.mark.parametrize("sizes", [(3, 2), (2, 3, 1000), (6,), (1, 3)])
def test_a_driver_that_makes_other_sizes_is_found_out(sizes: Sequence[int]) -> None:
    answer = Answering([sizes], ranges=([[2, 3]], [[2, 3]]))
    with Scripted(answer) as chip:
        program = device_over(chip).compile(small(), Options())
        with pytest.raises(DeviceError, match=r"the driver made \[.*\], not \[2, 3\]"):
            program.run([X])
    assert answer.rooms == [24]
    with pytest.raises(DeviceError, match=r"the driver made \[1, 1\], not float32\["):
        ran(Answering([[1, 1]]))


def test_a_model_outside_of_a_drivers_ranges_is_not_compiled() -> None:
    with pytest.raises(CompileError, match="axis 0 has the size 1, but must have 2 to 4"):
        ran(Answering([[1]], ranges=([[2]], [[4]])))


class Naming(ReferenceDevice):
    """A chip that remembers the names of models."""

    def compile(self, model: StandardModel, options: Options) -> Program:
        self.called = model.name
        return super().compile(model, options)


def test_extensions(caplog: pytest.LogCaptureFixture) -> None:
    naming = Naming()
    config = ModelConfig(extensions={"ModelName": b"net", "NPU_FM_SHARED": b"1", "aipp": b"0"})
    with caplog.at_level(logging.INFO, "crosschip"), prepared(small(), Chip(naming), config):
        assert naming.called == "net"
    assert "mean nothing to the device: NPU_FM_SHARED, aipp" in caplog.text
    with Chip(naming) as chip:
        device_over(chip).compile(small(), Options())
        assert naming.called == "small"
    bad = ModelConfig(extensions={"ModelName": b"\xff"})
    with (
        pytest.raises(HdiError, match="ModelName is not text") as caught,
        prepared(small(), Chip(naming), bad),
    ):
        pass
    assert caught.value.code is Code.NNRT_INVALID_PARAMETER


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(enableFloat16=True),
        ModelConfig(mode=PerformanceMode.PERFORMANCE_LOW),
        ModelConfig(priority=Priority.PRIORITY_HIGH),
    ],
)
def test_wishes_that_a_device_cannot_keep_are_refused(config: ModelConfig) -> None:
    with (
        pytest.raises(HdiError, match="reference") as caught,
        prepared(small(), Chip(ReferenceDevice()), config),
    ):
        pass
    assert caught.value.code is Code.NNRT_NOT_SUPPORT


def test_failures_have_the_codes_of_the_version() -> None:
    with Chip(ReferenceDevice()) as chip, write_model(small(), nodes=V2_1) as written:
        model, config = written.model, ModelConfig()
        node = msgspec.structs.replace(model.nodes[0], nodeAttr=b"\xff")
        unknown = msgspec.structs.replace(model, nodes=(node, *model.nodes[1:]))
        twisted = msgspec.structs.replace(model, inputIndex=(99,))
        for code, call in (
            (Code.NNRT_UNSUPPORTED_OP, lambda: chip.PrepareModel(unknown, config)),
            (Code.NNRT_INVALID_PARAMETER, lambda: chip.PrepareModel(twisted, config)),
            (Code.NNRT_INVALID_PARAMETER, lambda: chip.GetSupportedOperation(twisted)),
            (Code.NNRT_INVALID_PARAMETER, lambda: chip.ReleaseBuffer(SharedBuffer(0, 8, 0, 8))),
            (Code.NNRT_INVALID_PARAMETER, lambda: chip.AllocateBuffer(0)),
            (Code.NNRT_INVALID_MODEL_CACHE, lambda: chip.PrepareModelFromModelCache([], config)),
            (Code.NNRT_INVALID_MODEL, lambda: chip.PrepareOfflineModel([], config)),
        ):
            with pytest.raises(HdiError) as caught:
                call()
            assert caught.value.code is code


@contextmanager
def exported(device: Device) -> Iterator[SharedBuffer]:
    """A compiled model, as a device saves it."""
    with prepared(small(), Chip(device)) as model:
        (buffer,) = model.ExportModelCache()
        yield buffer
        memory.release(buffer)


def changed(held: Array, place: int) -> SharedBuffer:
    copy = held.copy()
    copy[place] ^= 1
    return SharedBuffer(memory.create_constant([(0, copy)]), copy.nbytes, 0, copy.nbytes)


def test_offline_models_are_what_a_device_saved(caplog: pytest.LogCaptureFixture) -> None:
    device = ReferenceDevice()
    with exported(device) as saved, Chip(device) as chip:
        config = ModelConfig(extensions={"isExceedRamLimit": b"0"})
        with caplog.at_level(logging.INFO, "crosschip"):
            model = chip.PrepareOfflineModel([saved], config)
        assert "mean nothing to the device: isExceedRamLimit" in caplog.text
        assert model.GetInputDimRanges() == ([[2, 3]], [[2, 3]])
        with write_model(small(), nodes=V2_1) as written:
            (read,), (made,) = written.model.inputIndex, written.model.outputIndex
            given = tensor(chip, written.model, read, X)
            room = tensor(chip, written.model, made, np.zeros_like(X))
        assert model.Run([given], [room]) == [[2, 3]]
        held = memory.read(room.data).view(np.float32).reshape(2, 3)
        np.testing.assert_allclose(held, wanted(X), rtol=1e-6)


def test_offline_models_of_others_are_refused() -> None:
    device, config = ReferenceDevice(), ModelConfig()
    with exported(device) as saved:
        whole = memory.read(saved)
        for place in (0, 40, -1):
            bad = changed(whole, place)
            with Chip(device) as chip:
                with pytest.raises(HdiError, match="is not as it was saved") as caught:
                    chip.PrepareOfflineModel([bad], config)
                assert caught.value.code is Code.NNRT_INVALID_MODEL
                with pytest.raises(HdiError, match="is not as it was saved") as caught:
                    chip.PrepareModelFromModelCache([bad], config)
                assert caught.value.code is Code.NNRT_INVALID_MODEL_CACHE
            memory.release(bad)
        with Chip(device) as chip:
            lost = SharedBuffer(-1, 8, 0, 8)
            for parts, code in (([], Code.NNRT_INVALID_MODEL), ([lost], Code.NNRT_INVALID_BUFFER)):
                with pytest.raises(HdiError) as caught:
                    chip.PrepareOfflineModel(parts, config)
                assert caught.value.code is code
        with Chip(device, Options(threads=1)) as chip:
            with pytest.raises(HdiError, match="for other wishes") as caught:
                chip.PrepareOfflineModel([saved], config)
            assert caught.value.code is Code.NNRT_INVALID_MODEL


class Forgetting(Program):
    """A program that is not saved."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self.program.run(inputs)


class Forgetful(ReferenceDevice):
    load = Device.load

    def compile(self, model: StandardModel, options: Options) -> Program:
        return Forgetting(super().compile(model, options))


def test_a_device_that_saves_nothing_takes_no_offline_models() -> None:
    with Chip(Forgetful()) as chip, write_model(small(), nodes=V2_1) as written:
        assert device_over(chip).compile(small(), Options()).save() is None
        with pytest.raises(HdiError, match="does not save programs") as caught:
            chip.PrepareModel(written.model, ModelConfig()).ExportModelCache()
        assert caught.value.code is Code.NNRT_NOT_SUPPORT
        with pytest.raises(HdiError, match="takes no offline models") as caught:
            chip.PrepareOfflineModel([], ModelConfig())
        assert caught.value.code is Code.NNRT_NOT_SUPPORT


@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_offline_model_are_refused(data: bytes) -> None:
    held = np.frombuffer(data, np.uint8)
    buffer = SharedBuffer(memory.create_constant([(0, held)]), max(len(data), 1), 0, len(data))
    try:
        with Chip(ReferenceDevice()) as chip, pytest.raises(HdiError) as caught:
            chip.PrepareOfflineModel([buffer], ModelConfig())
        assert caught.value.code is Code.NNRT_INVALID_MODEL
    finally:
        memory.release(buffer)


@given(least=st.integers(0, 6), more=st.integers(0, 6), rows=st.integers(0, 14))
def test_runs_are_those_within_the_range(least: int, more: int, rows: int) -> None:
    sizes = Sizes.of({"tensor_0_0": (least, least + more)}, [])
    x = np.full((rows, 3), rows, np.float32)
    with Chip(ReferenceDevice(), Options(sizes=sizes)) as chip:
        program = device_over(chip).compile(small("N"), Options())
        if least <= rows <= least + more:
            np.testing.assert_array_equal(program.run([x])[0], wanted(x))
        else:
            with pytest.raises(HdiError, match=f"must have {least} to {least + more}"):
                program.run([x])
        program.close()


def test_models_are_saved_and_loaded() -> None:
    device = ReferenceDevice()
    before = set(os.listdir("/proc/self/fd"))
    with Chip(device) as chip:
        over = device_over(chip)
        with closing(over.compile(small(), Options())) as program:
            saved = program.save()
        assert saved is not None
        with closing(over.load(saved, small(), Options())) as program:
            np.testing.assert_allclose(program.run([X])[0], wanted(X), rtol=1e-6)
    assert len(set(os.listdir("/proc/self/fd")) - before) == 0
