"""Other execution providers of ONNX Runtime as instances, which run a segment as a whole."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import crosschip as cc
from crosschip.devices.onnxruntime import OnnxRuntimeDevice, compiling, program, providers
from crosschip.devices.onnxruntime.providers import PROVIDERS, Provider
from crosschip.devices.onnxruntime.session import provider_session, quiet_options, require
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import CompileError, Kind, Options, Rule
from crosschip.ir import Builder, DeviceError, ElementType, If, Model, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.discovery import open_device

AZURE = Provider(name="AzureExecutionProvider", kind=Kind.GPU, description="runs nothing here")
"""In every ONNX Runtime from the package registry; takes only nodes that call a service."""

PROCESSOR = Provider(name="CPUExecutionProvider", kind=Kind.CPU, description="runs everything")


def network() -> Model:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    weight = np.arange(600, dtype=np.float32).reshape(200, 1, 3)
    b.output("y", b.add(Add, b.add(Relu, x, name="relu"), weight, name="add"))
    return b.build()


def test_the_processor_comes_first_and_has_a_name() -> None:
    first, *others = OnnxRuntimeDevice.probe()
    assert (first.name, first.kind, first.problem) == ("CPU", Kind.CPU, "")
    assert {other.name for other in others} <= set(PROVIDERS)
    x = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    (expected,) = ReferenceDevice().compile(network(), Options()).run([x])
    with cc.compile(network(), devices=["onnxruntime:CPU"]) as compiled:
        np.testing.assert_array_equal(compiled(x), expected)


def test_only_what_is_installed_is_an_instance() -> None:
    """The test environment has the processor's provider and Azure's."""
    assert "AzureExecutionProvider" in onnxruntime.get_available_providers()
    present = {instance.name for instance in OnnxRuntimeDevice.probe()}
    assert "CUDA" not in present
    with pytest.raises(DeviceError, match=r"no device 'onnxruntime:CUDA'.*; there are:.*CPU"):
        open_device("onnxruntime:CUDA")


@pytest.mark.parametrize("name", ["CUDA", "Abacus"])
def test_an_instance_that_is_not_there_does_not_open(name: str) -> None:
    why = "is not installed" if name in PROVIDERS else "no execution provider is called 'Abacus'"
    with pytest.raises(DeviceError, match=why):
        OnnxRuntimeDevice({}, name)


def test_what_a_provider_leaves_to_the_processor_is_refused_by_name() -> None:
    with pytest.raises(CompileError, match="AzureExecutionProvider does not run Add, Relu") as e:
        compiling.compile(network(), Options(), spinning=True, provider=AZURE)
    assert e.value.operations == {"relu", "add"}
    with pytest.raises(DeviceError, match="does not run Relu"):
        require(AZURE)


def test_what_a_provider_runs_is_right_and_loads_again() -> None:
    x = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    (expected,) = ReferenceDevice().compile(network(), Options()).run([x])
    made = compiling.compile(network(), Options(), spinning=True, provider=PROCESSOR)
    saved = made.save()
    loaded = program.load(saved, network(), Options(), spinning=True, provider=PROCESSOR)
    for each in (made, loaded):
        np.testing.assert_array_equal(each.run([x])[0], expected)


def test_a_model_that_onnx_runtime_refuses_says_so() -> None:
    with pytest.raises(DeviceError, match="onnxruntime failed to compile"):
        provider_session(b"no model", quiet_options(), PROCESSOR)


def test_control_flow_stays_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROVIDERS, "Other", PROCESSOR)
    b = Builder()
    condition = b.input("condition", TensorType(ElementType.BOOL, ()))
    x = b.input("x", TensorType(ElementType.FLOAT32, (2,)))
    inner = Builder()
    value = inner.input("value", TensorType(ElementType.FLOAT32, (2,)))
    inner.output("result", inner.add(Relu, value))
    body = inner.build()
    choice = If.of("if", condition, [x], [body, body])
    answer = OnnxRuntimeDevice({}, "Other").supports(choice, Options())
    assert not answer
    assert answer.rule is Rule.OPERATOR
    assert answer.reason == "IF: is not given to CPUExecutionProvider"


@pytest.mark.skipif(sys.platform != "linux", reason="drivers are looked for on Linux alone")
def test_a_chip_without_its_driver_says_so(tmp_path: Path) -> None:
    missing = Provider(name="X", kind=Kind.GPU, description="", driver="proc/driver/nowhere")
    assert missing.problem == "its driver is not installed: there is no /proc/driver/nowhere"
    there = Provider(name="X", kind=Kind.GPU, description="", driver="proc/self")
    assert there.problem == ""


def test_a_provider_that_would_compute_in_less_than_float32_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounding = Provider(
        name="X", kind=Kind.GPU, description="", environment={"CROSSCHIP_TEST_TF32": "0"}
    )
    assert "less than float32; set CROSSCHIP_TEST_TF32=0" in rounding.problem
    monkeypatch.setenv("CROSSCHIP_TEST_TF32", "0")
    assert rounding.problem == ""


def test_providers_are_found_by_file_and_by_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(library: str = "", package: str = "", plugin: str = "") -> bool:
        return Provider(
            name="X", kind=Kind.GPU, description="", library=library, package=package, plugin=plugin
        ).installed

    assert installed(library="shared")  # libonnxruntime_providers_shared, there in every wheel
    assert not installed(library="abacus")
    assert installed(package="onnx")
    assert not installed(package="onnxruntime-abacus")
    assert installed(plugin="onnx")
    assert not installed(plugin="onnxruntime_abacus")
    assert not installed()
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["X"])
    assert installed()


def test_a_plugin_without_a_library_does_not_load() -> None:
    broken = Provider(name="X", kind=Kind.GPU, description="", plugin="json")
    with pytest.raises(DeviceError, match="onnxruntime does not load json: module 'json' has no"):
        require(broken)


def test_every_provider_is_one_of_onnx_runtimes() -> None:
    assert {each.name for each in providers.PROVIDERS.values()} <= {
        *onnxruntime.get_all_providers()
    }
