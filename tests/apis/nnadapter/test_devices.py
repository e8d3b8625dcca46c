"""NNAdapter's devices and contexts: names, facts, settings, and who runs what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import (
    INT32,
    Code,
    Op,
    Type,
    add,
    compilation,
    constant,
    context,
    finish,
    float32,
    given,
    new,
    operand,
    run,
    wrong,
)

from crosschip.apis.nnadapter import (
    NNAdapter_getDeviceCount,
    NNAdapter_getVersion,
    NNAdapterCompilation_create,
    NNAdapterCompilation_finish,
    NNAdapterContext_create,
    NNAdapterDevice_acquire,
    NNAdapterDevice_getName,
    NNAdapterDevice_getType,
    NNAdapterDevice_getVendor,
    NNAdapterDevice_getVersion,
    NNAdapterDeviceCode,
    NNAdapterModel,
    NNAdapterModel_getSupportedOperations,
)
from crosschip.apis.nnadapter.device import NAMES, number_of
from crosschip.runtime.discovery import list_devices


def test_version() -> None:
    assert given(NNAdapter_getVersion()) == 1


def test_devices_are_counted() -> None:
    available = [report for report in list_devices() if report.available]
    assert given(NNAdapter_getDeviceCount()) == len(available) > 0


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("builtin_device", "crosschip"), ("reference", "crosschip"), ("fake_device", "crosschip")],
)
def test_a_device_says_what_it_is(name: str, vendor: str) -> None:
    device = given(NNAdapterDevice_acquire(name))
    assert given(NNAdapterDevice_getName(device)) == name
    assert given(NNAdapterDevice_getVendor(device)) == vendor
    assert given(NNAdapterDevice_getType(device)) is NNAdapterDeviceCode.NNADAPTER_CPU
    assert given(NNAdapterDevice_getVersion(device)) >= 0


@pytest.mark.parametrize(("name", "vendor"), [("intel_openvino", "Intel"), ("openvino", "Intel")])
def test_nnadapters_names_stand_for_devices(name: str, vendor: str) -> None:
    device = given(NNAdapterDevice_acquire(name))
    assert given(NNAdapterDevice_getVendor(device)) == vendor
    assert given(NNAdapterDevice_getVersion(device)) > 20000000


def test_every_name_of_nnadapters_is_known() -> None:
    from crosschip.runtime.discovery import entries

    assert {name.partition(":")[0] for name in NAMES.values()} <= set(entries())


@pytest.mark.parametrize("name", ["huawei_kirin_npu", "no such device", "openvino:NPU9"])
def test_a_device_that_is_not_here(name: str) -> None:
    wrong(NNAdapterDevice_acquire(name), Code.NNADAPTER_DEVICE_NOT_FOUND, "device")


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("2026.4.1-22982-e213", 20260401),
        ("0.3.0", 300),
        ("7", 70000),
        ("", 0),
        ("1.250.3", 19903),
        ("99999999999", 2**31 - 1),
    ],
)
def test_versions_are_numbers(version: str, number: int) -> None:
    assert number_of(version) == number


def test_settings_go_to_the_devices_that_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = context(
        *("google_xnnpack", "builtin_device"),
        properties="ONNXRUNTIME_SPINNING=0; GOOGLE_XNNPACK_NUM_THREADS=2;HUAWEI_NPU_CORES=1;",
    )
    assert made.names == ("onnxruntime", "reference")
    assert made.properties == {"onnxruntime": {"spinning": "0"}}
    assert made.threads == 2
    monkeypatch.setenv("BUILTIN_DEVICE_NUM_THREADS", "3")
    assert context("builtin_device").threads == 3
    assert context("builtin_device", properties="BUILTIN_DEVICE_NUM_THREADS=0").threads is None


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ("THREADS", "KEY=VALUE"),
        ("A=", "KEY=VALUE"),
        ("=1", "KEY=VALUE"),
        ("BUILTIN_DEVICE_NUM_THREADS=many", "must be a number"),
        ("BUILTIN_DEVICE_CORES=2", "no property 'cores'"),
        (b"A=1", "must be text"),
    ],
)
def test_settings_that_do_not_fit(properties: Any, text: str) -> None:
    device = given(NNAdapterDevice_acquire("builtin_device"))
    answer = NNAdapterContext_create([device], properties, None)
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, text)


def test_devices_of_a_context_are_different() -> None:
    twice = [given(NNAdapterDevice_acquire(name)) for name in ("builtin_device", "reference")]
    wrong(NNAdapterContext_create(twice), Code.NNADAPTER_INVALID_PARAMETER, "given twice")


def test_a_context_keeps_its_callback() -> None:
    device = given(NNAdapterDevice_acquire("builtin_device"))

    def callback(event: int, user_data: object) -> int:
        return 0

    assert given(NNAdapterContext_create([device], None, callback)).callback is callback
    answer = NNAdapterContext_create([device], None, 5)  # type: ignore[arg-type]
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, "callback")


def detector() -> NNAdapterModel:
    """RELU, then NON_MAX_SUPPRESSION, which one device runs and another does not."""
    model = new()
    scores, boxes = float32(model, 1, 2, 3), float32(model, 1, 3, 4)
    clean, found, count, unmade = float32(model), float32(model), operand(model, Type(INT32)), None
    add(model, Op.NNADAPTER_RELU, [scores], clean)
    numbers = [-1, 0.1, -1, 0.5, 1.0, -1, True, False]
    parameters = [constant(model, number) for number in numbers]
    unmade = operand(model, Type(INT32))
    add(
        *(model, Op.NNADAPTER_NON_MAX_SUPPRESSION, [boxes, clean, None, *parameters]),
        *(found, count, unmade),
    )
    return finish(model, [boxes, scores], found, count)


BOXES = np.array([[[0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]]], np.float32)
SCORES = np.array([[[0.9, 0.8, -0.3], [0.05, 0.0, 0.7]]], np.float32)


@pytest.mark.parametrize(
    ("devices", "supported"),
    [
        (("google_xnnpack",), [True, False]),
        (("builtin_device",), [True, True]),
        (("google_xnnpack", "builtin_device"), [True, True]),
    ],
)
def test_supported_operations(devices: Sequence[str], supported: Sequence[bool]) -> None:
    answer = NNAdapterModel_getSupportedOperations(detector(), context(*devices))
    assert given(answer) == supported


def test_what_no_device_runs_is_refused() -> None:
    made = given(
        NNAdapterCompilation_create(detector(), None, None, None, context("google_xnnpack"))
    )
    answer = NNAdapterCompilation_finish(made)
    wrong(answer, Code.NNADAPTER_FEATURE_NOT_SUPPORTED, "NON_MAX_SUPPRESSION")


def test_operations_go_to_the_first_device_that_runs_them() -> None:
    made = compilation(detector(), "google_xnnpack", "builtin_device")
    assert made.compiled is not None
    places = {d.type: d.device for d in made.compiled.model.placement.decisions}
    assert places == {"RELU": "onnxruntime", "NON_MAX_SUPPRESSION": "reference"}
    found, count = run(made, [BOXES, SCORES])
    expected = [[0, 0.9, 0, 0, 2, 2], [1, 0.7, 5, 5, 6, 6]]
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    np.testing.assert_array_equal(count, [2])
    assert count.dtype == np.int32
