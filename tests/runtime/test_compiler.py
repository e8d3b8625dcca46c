"""Compiling: arguments, devices that fail, and what is said about it."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, close, float32, model_of, outputs_of

import crosschip
from crosschip.hal import Device, Options, Precision, Program, Support
from crosschip.ir import (
    Array,
    DeviceError,
    InputError,
    Model,
    Operation,
    UnsupportedError,
    symbol,
)
from crosschip.ops import Operator
from crosschip.ops.standard.activation import HardSwish, Relu, Sigmoid, Swish, Tanh
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.placement.options import PlacementOptions

Warnings = Callable[[], list[str]]
ROOT = Path(__file__).parents[2]
x = {"x0": np.array([-1, 0.5], np.float32)}


def compile(model: Model, devices: Sequence[str | Device], **more: Any) -> crosschip.CompiledModel:
    return crosschip.compile(model, devices, **{"cache": False, **more})


@pytest.mark.parametrize("name", ["strict", "isolate"])
def test_flags_are_true_or_false(name: str) -> None:
    flags: dict[str, Any] = {name: "yes"}
    with pytest.raises(InputError, match=f"{name} is 'yes', but must be True or False"):
        PlacementOptions(**flags)


def sizes(**options: Any) -> dict[str, Any]:
    return {"shapes": crosschip.ShapeOptions(**options)}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"devices": "nosuch"},
            DeviceError,
            "there is no device 'nosuch'; installed are: .*reference",
        ),
        ({"devices": ["reference", "nosuch"]}, DeviceError, "there is no device 'nosuch'"),
        ({"devices": []}, InputError, "no devices were given"),
        ({"devices": "reference,reference"}, InputError, "device 'reference' is given twice"),
        ({"precision": "float8"}, InputError, "'float8' .*; there are float32, bfloat16, float16"),
        (
            {"precision": "bfloat16"},
            UnsupportedError,
            "RELU.input: computes in float32, not",
        ),
        ({"threads": 0}, InputError, "threads is 0, but must be an integer of at least 1"),
        ({"threads": -2}, InputError, "threads is -2"),
        (sizes(ranges=5), InputError, "ranges has 5; give sizes by name, like"),
        (sizes(ranges={3: (1, 2)}), InputError, "the model has no open size 3; its open sizes are"),
        (sizes(ranges={"Q": (1, 2)}), InputError, "no open size 'Q'; its open sizes are none"),
        (sizes(profiles=5), InputError, "profiles is 5; give sizes by name, like"),
        (sizes(profiles=[{"Q": 1}]), InputError, "no open size 'Q'"),
        (
            sizes(ranges={"N": (1, 2)}, profiles=[{"N": 5}]),
            InputError,
            "profiles has {'N': 5}, but N is to be 1 to 2",
        ),
        ({"shapes": {"y": (1,)}}, InputError, "no input 'y'; its inputs are x0"),
        ({"shapes": {"x0": (3,)}}, InputError, "'x0' has shape .3., but the model takes"),
        ({"properties": {"npu": {}}}, InputError, "properties for 'npu', which is not among"),
        ({"properties": {"reference": {"speed": "9"}}}, DeviceError, "has no property 'speed'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        crosschip.compile(chain(Relu), **{"devices": "reference", "cache": False, **arguments})


def test_devices_may_be_given_as_text_or_as_a_list_or_as_instances() -> None:
    own = DelegatingDevice(name="own")
    given: list[str | list[str | Device]] = ["reference", " reference ", [own], ["reference", own]]
    for devices in given:
        with crosschip.compile(chain(Relu), devices, cache=False) as model:
            assert model.run(x)["y0"].tolist() == [0, 0.5]


def test_an_instance_has_its_properties_already() -> None:
    own = DelegatingDevice(name="own")
    with pytest.raises(InputError, match="device 'own' was made with its properties"):
        compile(chain(Relu), [own], properties={"own": {"speed": "9"}})


def test_a_model_is_not_changed_by_compiling() -> None:
    model = chain(Relu, Swish)
    text = str(model)
    compile(model, [DelegatingDevice(declines=["SWISH"])], shapes={"x0": (2,)})
    assert str(model) == text


def test_one_line_says_how_much_went_elsewhere_and_why(warnings: Warnings) -> None:
    devices = [DelegatingDevice(name="npu", declines=["TANH"]), DelegatingDevice(name="cpu")]
    with compile(chain(Relu, Tanh), devices):
        assert warnings() == [
            "net: 2 operations in 2 segments: npu runs 1, cpu runs 1; "
            "main reason (1): TANH: not implemented"
        ]


def test_nothing_is_said_when_the_first_device_runs_everything(
    warnings: Warnings,
) -> None:
    devices = [DelegatingDevice(name="npu", declines=["SWISH"]), DelegatingDevice(name="cpu")]
    with compile(chain(Relu, Swish), devices) as model:
        assert [segment.device for segment in model.placement.segments] == ["npu"]
    assert warnings() == []


def test_what_no_device_runs_is_refused_with_all_reasons() -> None:
    devices = [DelegatingDevice(name=n, declines=["TANH", "EXP"]) for n in ("npu", "cpu")]
    with pytest.raises(UnsupportedError) as caught:
        compile(chain(Tanh, Relu, Exp), devices)
    for type_ in ("TANH", "EXP"):
        assert f"1 x npu: {type_}: not implemented; cpu: {type_}: not implemented" in str(
            caught.value
        )


def test_explaining_compiles_nothing_and_asks_everybody() -> None:
    devices = [DelegatingDevice(name="npu"), DelegatingDevice(name="cpu", declines=["RELU"])]
    placement = crosschip.explain(chain(Relu), devices)
    assert [d.compiled for d in devices] == [[], []]
    (decision,) = placement.decisions
    assert decision.device == "npu"
    assert list(decision.reasons) == ["npu", "cpu"]
    assert "RELU: not implemented" in decision.reasons["cpu"]


def test_explaining_with_fixed_shapes() -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))
    placement = crosschip.explain(model, "reference", shapes={"x0": (5,)})
    assert placement.model.outputs["y0"].type == float32(5)
    with pytest.raises(InputError):
        crosschip.explain(model, "reference", shapes={"x0": (5, 5)})


def test_what_a_device_fails_to_compile_goes_elsewhere(warnings: Warnings) -> None:
    npu = DelegatingDevice(name="npu", fails=["TANH"])
    with compile(chain(Relu, Tanh, Sigmoid), [npu, DelegatingDevice(name="cpu")]) as model:
        close(model.run(x)["y0"], outputs_of(chain(Relu, Tanh, Sigmoid), x)["y0"])
        assert [d.device for d in model.placement.decisions] == ["npu", "cpu", "npu"]
        tanh = model.placement.decisions[1]
        assert "the compiler of npu crashed on TANH" in tanh.reasons["npu"]
    search, first, second = warnings()
    assert "names none; looking for those at fault" in search
    assert "crashed on TANH" in first
    assert "1 operations" in first
    assert "npu runs 2, cpu runs 1; main reason (1): " in second


@pytest.mark.parametrize("guilty", [[0], [3], [7], [12], [2, 9], [0, 1, 12]])
def test_the_operations_at_fault_are_found_by_halving(guilty: list[int]) -> None:
    operators: list[type[Operator]] = [Relu] * 13
    for index in guilty:
        operators[index] = Tanh
    npu = Closing(name="npu", fails=["TANH"])
    model = chain(*operators)
    with compile(model, [npu, DelegatingDevice(name="cpu")]) as compiled:
        close(compiled.run(x)["y0"], outputs_of(model, x)["y0"])
        decisions = compiled.placement.decisions
        assert [i for i, d in enumerate(decisions) if d.device == "cpu"] == guilty
        assert npu.open == sum(s.device == "npu" for s in compiled.placement.segments)
    assert npu.open == 0


class Crowded(DelegatingDevice):
    """Compiles no more than two operations at once."""

    def compile(self, model: Model, options: Options) -> Program:
        if len(model.operations) > 2:
            raise RuntimeError("too many")
        return super().compile(model, options)


def test_what_fails_only_together_goes_elsewhere_together() -> None:
    devices = [Crowded(name="npu"), DelegatingDevice(name="cpu")]
    with compile(chain(Relu, Tanh, Relu), devices) as model:
        assert {d.device for d in model.placement.decisions} == {"cpu"}
        for decision in model.placement.decisions:
            assert "does not compile together with 2 others" in decision.reasons["npu"]


@pytest.mark.parametrize(
    ("count", "guilty"),
    [
        (64, {10}),
        (64, {10, 50}),
        (64, {5, 15, 25, 35, 45, 55}),
        (125, set(range(3, 125, 14))),
    ],
)
def test_nobody_is_blamed_for_others(count: int, guilty: set[int], warnings: Warnings) -> None:
    npu = DelegatingDevice(name="npu", fails=["TANH"])
    model = chain(*(Tanh if index in guilty else Relu for index in range(count)))
    with compile(model, [npu, DelegatingDevice(name="cpu")]) as compiled:
        decisions = compiled.placement.decisions
        assert {i for i, d in enumerate(decisions) if d.device == "cpu"} == guilty
    (first, *_) = warnings()
    assert "names none; looking for those at fault in at most 96 compilations of parts" in first
    assert len(npu.compiled) <= 96 + 2 + 2 * len(guilty)


def test_finding_out_what_is_at_fault_has_an_end() -> None:
    npu = DelegatingDevice(name="npu", fails=["RELU", "CLIP", "MIN", "MAX"])
    with compile(chain(*[Relu] * 300), [npu, DelegatingDevice(name="cpu")]) as model:
        assert {d.device for d in model.placement.decisions} == {"cpu"}
        reasons = [d.reasons["npu"] for d in model.placement.decisions]
    assert len(npu.compiled) < 200
    assert "the compiler of npu crashed" in reasons[0]
    assert "which was not found in the 96 compilations of parts that are allowed" in reasons[-1]


def test_strict_makes_an_error_of_a_failure_to_compile() -> None:
    npu = DelegatingDevice(name="npu", fails=["TANH"])
    with pytest.raises(DeviceError, match="the compiler of npu crashed on TANH"):
        compile(
            chain(Relu, Tanh),
            [npu, DelegatingDevice(name="cpu")],
            placement=PlacementOptions(strict=True),
        )


def test_strict_makes_an_error_of_what_a_device_declines() -> None:
    npu = DelegatingDevice(name="npu", declines=["TANH"])
    with pytest.raises(UnsupportedError, match=r"tanh_0 \(TANH\) goes to cpu: npu: TANH: not"):
        compile(
            chain(Relu, Tanh),
            [npu, DelegatingDevice(name="cpu")],
            placement=PlacementOptions(strict=True),
        )
    assert npu.compiled == []


def test_one_line_tells_where_a_model_went(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "crosschip"), compile(chain(Relu), "reference"):
        assert [record.getMessage() for record in caplog.records] == [
            "net: 1 operations in 1 segments: reference runs 1"
        ]


def test_work_that_lands_on_the_reference_is_warned_of_once(warnings: Warnings) -> None:
    npu = DelegatingDevice(name="npu", declines=["TANH", "EXP"])
    with compile(chain(Relu, Tanh, Exp, Tanh), [npu, "reference"]):
        _, warning = warnings()
    assert warning == (
        "net: 3 operations run on `reference`, which is slow, the first of them tanh_0 "
        "(TANH: not implemented)"
    )


def test_work_that_the_caller_sends_to_the_reference_is_not_warned_of(warnings: Warnings) -> None:
    devices: list[str | Device] = [DelegatingDevice(name="npu"), "reference"]
    with compile(
        chain(Relu, Tanh), devices, placement=PlacementOptions(pin={"TANH": "reference"})
    ) as model:
        assert [d.device for d in model.placement.decisions] == ["npu", "reference"]
    assert warnings() == []


def test_a_part_that_fails_takes_its_whole_operation_with_it() -> None:
    npu = DelegatingDevice(name="npu", declines=["SWISH", "HARD_SWISH"], fails=["SIGMOID"])
    cpu = DelegatingDevice(name="cpu", declines=["RELU"])
    model = chain(Swish, Relu, HardSwish)
    with compile(model, [npu, cpu, DelegatingDevice(name="last")]) as compiled:
        close(compiled.run(x)["y0"], outputs_of(model, x)["y0"])
        assert [d.device for d in compiled.placement.decisions] == ["cpu", "npu", "npu"]
        assert compiled.placement.decisions[0].parts[0].type == "SWISH"


def test_a_device_that_always_fails_is_left_for_good() -> None:
    """Also for operations whose parts it would say yes to."""
    everything = ["SWISH", "SIGMOID", "MUL", "RELU", "CLIP", "HARD_SWISH", "HARD_SIGMOID"]
    npu = DelegatingDevice(name="npu", fails=everything)
    with compile(chain(Swish, Relu, HardSwish), [npu, DelegatingDevice(name="cpu")]) as model:
        assert {d.device for d in model.placement.decisions} == {"cpu"}
    assert len(npu.compiled) == 5  # all of it, then halves, then one by one


def test_only_the_segment_that_fails_goes_elsewhere() -> None:
    npu = DelegatingDevice(name="npu", declines=["TANH"], fails=["SIGMOID"])
    with compile(chain(Relu, Tanh, Sigmoid), [npu, DelegatingDevice(name="cpu")]) as model:
        assert [d.device for d in model.placement.decisions] == ["npu", "cpu", "cpu"]


def test_if_every_device_fails_the_message_says_what_each_said() -> None:
    devices = [DelegatingDevice(name=n, fails=["TANH"]) for n in ("npu", "cpu")]
    with pytest.raises(DeviceError) as caught:
        compile(chain(Tanh), devices)
    for name in ("npu", "cpu"):
        assert f"the compiler of {name} crashed on TANH" in str(caught.value)


def test_if_the_only_device_fails_its_message_is_ours() -> None:
    with pytest.raises(DeviceError, match="the compiler of npu crashed on TANH") as caught:
        compile(chain(Tanh), [DelegatingDevice(name="npu", fails=["TANH"])])
    assert isinstance(caught.value.__cause__, RuntimeError)


class Mute(DelegatingDevice):
    """Crashes when asked about TANH."""

    def supports(self, operation: Operation, options: Options) -> Support:
        if operation.type == "TANH":
            raise KeyError("tanh")
        return super().supports(operation, options)


def test_a_device_that_crashes_when_asked_declines() -> None:
    with compile(chain(Relu, Tanh), [Mute(name="npu"), DelegatingDevice(name="cpu")]) as model:
        relu, tanh = model.placement.decisions
    assert (relu.device, tanh.device) == ("npu", "cpu")
    assert tanh.reasons["npu"] == "TANH: npu: failed while answering: KeyError: 'tanh'"


class Together(DelegatingDevice):
    """Compiles only while another compilation is under way."""

    both = threading.Barrier(2, timeout=60)

    def compile(self, model: Model, options: Options) -> Program:
        self.both.wait()
        return super().compile(model, options)


def test_segments_are_compiled_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    devices = [Together(name="npu", declines=["TANH"]), Together(name="cpu")]
    with compile(chain(Relu, Tanh), devices) as model:
        assert len(model.placement.segments) == 2


class Closing(DelegatingDevice):
    """Counts its programs that are open."""

    open = 0

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)
        device = self

        class Closable(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

            def close(self) -> None:
                device.open -= 1

        self.open += 1
        return Closable()


def test_programs_of_a_failed_attempt_are_closed() -> None:
    npu = Closing(name="npu", declines=["TANH"])
    cpu = DelegatingDevice(name="cpu", fails=["TANH"])
    with compile(chain(Relu, Tanh), [npu, cpu, DelegatingDevice(name="last")]):
        assert npu.open == 1
        assert len(npu.compiled) == 2
    assert npu.open == 0
    with pytest.raises(DeviceError):
        compile(chain(Relu, Tanh), [npu, cpu])
    assert npu.open == 0


class Precise(DelegatingDevice):
    """Keeps the options it was called with."""

    def compile(self, model: Model, options: Options) -> Program:
        self.options = options
        return super().compile(model, Options())


def test_options_reach_the_device() -> None:
    device = Precise()
    compile(chain(Relu), [device], precision="bfloat16", threads=3)
    assert device.options == Options(Precision.BFLOAT16, 3)
