"""Options, values, enumerations and providers are ONNX Runtime's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxruntime.capi.onnxruntime_inference_collection import check_and_normalize_provider_args
from tests.apis.onnxruntime.models import SUM, model

from crosschip.apis import onnxruntime as ours
from crosschip.apis.onnxruntime.providers import (
    check_and_normalize_provider_args as ours_check,
)


def _value(value: object) -> object:
    return str(value) if hasattr(value, "name") else value


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_have_the_same_defaults(kind: str) -> None:
    theirs, options = getattr(onnxruntime, kind)(), getattr(ours, kind)()
    for name in dir(theirs):
        if not name.startswith("_") and not callable(getattr(theirs, name)):
            assert _value(getattr(options, name)) == _value(getattr(theirs, name)), name


@pytest.mark.parametrize(
    "kind", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder", "OrtMemType",
             "OrtAllocatorType", "OrtSparseFormat"],
)  # fmt: skip
def test_enumerations_have_the_same_members(kind: str) -> None:
    members = {name: int(value) for name, value in getattr(onnxruntime, kind).__members__.items()}
    assert {n: int(v) for n, v in getattr(ours, kind).__members__.items()} == members


def test_exceptions_have_the_same_names() -> None:
    state = onnxruntime.capi.onnxruntime_pybind11_state
    theirs = {
        name
        for name, value in vars(state).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert theirs <= set(ours.errors.CLASSES)


_PROVIDERS = st.sampled_from(["CPUExecutionProvider", "CUDAExecutionProvider", "NoProvider"])
_PAIRS = st.tuples(_PROVIDERS, st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 2)))


@settings(max_examples=80)
@given(
    providers=st.one_of(
        st.none(), st.just(5), st.lists(st.one_of(_PROVIDERS, _PAIRS, st.just(3)), max_size=3)
    ),
    options=st.one_of(
        st.none(), st.just(4),
        st.lists(st.one_of(st.dictionaries(st.just("c"), st.just(1)), st.just(2)), max_size=3),
    ),
)  # fmt: skip
def test_providers_are_checked_alike(providers: Any, options: Any) -> None:
    available = ["CUDAExecutionProvider", "CPUExecutionProvider"]

    def result(check: Any) -> Any:
        try:
            with pytest.warns() if _warns(providers, options) else _nothing():
                return check(providers, options, available)
        except ValueError as error:
            return str(error)

    assert result(ours_check) == result(check_and_normalize_provider_args)


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


def _warns(providers: Any, options: Any) -> bool:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            available = ["CUDAExecutionProvider", "CPUExecutionProvider"]
            check_and_normalize_provider_args(providers, options, available)
        except ValueError:
            return False
    return bool(caught)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference", "auto"])
def test_devices_are_providers(device: str) -> None:
    session = ours.InferenceSession(model(SUM), providers=[device])
    assert session.get_providers() == [device, "CPUExecutionProvider"]
    if device != "auto":
        assert {s.device for s in session.compiled.placement.segments} == {device}
    [total] = session.run(["z"], {name: np.ones((2, 3), np.float32) for name in "xy"})
    np.testing.assert_array_equal(total, np.full((2, 3), 2, np.float32))


def test_auto_answers_from_the_first_device_and_measures_on_the_inputs_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path))
    session = ours.InferenceSession(model(SUM), providers=["auto"])
    feed = {name: np.ones((2, 3), np.float32) for name in "xy"}
    binding = session.io_binding()
    target = ours.OrtValue.ortvalue_from_numpy(np.zeros((2, 3), np.float32))
    binding.bind_cpu_input("x", feed["x"])
    binding.bind_cpu_input("y", feed["y"])
    binding.bind_ortvalue_output("z", target)
    answers: list[np.ndarray] = []
    ended = threading.Event()

    def finish(outputs: list[np.ndarray], *_: object) -> None:
        answers.extend(outputs)
        ended.set()

    for wait in (False, True):
        if wait:
            assert session.compiled.wait_for_trials(60)
        answers += session.run(["z"], feed)
        answers += session.run(["z"], feed, ours.RunOptions())
        session.run_with_iobinding(binding)
        answers.append(target.numpy().copy())
        ended.clear()
        session.run_async(["z"], feed, finish, None)
        assert ended.wait(60)
    np.testing.assert_array_equal(answers, np.full((8, 2, 3), 2, np.float32))
    choice = session.compiled.report.choice
    assert choice is not None
    assert choice.on_calls
    session.compiled.close()


def test_openvinos_provider_is_the_device_openvino() -> None:
    assert "OpenVINOExecutionProvider" in ours.get_available_providers()
    session = ours.InferenceSession(
        model(SUM), providers=[("OpenVINOExecutionProvider", {"device_type": "CPU_FP32"})]
    )
    assert {s.device for s in session.compiled.placement.segments} == {"openvino"}
    session.set_providers(["CPUExecutionProvider"])
    assert {s.device for s in session.compiled.placement.segments} == {"onnxruntime"}
    with pytest.raises(RuntimeError, match="Unknown Provider Type: Nothing"), pytest.warns():
        session.set_providers(["Nothing"])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_, np.uint8])
def test_values_say_the_same_of_themselves(dtype: type) -> None:
    array: np.ndarray = np.arange(6).reshape(2, 3).astype(dtype)
    one = ours.OrtValue.ortvalue_from_numpy(array)
    other = onnxruntime.OrtValue.ortvalue_from_numpy(array)
    for method in ("shape", "data_type", "element_type", "tensor_size_in_bytes", "device_name",
                   "is_tensor", "is_sparse_tensor", "is_tensor_sequence", "has_value"):  # fmt: skip
        assert getattr(one, method)() == getattr(other, method)(), method
    np.testing.assert_array_equal(one.numpy(), other.numpy())
    for value in (one, other):
        value.update_inplace(np.zeros((2, 3), dtype))
        assert not value.numpy().any()


def test_memory_of_other_devices_is_refused() -> None:
    with pytest.raises(ours.errors.NotImplemented, match="host memory"):
        ours.OrtValue.ortvalue_from_numpy(np.ones(3), "cuda", 0)


def test_entries_of_the_configuration() -> None:
    for kind in (ours.SessionOptions, onnxruntime.SessionOptions):
        options = kind()
        options.add_session_config_entry("key", "value")
        assert options.get_session_config_entry("key") == "value"
        with pytest.raises(RuntimeError, match="other"):
            options.get_session_config_entry("other")
        with pytest.raises(RuntimeError, match="key"):
            options.add_session_config_entry("k" * 2000, "value")


@pytest.mark.parametrize(
    ("name", "value"),
    [("nothing", 1), ("intra_op_num_threads", "4"), ("graph_optimization_level", 99)],
)
def test_options_that_do_not_exist_and_values_of_other_types(name: str, value: Any) -> None:
    def kind(options: Any) -> str:
        with pytest.raises((AttributeError, TypeError)) as info:
            setattr(options, name, value)
        return info.type.__name__

    assert kind(ours.SessionOptions()) == kind(onnxruntime.SessionOptions())


@pytest.mark.parametrize("kind", ["cpu", "cuda", "dml", "cann", "webgpu", "gpu", "npu"])
def test_descriptions_of_devices(kind: str) -> None:
    devices = [api.OrtDevice.make(kind, 1) for api in (ours, onnxruntime)]
    for method in ("device_type", "device_id", "device_mem_type", "device_vendor_id"):
        one, other = (getattr(device, method)() for device in devices)
        assert one == other, method


def test_modules_of_the_package_capi() -> None:
    from crosschip.apis.onnxruntime.capi import _pybind_state
    from crosschip.apis.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

    assert InvalidArgument is ours.capi.onnxruntime_pybind11_state.InvalidArgument
    assert _pybind_state.OrtValue is ours.OrtValue
    with pytest.raises(AttributeError, match="nothing"):
        _ = _pybind_state.nothing
