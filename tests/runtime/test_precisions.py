"""Devices that compute in a precision of their own, as in `openvino/bfloat16`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.precisions import is_refused

import crosschip
from crosschip import Builder, Model
from crosschip.devices.openvino import OpenVinoDevice
from crosschip.hal import Options, Precision, Program
from crosschip.ir import (
    Array,
    DeviceError,
    ElementType,
    InputError,
    TensorType,
    UnsupportedError,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.cache.key import cache_key
from crosschip.runtime.discovery import base_name, open_device, settings_of
from crosschip.runtime.guard.devices import GuardedDevice

BFLOAT16 = "openvino/bfloat16"


def product(width: int = 64) -> tuple[Model, Array]:
    """Two matrix products in a row, and an input."""
    random = np.random.default_rng(0)
    b = Builder("product")
    x = b.input("x", TensorType(ElementType.FLOAT32, (4, width)))
    first = b.add(MatMul, x, random.standard_normal((width, width)).astype(np.float32))
    made = b.add(MatMul, b.add(Relu, first), random.standard_normal((width, 8)).astype(np.float32))
    b.output("y", made)
    return b.build(), random.standard_normal((4, width)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["float32", "bfloat16"])
def test_it_is_what_the_whole_model_would_be(asked: str) -> None:
    model, x = product()
    if is_refused(
        "openvino", asked, lambda: crosschip.compile(model, f"openvino/{asked}", cache=False)
    ):
        return
    others = {"float32": "bfloat16", "bfloat16": "float32"}[asked]
    own = crosschip.compile(model, f"openvino/{asked}", precision=others, cache=False)
    whole = crosschip.compile(model, "openvino", precision=asked, cache=False)
    np.testing.assert_array_equal(own(x), whole(x))
    (told,) = own.placement.settings.values()
    assert told == whole.placement.settings["openvino"]


@pytest.mark.slow
def test_one_chip_in_two_precisions() -> None:
    model, x = product()
    last = model.operations[-1].name
    if is_refused("openvino", "bfloat16", lambda: crosschip.compile(model, BFLOAT16, cache=False)):
        return
    devices = [BFLOAT16, "openvino"]
    mixed = crosschip.compile(
        model, devices, placement=crosschip.PlacementOptions(pin={last: "openvino"}), cache=False
    )
    assert [segment.device for segment in mixed.placement.segments] == devices
    (between,) = mixed.placement.segments[0].outputs
    head = Model("head", model.inputs, model.operations[:2], {"y": between})
    rough, exact = (crosschip.compile(head, name, cache=False)(x) for name in devices)
    assert not np.array_equal(rough, exact)
    weight = model.operations[-1].inputs[1]
    assert weight is not None
    np.testing.assert_allclose(mixed(x), rough @ weight.value, rtol=1e-5, atol=1e-4)
    loaded = crosschip.load_compiled(mixed.to_bytes())
    np.testing.assert_array_equal(loaded(x), mixed(x))


@pytest.mark.slow
def test_a_device_in_a_process_of_its_own() -> None:
    model, x = product()
    if is_refused(
        "openvino",
        "bfloat16",
        lambda: crosschip.compile(
            model, BFLOAT16, placement=crosschip.PlacementOptions(isolate=True)
        ),
    ):
        return
    with crosschip.compile(
        model, BFLOAT16, placement=crosschip.PlacementOptions(isolate=True), cache=False
    ) as compiled:
        assert [s.device for s in compiled.placement.segments] == [f"{BFLOAT16}@driver"]
        here = crosschip.compile(model, BFLOAT16, cache=False)
        np.testing.assert_array_equal(compiled(x), here(x))


def test_what_it_does_not_offer_is_declined() -> None:
    model, _ = product()
    with pytest.raises(UnsupportedError, match="computes in float32, not in bfloat16"):
        crosschip.compile(model, "reference/bfloat16", cache=False)


def test_a_precision_that_there_is_not() -> None:
    with pytest.raises(InputError, match=r"'bfloat6' .did you mean 'bfloat16'.*there are: float32"):
        open_device("reference/bfloat6")
    with pytest.raises(DeviceError, match="there is no device 'npu'"):
        open_device("npu/bfloat16")


def test_settings_are_those_of_the_chip() -> None:
    assert base_name("npu:1/float16@unix:/run/npu.sock") == "npu:1"
    given = {"npu": {"cores": "2", "bus": "1"}, "npu/float16": {"cores": "1"}}
    assert settings_of("npu/float16", given) == {"cores": "1", "bus": "1"}
    assert settings_of("npu", given) == given["npu"]


@pytest.mark.slow
def test_programs_of_different_precisions_are_different_in_the_cache() -> None:
    model, _ = product()
    names = ["openvino", "openvino/float32", BFLOAT16]
    keys = {cache_key(model, open_device(name), Options()) for name in names}
    assert len(keys) == len(names)


@pytest.mark.slow
def test_options_reach_the_device_as_it_wishes() -> None:
    wishes: list[Options] = []

    class Told(OpenVinoDevice):
        def compile(self, model: Model, options: Options) -> Program:
            wishes.append(options)
            return super().compile(model, replace(options, precision=Precision.FLOAT32))

    with GuardedDevice(Told(), "told", Precision.BFLOAT16) as device:
        options = Options(threads=1)
        device.compile(product()[0], options).close()
    assert wishes == [replace(options, precision=Precision.BFLOAT16)]
