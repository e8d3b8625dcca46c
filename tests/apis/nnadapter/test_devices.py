"""NNAdapter's devices and contexts: names, facts, settings, and who runs what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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
from crosschip.apis.nnadapter.device import number_of
from crosschip.apis.nnadapter.drivers import DRIVERS, Settings
from crosschip.apis.results import Failure
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

    chips = {driver.device.partition(":")[0] for driver in DRIVERS.values() if driver.device}
    assert chips <= set(entries())


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


@pytest.mark.parametrize("name", ["intel_openvino", "openvino"])
def test_properties_of_paddle_lites_driver_of_openvino(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = context(name, properties="INTEL_OPENVINO_INFERENCE_NUM_THREADS=2")
    assert (made.names, made.threads, made.properties) == (("openvino",), 2, {})
    chosen = "INTEL_OPENVINO_SELECT_DEVICE_NAMES=CPU,GPU; INTEL_OPENVINO_INFERENCE_NUM_THREADS=0"
    made = context(name, properties=chosen)
    assert (made.names, made.threads) == (("openvino",), None)
    monkeypatch.setenv("INTEL_OPENVINO_INFERENCE_NUM_THREADS", "3")
    assert context(name).threads == 3
    device = given(NNAdapterDevice_acquire(name))
    answer = NNAdapterContext_create([device], "INTEL_OPENVINO_SELECT_DEVICE_NAMES=NoSuchChip")
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, "NoSuchChip")


def settings_by(driver: str, key: str, value: str) -> Settings:
    """What a property of a driver comes to."""
    settings = Settings()
    DRIVERS[driver].properties[key](f"{driver.upper()}_{key}", value, settings)
    return settings


def test_properties_of_drivers_whose_chips_are_seldom_here() -> None:
    for driver, key, value, precision in (
        ("nvidia_tensorrt", "PRECISION", "float16", "float16"),
        ("nvidia_tensorrt", "PRECISION", "float32", "float32"),
        ("qualcomm_qnn", "ENABLE_FP16", "true", "float16"),
        ("qualcomm_qnn", "ENABLE_FP16", "0", "float32"),
    ):
        assert settings_by(driver, key, value).precision == precision
    for driver, key, value in (
        ("nvidia_tensorrt", "DEVICE_TYPE", "GPU"),
        ("nvidia_tensorrt", "DEVICE_ID", "0"),
        ("qualcomm_qnn", "DEVICE_TYPE", "HTP"),
    ):
        assert settings_by(driver, key, value) == Settings()
    for driver, key, value, text in (
        ("nvidia_tensorrt", "PRECISION", "int8", "is quantized before it is compiled"),
        ("nvidia_tensorrt", "DEVICE_TYPE", "DLA", "does not drive DLA cores"),
        ("nvidia_tensorrt", "MAX_WORKSPACE_SIZE", "1048576", "leave it out"),
        ("qualcomm_qnn", "DEVICE_TYPE", "GPU", "must be HTP"),
        ("qualcomm_qnn", "ENABLE_FP16", "yes", "must be true, false"),
    ):
        with pytest.raises(Failure, match=f"^{driver.upper()}_{key} is .*{text}"):
            settings_by(driver, key, value)


ABSENT = [
    (name, f"{name.upper()}_{suffix}")
    for name, driver in DRIVERS.items()
    if not driver.device
    for suffix in driver.properties
]


@pytest.mark.parametrize(("name", "key"), ABSENT, ids=lambda text: text)
def test_properties_of_drivers_without_a_device_are_refused_by_name(name: str, key: str) -> None:
    device = given(NNAdapterDevice_acquire("builtin_device"))
    answer = NNAdapterContext_create([device], f"{key}=0")
    text = f"{key} is not taken: crosschip has no device for {DRIVERS[name].hardware}"
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, text)


@pytest.mark.parametrize("name", [name for name, d in DRIVERS.items() if not d.device])
def test_drivers_without_a_device_are_not_found_by_name(name: str) -> None:
    answer = NNAdapterDevice_acquire(name)
    text = f"{name} drives {DRIVERS[name].hardware}, for which crosschip has no device"
    wrong(answer, Code.NNADAPTER_DEVICE_NOT_FOUND, text)


def test_the_document_lists_every_property_of_every_driver() -> None:
    document = (Path(__file__).parents[3] / "docs" / "nnadapter.md").read_text()
    rows = {line.split("`")[1]: line for line in document.splitlines() if line.startswith("| `")}
    for name, driver in DRIVERS.items():
        assert f"| `{driver.device}` |" in rows[name] or not driver.device, name
        for suffix in driver.properties:
            assert f"`{suffix}`" in rows[name], f"{name}: {suffix}"


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
