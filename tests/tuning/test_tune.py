"""`crosschip.tune` on engines: what it chooses is within the bound, and is remembered."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tests.modelling import float32, model_of
from tests.progress.recorder import Recorder

import crosschip
from crosschip import Memory, tune
from crosschip.accuracy.error import error_of
from crosschip.ir import Array, Builder, ElementType, InputError, Model, Operand, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul
from crosschip.progress import observe
from crosschip.tuning.int8 import Quantizer
from crosschip.tuning.quantized_forms import QuantizedForms
from crosschip.tuning.search import Search
from crosschip.tuning.variants import LOW_BIT_FORMS, Form, Variant

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model() -> Model:
    random = np.random.default_rng(0)

    def make(b: Builder, x: Operand) -> Operand:
        for inner, outer in ((3, 16), (16, 16), (16, 8)):
            weight = random.standard_normal((outer, inner, 3, 3)).astype(np.float32)
            weight /= np.float32(np.sqrt(inner * 9))
            bias = random.standard_normal(outer).astype(np.float32)
            x = b.add(Relu, b.add(Conv2D, x, weight, bias, pads=(1, 1, 1, 1)))
        return x

    return model_of(make, float32(1, 3, 24, 24), name="net")


@pytest.fixture(scope="module")
def samples() -> list[Mapping[str, Array]]:
    random = np.random.default_rng(1)
    return [{"x0": random.standard_normal((1, 3, 24, 24)).astype(np.float32)} for _ in range(3)]


def exact(model: Model, samples: list[Mapping[str, Array]]) -> list[Mapping[str, Any]]:
    """What NumPy makes of them."""
    with crosschip.compile(model, "reference", cache=False) as reference:
        return [reference.run(sample) for sample in samples]


@pytest.mark.parametrize("accuracy", [1e-4, 1e-2, 1.0])
def test_the_choice_is_within_the_bound_as_measured_by_another(
    model: Model, samples: list[Mapping[str, Array]], accuracy: float
) -> None:
    found = tune(model, "openvino,onnxruntime", accuracy=accuracy, samples=samples, cache=False)
    with found.compiled:
        made = [found.compiled.run(sample) for sample in samples]
    assert error_of(made, exact(model, samples)) <= accuracy * 1.05 + 1e-5
    tried = {(t.variant.device, t.variant.precision, t.variant.calibration) for t in found.trials}
    for device in ("openvino", "onnxruntime"):
        assert {
            (device, "float32", ""), (device, "int8", "minmax"), (device, "int8", "percentile")
        } <= tried  # fmt: skip
    assert f"where {accuracy:g} is allowed" in str(found)
    speeds = {t.speed for t in found.trials if t.error is not None and t.error <= accuracy}
    assert found.chosen.speed == max(speed for speed in speeds if speed is not None)


@pytest.mark.parametrize("only", ["float32", "int8"])
def test_it_is_remembered(
    model: Model, samples: list[Mapping[str, Array]], only: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Memory()
    recorder = Recorder()

    def again(accuracy: float = 1.0, **changed: Any) -> bool:
        arguments: dict[str, Any] = {
            "samples": samples,
            "precisions": [only],
            "calibrations": ["minmax"],
        }
        with observe(recorder):
            found = tune(model, "openvino", accuracy=accuracy, cache=store, **(arguments | changed))
        with found.compiled:
            off = error_of([found.compiled.run(s) for s in samples], exact(model, samples))
            assert off <= accuracy
        return found.remembered

    assert not again()
    tried = len(recorder.details("tuning net"))
    assert tried
    assert again()
    assert len(recorder.details("tuning net")) == tried, "nothing was tried"
    assert not again(0.9)
    assert not again(samples=samples[:2])
    assert not again(configuration=crosschip.Configuration(threads=1))
    assert again()
    monkeypatch.setattr(onnxruntime, "__version__", "0.0.0")
    assert again() == (only != "int8"), "another version quantizes otherwise"


def test_a_quantized_form_is_quantized_but_for_what_stays(
    model: Model, samples: list[Mapping[str, Array]]
) -> None:
    quantizer = Quantizer(model)
    names = [o.name for o in model.operations if isinstance(o, Conv2D)]
    assert quantizer.quantizable == set(names)
    ranges = quantizer.ranges("minmax", samples)
    for left in ([], names[:1], names):
        made = quantizer.quantize(ranges, left)
        assert (list(made.inputs), list(made.outputs)) == (list(model.inputs), list(model.outputs))
        bytes_ = (ElementType.INT8, ElementType.UINT8)
        weights = [
            operand for operand in made.constants
            if operand.type.element_type in bytes_ and len(operand.type.shape or ()) == 4
        ]  # fmt: skip
        assert len(weights) == len(names) - len(left)


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_ranges_hold_what_was_seen(
    model: Model, samples: list[Mapping[str, Array]], method: str
) -> None:
    ranges = Quantizer(model).ranges(method, samples)
    low, high = next(bounds for name, bounds in ranges.items() if name.startswith("input"))
    seen = np.concatenate([sample["x0"].ravel() for sample in samples])
    assert seen.min() - 1e-6 <= low < 0 < high <= seen.max() + 1e-6
    if method == "minmax":
        assert (low, high) == (seen.min(), seen.max())


def test_the_quantizer_logs_nothing_and_leaves_the_root_logger_alone(
    samples: list[Mapping[str, Array]], caplog: pytest.LogCaptureFixture
) -> None:
    """Of a bias of one axis it says that a channel axis is out of range, on the root logger."""
    weight, bias = np.eye(24, dtype=np.float32), np.ones(24, np.float32)
    rows = model_of(lambda b, x: b.add(Add, b.add(MatMul, x, weight), bias), float32(1, 3, 24, 24))
    handlers, filters = list(logging.root.handlers), list(logging.root.filters)
    quantizer = Quantizer(rows)
    quantizer.quantize(quantizer.ranges("minmax", samples))
    assert [record.message for record in caplog.records if record.name == "root"] == []
    assert (logging.root.handlers, logging.root.filters) == (handlers, filters)


def test_each_form_is_tried_on_each_device_and_errors_are_those_of_the_form() -> None:
    random = np.random.default_rng(0)
    weights = [random.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(3)]

    def make(b: Builder, x: Operand) -> Operand:
        for weight in weights:
            x = b.add(Relu, b.add(MatMul, x, weight))
        return x

    model = model_of(make, float32(4, 64))
    samples = [{"x0": random.standard_normal((4, 64)).astype(np.float32)} for _ in range(2)]
    found = tune(
        model, "onnxruntime,openvino", accuracy=3e-2, samples=samples, precisions=["int8", "int4"],
        calibrations=["minmax"], cache=False,
    )  # fmt: skip
    found.compiled.close()
    trials = {
        (t.variant.device, t.variant.precision, t.variant.form): t
        for t in found.trials
        if not t.variant.exact
    }
    for device in ("onnxruntime", "openvino"):
        for precision, form in (*LOW_BIT_FORMS, ("int8", Form.STATIC)):
            trial = trials[device, precision, form]
            error = trial.error
            if error is None:  # oneDNN is held back from kernels that the processor has
                assert "ONEDNN_MAX_CPU_ISA" in os.environ, trial.reason
                continue
            # Without instructions for products of bytes, these saturate on some processors.
            assert 1e-4 < error < 0.3


@pytest.mark.parametrize("form", [Form.DYNAMIC, Form.BLOCKS])
def test_a_form_that_was_chosen_is_made_again_from_the_cache(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is fastest: no other variant is tried."""
    monkeypatch.setattr(
        QuantizedForms, "variants", lambda self, device: iter([Variant(device, "int8", form=form)])
    )
    # Speeds are of no matter here.
    monkeypatch.setattr(Search, "best", property(lambda self: self.trials[-1]))
    weight = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    rows = model_of(lambda b, x: b.add(MatMul, x, weight), float32(2, 32))
    samples, store = {"x0": np.ones((2, 32), np.float32)}, Memory()
    for remembered in (False, True):
        found = tune(
            rows, "onnxruntime", accuracy=1.0, samples=samples, calibrations=(), cache=store
        )
        with found.compiled:
            assert found.remembered is remembered
            assert found.chosen.variant.form is form
            made = found.compiled.run(samples)["y0"]
        assert 0 < error_of([{"y0": made}], [{"y0": samples["x0"] @ weight}]) < 3e-2


def test_what_has_no_products_is_not_quantized() -> None:
    whole = model_of(lambda b, x: b.add(Relu, x), float32(2, 3))
    sample = {"x0": np.zeros((2, 3), np.float32)}
    found = tune(whole, "onnxruntime", accuracy=0.0, samples=sample, cache=False)
    assert {trial.variant.precision for trial in found.trials} == {"float32"}
    found.compiled.close()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"accuracy": -1.0}, "accuracy is -1.0, but must be"),
        ({"accuracy": float("nan")}, "accuracy is nan"),
        ({"accuracy": "1e-2"}, "accuracy is '1e-2', but must be"),
        ({"precisions": ["int2"]}, "there is no precision 'int2'; there are: bfloat16, float16"),
        ({"calibrations": ["mean"]}, "there is no calibration 'mean'; there are: minmax"),
        ({"samples": []}, "there are no samples for net"),
    ],
)
def test_arguments_that_do_not_fit(
    model: Model, samples: list[Mapping[str, Array]], changed: dict[str, Any], told: str
) -> None:
    arguments: dict[str, Any] = {"accuracy": 1e-2, "samples": samples, **changed}
    with pytest.raises(InputError, match=told):
        tune(model, "openvino", cache=False, **arguments)


@pytest.mark.parametrize("device", ["openvino/bfloat16", "openvino/float16@driver"])
def test_devices_that_have_a_precision_are_refused(model: Model, device: str) -> None:
    with pytest.raises(InputError, match="has a precision already"):
        tune(model, [device], accuracy=1e-2, samples=[], cache=False)


def test_errors_are_told_against_float32_whatever_a_configuration_says(
    model: Model, samples: list[Mapping[str, Array]]
) -> None:
    configuration = crosschip.Configuration(precision="bfloat16", threads=1)
    found = tune(
        model, "openvino", accuracy=0.0, samples=samples, precisions=["bfloat16"],
        configuration=configuration, cache=False,
    )  # fmt: skip
    with found.compiled:
        made = [found.compiled.run(sample) for sample in samples]
    assert error_of(made, exact(model, samples)) <= 1e-5


def test_samples_of_several_sizes(samples: list[Mapping[str, Array]]) -> None:
    wide = model_of(lambda b, x: b.add(Relu, x), float32(1, symbol("C"), 24, symbol("W")))
    narrow = [{"x0": sample["x0"][:, :, :, : 8 * (i + 1)]} for i, sample in enumerate(samples)]
    found = tune(wide, "openvino,onnxruntime", accuracy=1e-2, samples=narrow, cache=False)
    with found.compiled:
        for sample in narrow:
            np.testing.assert_allclose(
                found.compiled.run(sample)["y0"], np.maximum(sample["x0"], 0), rtol=1e-2
            )


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy"])
def test_int8_of_samples_of_several_sizes(method: str) -> None:
    """Ranges are those of all samples, and the quantized form has any size."""
    random = np.random.default_rng(0)
    weight = random.uniform(0.1, 1, (16, 16)).astype(np.float32)
    rows = model_of(lambda b, x: b.add(MatMul, x, weight), float32(symbol("N"), 16))
    samples = [{"x0": random.uniform(0, n, (n, 16)).astype(np.float32)} for n in (2, 5, 9)]
    found = tune(
        rows, "onnxruntime", accuracy=0.1, samples=samples, precisions=["int8"],
        calibrations=[method], cache=False,
    )  # fmt: skip
    found.compiled.close()
    (trial,) = (trial for trial in found.trials if trial.variant.calibration == method)
    assert trial.error is not None
    assert trial.error < 0.1
    greatest = max(high for _, high in trial.variant.ranges.values())
    assert greatest > max(float((s["x0"] @ weight).max()) for s in samples) * 0.7


def test_instances_are_refused(model: Model) -> None:
    from crosschip.devices.openvino import OpenVinoDevice

    with OpenVinoDevice() as device, pytest.raises(InputError, match="give their names"):
        tune(model, [device], accuracy=1e-2, samples=[], cache=False)  # type: ignore[list-item]


def test_a_folder_of_samples(
    model: Model, samples: list[Mapping[str, Array]], tmp_path: Path
) -> None:
    for number, sample in enumerate(samples):
        np.save(tmp_path / f"{number}.npy", sample["x0"])
    found = tune(
        model, "openvino", accuracy=1.0, samples=tmp_path, precisions=["bfloat16"], cache=False
    )
    assert found.chosen.error is not None
    found.compiled.close()


def test_without_an_engine_it_says_what_to_install(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosschip.tuning.tuning.automatic", lambda: ["reference"])
    with pytest.raises(InputError, match=r'no engine .* pip install "crosschip\[onnxruntime\]"'):
        tune(model, accuracy=0.1)
