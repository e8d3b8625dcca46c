"""The search, on devices whose speeds and roundings are known."""

from __future__ import annotations

import time
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest
from tests.modelling import float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import YES, Device, Options, Precision, Program, Support
from crosschip.hal.device import single_operation_model
from crosschip.ir import Array, Builder, DeviceError, Model, Operand, Operation, UnsupportedError
from crosschip.ops.standard.activation import Sigmoid, Tanh
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.compiled import CompiledModel
from crosschip.tuning.quantized_forms import QuantizedForms
from crosschip.tuning.search import Search, Trial
from crosschip.tuning.variants import Variant

LAYERS, WIDTH = 16, 32
SECONDS = 4e-4
"""How long an operation takes in float32."""


class _Exact(ReferenceProgram):
    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._seconds = SECONDS * len(model.operations)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        time.sleep(self._seconds)
        return super().run(inputs)


class _Rough(ReferenceProgram):
    """Rounds what each operation reads."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._source = model
        self._parts = [(o, ReferenceProgram(single_operation_model(o))) for o in model.operations]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        known = dict(zip(self._source.inputs.values(), inputs, strict=True))
        for operation, program in self._parts:
            read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
            rounded = [known[o].astype(ml_dtypes.bfloat16).astype(np.float32) for o in read]
            known.update(zip(operation.outputs, program.run(rounded), strict=True))
        return [known[operand] for operand in self._source.outputs.values()]


class Exact(ReferenceDevice):
    """Slow, and right."""

    def compile(self, model: Model, options: Options) -> Program:
        return _Exact(model)


class Rough(ReferenceDevice):
    """Quick, and rounds what it reads."""

    def compile(self, model: Model, options: Options) -> Program:
        return _Rough(model)


class OnlyTanh(ReferenceDevice):
    """Runs one operator."""

    def supports(self, operation: Operation, options: Options) -> Support:
        return (
            YES if isinstance(operation, Tanh) else Support.no(operation, "x", "needs another chip")
        )


def network() -> Model:
    random = np.random.default_rng(0)

    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(LAYERS):
            weight = random.standard_normal((WIDTH, WIDTH)).astype(np.float32)
            weight /= np.float32(np.sqrt(WIDTH))
            x = b.add(Tanh, b.add(MatMul, x, weight))
        return x

    return model_of(make, float32(4, WIDTH))


def search(accuracy: float, offered: Sequence[Precision]) -> Search:
    model = network()
    random = np.random.default_rng(1)
    samples = [{"x0": random.standard_normal((4, WIDTH)).astype(np.float32)} for _ in range(2)]

    def compile(model: Model, variant: Variant) -> CompiledModel:
        if variant.precision == "float16":
            raise DeviceError("chip: is out of order")
        exact, rough = Exact(), Rough()
        exact.name, rough.name = "chip", "chip/bfloat16"
        made = {device.name: device for device in (exact, rough)}
        devices = [made[name] for name in variant.devices]
        return crosschip.compile(
            model, devices, placement=crosschip.PlacementOptions(pin=variant.pins), cache=False
        )

    return Search(
        model,
        {"chip": offered},
        accuracy,
        samples,
        compile,
        QuantizedForms(model),
        lambda what: None,
    )


BOTH = (Precision.FLOAT32, Precision.BFLOAT16)


def test_what_is_close_enough_as_a_whole_is_chosen() -> None:
    looking = search(1.0, BOTH)
    chosen = looking.run()
    assert chosen.variant == Variant("chip", "bfloat16")
    assert chosen.speed is not None
    assert chosen.speed > 2
    assert [trial.variant.precision for trial in looking.trials] == ["float32", "bfloat16"]


def test_no_error_allowed_is_float32() -> None:
    chosen = search(0.0, BOTH).run()
    assert (chosen.variant, chosen.error) == (Variant("chip"), 0.0)


def test_between_the_two_is_a_mixture() -> None:
    looking = search(1.0, BOTH)
    whole = looking.run()
    assert whole.error is not None
    looking = search(whole.error * 0.7, BOTH)
    chosen = looking.run()
    assert chosen.error is not None
    assert 0 < chosen.error <= whole.error * 0.7
    assert chosen.variant.precision == "bfloat16"
    assert 0 < len(chosen.variant.exact) < 2 * LAYERS
    assert chosen.speed is not None
    assert chosen.speed > 1


def test_what_does_not_run_is_told() -> None:
    looking = search(1.0, (*BOTH, Precision.FLOAT16))
    looking.run()
    (failed,) = (trial for trial in looking.trials if trial.reason)
    assert (failed.variant.precision, failed.reason) == ("float16", "chip: is out of order")


class Spaced(ReferenceDevice):
    """Makes sigmoids by way of numbers near 1: they are off by a spacing of these."""

    def compile(self, model: Model, options: Options) -> Program:
        class Off(ReferenceProgram):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return [np.asarray(y + np.float32(1.5e-7)) for y in super().run(inputs)]

        return Off(model)


@pytest.mark.parametrize("shift", [-11.7, 0.0])
def test_differences_that_rounding_explains_are_no_error_in_float32(
    shift: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Outputs of 8e-6 with differences of 1.5e-7."""
    model = model_of(lambda b, x: b.add(Sigmoid, x), float32(2, 3), name="det")
    samples = [{"x0": np.full((2, 3), shift, np.float32)}]
    devices: dict[str, type[Device]] = {"exact": ReferenceDevice, "spaced": Spaced}

    def compile(model: Model, variant: Variant) -> CompiledModel:
        device = devices[variant.device]()
        device.name = variant.device
        return crosschip.compile(model, [device], cache=False)

    offered = dict.fromkeys(devices, (Precision.FLOAT32,))
    looking = Search(
        model, offered, 1e-2, samples, compile, QuantizedForms(model), lambda what: None
    )
    looking.run()
    errors = [trial.error for trial in looking.trials]
    assert all(error is not None and error < 1e-6 for error in errors)
    assert "which of them is wrong" not in caplog.text


def test_a_device_without_float32_is_told_in_one_short_line() -> None:
    """The error about all operations of a model is a table of them."""
    model = network()
    with pytest.raises(UnsupportedError) as caught:
        crosschip.compile(model, [OnlyTanh()], cache=False)
    trial = Trial(Variant("onlytanh"), reason=str(caught.value))
    assert len(trial.reason.splitlines()) > 1
    assert trial.short_reason == "MAT_MUL.x: needs another chip"


@pytest.mark.parametrize(
    ("reason", "short"),
    [
        ("", ""),
        ("chip: is out of order", "chip: is out of order"),
        ("net: fails\n  3 x chip: ADD: no\n  2 x chip: MUL: no", "ADD: no (and others)"),
        ("word " * 100, "word " * 23 + "word…"),
    ],
)
def test_reasons_in_one_line(reason: str, short: str) -> None:
    assert Trial(Variant("chip"), reason=reason).short_reason == short


def test_a_device_that_fails_later_is_left_out_and_one_that_is_far_off_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The second sample is too much for one; another is no float32 at all."""

    class Fails(_Exact):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            self.runs = getattr(self, "runs", 0) + 1
            if self.runs == 2:
                raise RuntimeError("is on fire")
            return super().run(inputs)

    class Failing(ReferenceDevice):
        def compile(self, model: Model, options: Options) -> Program:
            return Fails(model)

    looking = search(1.0, BOTH)
    looking.offered = dict.fromkeys(("failing", "rough", "exact"), (Precision.FLOAT32,))
    devices = {"failing": Failing, "rough": Rough, "exact": Exact}

    def compile(model: Model, variant: Variant) -> CompiledModel:
        device = devices[variant.device]()
        device.name = variant.device
        return crosschip.compile(looking.model, [device], cache=False)

    looking.compile = compile
    looking.run()
    told = {trial.variant.device: trial for trial in looking.trials}
    assert "is on fire" in told["failing"].reason
    assert told["exact"].reason == told["rough"].reason == ""
    (warning,) = (record.message for record in caplog.records if record.levelname == "WARNING")
    assert "the error of exact against rough" in warning


def test_no_device_runs_it() -> None:
    looking = search(1.0, BOTH)

    def compile(model: Model, variant: Variant) -> CompiledModel:
        raise DeviceError(f"{variant.device}: is gone")

    looking.compile = compile
    with pytest.raises(DeviceError, match="chip: is gone"):
        looking.run()
