"""A crosschip device behind the interface, and that again as a crosschip device."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.apis.nnrt.hdi.v1_0.making import run

import crosschip
from crosschip.apis.nnrt.hdi.v1_0.chip import Chip
from crosschip.apis.nnrt.hdi.v1_0.device import HdiDevice, device_over
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, IPreparedModel, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DeviceStatus,
    DeviceType,
    IOTensor,
    Model,
    ModelConfig,
    PerformanceMode,
    Priority,
    SharedBuffer,
)
from crosschip.apis.nnrt.hdi.v1_0.writer import write_model
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import (
    YES,
    Capabilities,
    Device,
    Group,
    Kind,
    Offer,
    Options,
    Performance,
    Precision,
    Program,
    Rule,
    Sizing,
    Support,
    urgency,
)
from crosschip.ir import Array, Builder, DeviceError, ElementType, TensorType, symbol
from crosschip.ir import Model as StandardModel
from crosschip.ops import examples_of
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.standard.activation import Relu, Softmax
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.searching import NonZero
from crosschip.runtime.discovery import open_device

CASES = {
    f"{operator.type}-{number}": (operator, arguments)
    for operator in V1_0.by_operator
    for number, arguments in enumerate(examples_of(operator))
}
FLOAT32 = ElementType.FLOAT32


@pytest.fixture
def over() -> Iterator[HdiDevice]:
    """The reference device behind the interface."""
    with Chip(ReferenceDevice()) as chip:
        yield device_over(chip)


@pytest.mark.parametrize("format", ["nhwc", "nchw"])
@pytest.mark.parametrize("case", CASES)
def test_examples_give_what_the_device_itself_gives(case: str, format: str) -> None:
    operator, arguments = CASES[case]
    model, inputs = model_of(operator, arguments), list(arrays_for(arguments).values())
    with Chip(ReferenceDevice()) as chip:
        device = device_over(chip, {"format": format})
        (answer,) = device.query(model, Options()).answers
        if not answer:
            assert answer.operator == operator.type
            assert "HDI V1_0" in answer.reason or "driver interface" in answer.reason
            return
        with closing(device.compile(model, Options())) as program:
            made = program.run(inputs)
    wanted = ReferenceDevice().compile(model, Options()).run(inputs)
    for found, array in zip(made, wanted, strict=True):
        assert found.dtype == array.dtype
        assert found.flags.writeable
        if array.dtype.kind == "f":
            close = 4e-3 if array.dtype == np.float16 else 2e-5
            np.testing.assert_allclose(found, array, rtol=close, atol=close / 10)
        else:
            np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(("engine", "format"), [("onnxruntime", "nhwc"), ("openvino", "nchw")])
def test_a_network(engine: str, format: str, models: Path) -> None:
    kept = np.load(models / "onnx/mobilenet_v1.oracle-4.npz")
    model = crosschip.load(models / "onnx/mobilenet_v1.onnx")
    own = open_device(engine).device
    with Chip(own) as chip:
        device = device_over(chip, {"format": format})
        compiled = crosschip.compile(
            model, [device], placement=crosschip.PlacementOptions(strict=True), cache=False
        )
        (made,) = compiled.run({"x": kept["input:x"]}).values()
    np.testing.assert_allclose(made, kept["output:0"], rtol=1e-3, atol=1e-4)


class Narrow(Device):
    """A chip with few operators, which takes known sizes, and some things only together."""

    vendor = "Narrow"
    kind = Kind.ACCELERATOR

    def __init__(self, grouped: bool = False) -> None:
        super().__init__()
        self.grouped = grouped
        self.told: list[Options] = []

    @property
    def version(self) -> str:
        return "7"

    def capabilities(self) -> Capabilities:
        both = frozenset({Precision.FLOAT32, Precision.FLOAT16})
        types = frozenset({FLOAT32, ElementType.INT32, ElementType.INT64})
        return Capabilities(precisions=both, types=types, sizing=Sizing.FIXED)

    def modes(self) -> Mapping[Performance, Mapping[str, str]]:
        return {Performance.HIGH: {"speed": "9"}}

    def query(self, model: StandardModel, options: Options) -> Offer:
        known = ("ADD", "CLIP", "MUL", "RELU", "TRANSPOSE", "ASSIGN")
        answers = []
        for one in model.operations:
            if one.type not in known:
                answers.append(Support.no(one, "", "not here", Rule.OPERATOR))
            elif getattr(one, "fuse_code", 0):
                answers.append(Support.no(one, "fuse_code", "not here", Rule.FUSION))
            else:
                answers.append(YES)
        group = [Group(range(len(answers)), "one chain")] if self.grouped else []
        return Offer(answers, group)

    def compile(self, model: StandardModel, options: Options) -> Program:
        self.told.append(options)
        return Forgetting(ReferenceDevice().compile(model, Options()))


class Forgetting(Program):
    """A program that is not saved."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._program.run(inputs)


def small() -> StandardModel:
    b = Builder("small")
    x = b.input("x", TensorType(FLOAT32, (2, 3)))
    b.output("y", b.add(Add, b.add(Mul, x, x), np.ones(3, np.float32), fuse_code=1))
    return b.build()


def test_what_a_device_declines_is_split_behind_the_interface() -> None:
    with Chip(Narrow()) as chip, write_model(small()) as written:
        x = np.array([[-2, -1, 0], [1, 2, 3]], np.float32)
        (made,) = run(chip, written.model, [x])
        np.testing.assert_array_equal(made, np.maximum(x * x + 1, 0))


def test_what_a_device_declines_for_good_is_declined_node_by_node() -> None:
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, (2, 3)))
    b.output("y", b.add(NonZero, b.add(Relu, b.add(Softmax, x))))
    with Chip(Narrow()) as chip:
        device = device_over(chip)
        answers = device.query(b.build(), Options()).answers
        assert [bool(answer) for answer in answers] == [False, True, False]
        assert answers[0].reason == "SOFTMAX: the driver declines SOFTMAX"
        assert answers[2].reason == "NON_ZERO: HDI V1_0 has no node for it"


def test_a_group_is_taken_whole_or_not_at_all() -> None:
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, (2, 3)))
    b.output("y", b.add(Softmax, b.add(Relu, x)))
    with Chip(Narrow(grouped=True)) as chip, write_model(b.build()) as written:
        assert chip.GetSupportedOperation(written.model) == [False, False]
        with pytest.raises(HdiError) as caught:
            chip.PrepareModel(written.model, ModelConfig())
        assert caught.value.code is ReturnCode.HDF_ERR_NOT_SUPPORT


def test_types_that_a_device_lacks_are_declined() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT64, (2, 3)))
    b.output("y", b.add(Relu, x))
    with Chip(Narrow()) as chip, write_model(b.build()) as written:
        assert chip.GetSupportedOperation(written.model) == [False]


def test_wishes_reach_the_device() -> None:
    narrow = Narrow()
    with Chip(narrow) as chip:
        device = device_over(chip)
        assert device.capabilities().precisions == narrow.capabilities().precisions
        assert device.capabilities().sizing is Sizing.FIXED
        assert device.modes()[Performance.HIGH] == {"PerformanceMode": "PERFORMANCE_HIGH"}
        wishes = Options(precision=Precision.FLOAT16, performance=Performance.HIGH)
        assert device.engine_settings(wishes) == {
            "enableFloat16": "true",
            "mode": "PERFORMANCE_HIGH",
            "priority": "PRIORITY_NONE",
        }
        device.compile(small(), wishes)
        assert (narrow.told[0].precision, narrow.told[0].performance) == (
            Precision.FLOAT16,
            Performance.HIGH,
        )


@pytest.mark.parametrize(
    "config",
    [
        ModelConfig(enableFloat16=True),
        ModelConfig(mode=PerformanceMode.PERFORMANCE_LOW),
        ModelConfig(priority=Priority.PRIORITY_HIGH),
    ],
)
def test_wishes_that_a_device_cannot_keep_are_refused(config: ModelConfig) -> None:
    with Chip(ReferenceDevice()) as chip, write_model(small()) as written:
        with pytest.raises(HdiError, match="reference") as caught:
            chip.PrepareModel(written.model, config)
        assert caught.value.code is ReturnCode.HDF_ERR_NOT_SUPPORT


class Heeding(Program):
    """A program that remembers how urgent its runs are."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.told: list[int] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self.told.append(urgency.get())
        return self._program.run(inputs)


class Hurried(ReferenceDevice):
    def compile(self, model: StandardModel, options: Options) -> Program:
        self.program = Heeding(super().compile(model, options))
        return self.program


def test_priorities_reach_the_device() -> None:
    hurried = Hurried()
    with Chip(hurried, priorities=True) as chip:
        for word, number in (("high", 3), ("low", 1), ("none", 2)):
            device = device_over(chip, {"priority": word})
            device.compile(small(), Options()).run([np.ones((2, 3), np.float32)])
            assert hurried.program.told == [number]


def test_open_sizes() -> None:
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, (symbol("N"), 3)))
    b.output("y", b.add(Relu, x))
    model = b.build()
    with write_model(model) as written, Chip(Narrow()) as chip:
        assert not chip.IsDynamicInputSupported()
        with pytest.raises(HdiError, match="sizes of inputs must be known"):
            chip.PrepareModel(written.model, ModelConfig())
    with Chip(ReferenceDevice()) as chip:
        program = device_over(chip).compile(model, Options())
        for rows in (1, 4, 0, 2000, 3):  # the output grows beyond what there was room for
            given = np.full((rows, 3), -1, np.float32)
            given[:, 1] = rows
            (made,) = program.run([given])
            np.testing.assert_array_equal(made, np.maximum(given, 0))


def test_runs_overlap() -> None:
    with Chip(ReferenceDevice()) as chip:
        program = device_over(chip).compile(small(), Options())
        given = [np.full((2, 3), number, np.float32) for number in range(50)]
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda x: program.run([x])[0], given))
        for x, y in zip(given, made, strict=True):
            np.testing.assert_array_equal(y, x * x + 1)


def test_rules_that_a_run_breaks_are_errors() -> None:
    b = Builder()
    x = b.input("x", TensorType(FLOAT32, (3,)))
    places = b.input("places", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(Gather, x, places, axis=0))
    with Chip(ReferenceDevice()) as chip:
        program = device_over(chip).compile(b.build(), Options())
        good = np.arange(3, dtype=np.float32)
        np.testing.assert_array_equal(program.run([good, np.array([2, 0])])[0], [2, 0])
        with pytest.raises(DeviceError):
            program.run([good, np.array([7, 0])])
        np.testing.assert_array_equal(program.run([good, np.array([1, 1])])[0], [1, 1])


def saving(engine: str, model: StandardModel) -> tuple[Device, bytes]:
    device = open_device(engine).device
    with Chip(device) as chip, closing(device_over(chip).compile(model, Options())) as program:
        saved = program.save()
    assert saved is not None
    return device, saved


def test_models_are_saved_and_loaded() -> None:
    model, x = small(), np.ones((2, 3), np.float32)
    device, saved = saving("openvino", model)
    with Chip(device) as chip:
        assert chip.IsModelCacheSupported()
        program = device_over(chip).load(saved, model, Options())
        np.testing.assert_array_equal(program.run([x])[0], x * x + 1)
        for place in (5, len(saved) // 2, -3):
            damaged = bytearray(saved)
            damaged[place] ^= 1
            with pytest.raises((DeviceError, ValueError)):
                device_over(chip).load(bytes(damaged), model, Options())
    with (
        Chip(device, secret=b"another") as other,
        pytest.raises(HdiError, match="is not as it was saved"),
    ):
        device_over(other).load(saved, model, Options())
    with Chip(device) as chip:
        wishes = Options(performance=Performance.HIGH)
        with pytest.raises(HdiError, match="for other wishes") as caught:
            device_over(chip).load(saved, model, wishes)
        assert caught.value.code is ReturnCode.HDF_ERR_INVALID_OBJECT


def test_a_device_that_saves_nothing_says_so() -> None:
    with Chip(Narrow()) as chip, write_model(small()) as written:
        assert not chip.IsModelCacheSupported()
        with pytest.raises(HdiError, match="does not save programs"):
            chip.PrepareModel(written.model, ModelConfig()).ExportModelCache()
        assert device_over(chip).compile(small(), Options()).save() is None


def test_no_descriptor_is_left() -> None:
    before = set(os.listdir("/proc/self/fd"))
    device, saved = saving("openvino", small())
    with Chip(device) as chip:
        over = device_over(chip)
        over.query(small(), Options())
        with closing(over.load(saved, small(), Options())) as program:
            program.run([np.ones((2, 3), np.float32)])
        assert not chip._memories
    assert len(set(os.listdir("/proc/self/fd")) - before) == 0


class Liar(Chip):
    """A driver that answers nonsense."""

    def __init__(self, *, answers: int = 1, sizes: Sequence[int] = (2, 3)) -> None:
        super().__init__(ReferenceDevice())
        self.answers, self.sizes = answers, sizes

    def GetSupportedOperation(self, model: Model) -> Sequence[bool]:
        return [True] * self.answers

    def PrepareModel(self, model: Model, config: ModelConfig) -> IPreparedModel:
        return Lying(self.sizes)


class Lying(IPreparedModel):
    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes

    def ExportModelCache(self) -> Sequence[SharedBuffer]:
        return []

    def Run(
        self, inputs: Sequence[IOTensor], outputs: Sequence[IOTensor]
    ) -> tuple[Sequence[Sequence[int]], Sequence[bool]]:
        return [self.sizes], [True]

    def GetVersion(self) -> tuple[int, int]:
        return 1, 0


@pytest.mark.parametrize("sizes", [(2, 3, 100000), (-1, 3)])
def test_a_driver_that_lies_is_found_out(sizes: tuple[int, ...]) -> None:
    with Liar(answers=5, sizes=sizes) as liar:
        device = device_over(liar)
        with pytest.raises(DeviceError, match="gives 5 answers about 2 nodes"):
            device.query(small(), Options())
        program = device.compile(small(), Options())
        with pytest.raises(DeviceError, match="the driver made"):
            program.run([np.zeros((2, 3), np.float32)])


class Sleeping(Chip):
    def GetDeviceStatus(self) -> DeviceStatus:
        return DeviceStatus.OFFLINE


def test_devices_say_what_they_are() -> None:
    with Chip(ReferenceDevice()) as chip:
        assert (chip.GetDeviceName(), chip.GetDeviceType()) == ("reference", DeviceType.CPU)
        assert chip.GetDeviceStatus() is DeviceStatus.AVAILABLE
        assert chip.GetVersion() == (1, 0)
        device = device_over(chip)
        assert (device.vendor, device.kind) == (chip.GetVendorName(), Kind.CPU)
        assert device.version == "HDI 1.0"
        assert "CONV_2D" in device.operators()
        with pytest.raises(DeviceError, match="format is 'nope', but must be one of nhwc, nchw"):
            device_over(chip, {"format": "nope"})
        with pytest.raises(DeviceError, match="reference has no priorities"):
            device_over(chip, {"priority": "high"})
    with Sleeping(ReferenceDevice()) as chip, pytest.raises(DeviceError, match="is OFFLINE"):
        device_over(chip)
    with pytest.raises(DeviceError, match="does not say how its driver is opened"):
        HdiDevice()
