"""Sessions give the answers of ONNX Runtime's."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.onnxruntime.models import (
    BRANCHES,
    DEFAULT,
    PAIR,
    SEQUENCES,
    STRINGS,
    SUM,
    TYPES,
    both,
    model,
    outcome,
)

from crosschip.apis import onnxruntime as ours


def _same(one: Any, other: Any) -> None:
    assert type(one) is type(other), (one, other)
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            _same(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("text", [SUM, DEFAULT, STRINGS, BRANCHES, SEQUENCES])
def test_models_are_described_alike(text: str) -> None:
    session, real = both(text)
    for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        described = [(a.name, a.type, a.shape) for a in getattr(session, method)()]
        assert described == [(a.name, a.type, a.shape) for a in getattr(real, method)()]


def test_metadata_are_those_of_the_file(tmp_path: Path) -> None:
    import onnx

    proto = onnx.load_from_string(model(SUM))
    proto.producer_name, proto.domain, proto.model_version = "maker", "org.example", 7
    proto.doc_string, proto.graph.doc_string = "whole", "part"
    entry = proto.metadata_props.add()
    entry.key, entry.value = "labels", "cat\ndog"
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    one = ours.InferenceSession(path).get_modelmeta()
    other = onnxruntime.InferenceSession(str(path)).get_modelmeta()
    for name in vars(one):
        assert getattr(one, name) == getattr(other, name), name


_ARRAYS = st.builds(
    lambda dtype, shape, seed: np.random.default_rng(seed).integers(0, 9, shape).astype(dtype),
    st.sampled_from([*TYPES.values(), np.bool_]),
    st.sampled_from([(2, 3), (1, 3), (0, 3), (3,), (2, 4), (2, 3, 1), ()]),
    st.integers(0, 99),
)


@settings(max_examples=60)
@given(
    feed=st.dictionaries(st.sampled_from(["x", "y", "z", "other"]), _ARRAYS, max_size=3),
    names=st.one_of(
        st.none(), st.lists(st.sampled_from(["z", "w", "x", "no"]), max_size=3, unique=True)
    ),
)
def test_any_call_ends_alike(feed: dict[str, np.ndarray], names: list[str] | None) -> None:
    _same(outcome(_sums()[0], names, feed), outcome(_sums()[1], names, feed))


@settings(max_examples=30)
@given(
    rows=st.integers(0, 5), strided=st.booleans(), as_value=st.booleans(), seed=st.integers(0, 99)
)
def test_right_calls_give_the_same(rows: int, strided: bool, as_value: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    feed = {name: generator.normal(size=(rows, 3)).astype(np.float32) for name in "xy"}
    expected = _sums()[1].run(None, feed)
    if strided:
        feed = {name: np.asfortranarray(array) for name, array in feed.items()}
    values = {name: ours.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
    _same(_sums()[0].run(None, values if as_value else feed), expected)
    results = _sums()[0].run_with_ort_values(["w", "z"], values)
    _same([result.numpy() for result in results], expected[::-1])


_cached: list[tuple[Any, Any]] = []


def _sums() -> tuple[Any, Any]:
    if not _cached:
        _cached.append(both(SUM))
    return _cached[0]


@pytest.mark.parametrize("dtype", ["U", "O", "S4", "V4"])
def test_texts_come_in_any_form(dtype: str) -> None:
    session, _ = both(STRINGS)
    texts = np.array([b"some", b"text"] if dtype in ("S4", "V4") else ["some", "text"], dtype)
    _same(session.run(None, {"x": texts}), [np.array(["some", "text"], object)])


@pytest.mark.parametrize("condition", [True, False])
def test_branches_and_sequences(condition: bool) -> None:
    session, real = both(BRANCHES)
    feed = {"c": np.array(condition), "x": np.array([1, -2, 3])}
    _same(session.run(None, feed), real.run(None, feed))
    session, real = both(SEQUENCES)
    feed = {"x": np.ones(2, np.float32), "y": np.zeros(2, np.float32)}
    _same(session.run(None, feed), real.run(None, feed))


def test_an_initializer_is_overridden_in_a_run_or_by_the_options() -> None:
    session, real = both(DEFAULT)
    x, b = np.ones((2, 3), np.float32), np.array([7, 8, 9], np.float32)
    _same(session.run(None, {"x": x}), real.run(None, {"x": x}))
    _same(session.run(None, {"x": x, "b": b}), real.run(None, {"x": x, "b": b}))
    _same(session.run(None, {"x": x}), real.run(None, {"x": x}))
    options = ours.SessionOptions()
    options.add_initializer("b", ours.OrtValue.ortvalue_from_numpy(b))
    session = ours.InferenceSession(model(DEFAULT), options)
    _same(session.run(None, {"x": x}), real.run(None, {"x": x, "b": b}))
    options.add_initializer("nothing", ours.OrtValue.ortvalue_from_numpy(b))
    with pytest.raises(ours.errors.Fail, match="nothing"):
        ours.InferenceSession(model(DEFAULT), options)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_overriding_goes_with_options_and_other_devices(device: str) -> None:
    text = """g (float[N,3] x, float[3] b, float[3] c) => (float[N,3] y)
        <float[3] b = {1.0, 2.0, 3.0}, float[3] c = {1.0, 1.0, 1.0}> {
        s = Add(x, b)
        y = Mul(s, c)
    }"""
    options = ours.SessionOptions()
    b, c = np.array([7, 8, 9], np.float32), np.array([2, 3, 4], np.float32)
    options.add_initializer("b", ours.OrtValue.ortvalue_from_numpy(b))
    session = ours.InferenceSession(model(text), options)
    for rows in (2, 0, 5):
        x = np.ones((rows, 3), np.float32)
        for overridden in ({}, {"c": c}):
            expected = both(text)[1].run(None, {"x": x, "b": b, **overridden})
            _same(session.run(None, {"x": x, **overridden}), expected)
        session.set_providers([device])
    compiled = session._compiled_with_inputs(frozenset(["c"]))
    assert {segment.device for segment in compiled.placement.segments} == {device}


@pytest.mark.parametrize(
    ("entries", "is_right"),
    [
        ({"intra_op_num_threads": 2, "optimized_model_filepath": "stolen"}, True),
        ({"_entries": 1, "initializers": [], "providers": ["openvino"]}, True),
        ({"execution_mode": 77}, False),
        ({"intra_op_num_threads": "many"}, False),
        ([], True),
        (5, False),
    ],
)
def test_a_model_sets_few_options(
    entries: Any, is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnx

    proto = onnx.load_from_string(model(SUM))
    entry = proto.metadata_props.add()
    entry.key, entry.value = "ort_config", json.dumps({"session_options": entries})
    monkeypatch.setenv("ORT_LOAD_CONFIG_FROM_MODEL", "1")
    monkeypatch.chdir(tmp_path)
    if not is_right:
        with pytest.raises(RuntimeError, match="ORT config"):
            ours.InferenceSession(proto.SerializeToString())
        return
    options = ours.InferenceSession(proto.SerializeToString()).get_session_options()
    assert (options.optimized_model_filepath, options.providers) == ("", [])
    assert not list(tmp_path.glob("stolen*"))


def test_dynamic_dimensions_are_fixed_by_the_options() -> None:
    options, theirs = ours.SessionOptions(), onnxruntime.SessionOptions()
    for each in (options, theirs):
        each.add_free_dimension_override_by_name("N", 2)
        each.add_free_dimension_override_by_name("nothing", 4)
    session = ours.InferenceSession(model(SUM), options)
    real = onnxruntime.InferenceSession(model(SUM), theirs)
    assert [a.shape for a in session.get_inputs()] == [a.shape for a in real.get_inputs()]
    wrong = {"x": np.ones((3, 3), np.float32), "y": np.ones((3, 3), np.float32)}
    assert outcome(session, None, wrong) == outcome(real, None, wrong) == "InvalidArgument"


def test_bound_inputs_and_outputs() -> None:
    session, _ = both(SUM)
    x, y = np.full((2, 3), 2, np.float32), np.full((2, 3), 3, np.float32)
    target = np.empty((2, 3), np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_input("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_output("w")
    binding.bind_output("z", "cpu", 0, np.float32, target.shape, target.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(target, x + y)
    _same(binding.copy_outputs_to_cpu(), [x * y, x + y])
    binding.bind_ortvalue_output(
        "z", ours.OrtValue.ortvalue_from_shape_and_type((2, 3), np.float32)
    )
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.get_outputs()[1].numpy(), x + y)
    binding.clear_binding_inputs()
    with pytest.raises(ValueError, match="not bound"):
        session.run_with_iobinding(binding)
    with pytest.raises(ours.errors.InvalidArgument, match="there are x, y"):
        binding.bind_cpu_input("other", x)


def test_runs_are_asynchronous() -> None:
    session, _ = both(SUM)
    feed = {name: np.ones((2, 3), np.float32) for name in "xy"}
    results: list[Any] = []
    done = threading.Event()

    def callback(outputs: Any, data: Any, error: str) -> None:
        results.append((outputs, data, error))
        done.set()

    session.run_async(["z"], feed, callback, "data")
    assert done.wait(30)
    [(outputs, data, error)] = results
    _same(outputs, [feed["x"] + feed["y"]])
    assert (data, error) == ("data", "")


def test_errors_of_asynchronous_runs() -> None:
    session, real = both(SUM)
    feed = {name: np.ones((2, 3), np.float32) for name in "xy"}
    errors: list[str] = []
    done = threading.Event()

    def callback(outputs: Any, data: Any, error: str) -> None:
        errors.append(error)
        done.set()

    session.run_async(["nothing"], feed, callback, None)
    assert done.wait(30)
    assert "Invalid output name:nothing" in errors[0]
    for each in (session, real):
        with pytest.raises(ValueError, match="Required inputs"):
            each.run_async(None, {"x": feed["x"]}, callback, None)


def test_named_sizes_of_inputs_may_differ(caplog: pytest.LogCaptureFixture) -> None:
    session, real = both(PAIR)
    same = {"x": np.ones((2, 3), np.float32), "y": np.zeros((2, 3), np.float32)}
    _same(session.run(None, same), real.run(None, same))
    assert not caplog.records
    for rows in (4, 1, 0):
        feed = {"x": np.ones((2, 3), np.float32), "y": np.zeros((rows, 3), np.float32)}
        _same(session.run(None, feed), real.run(None, feed))
    assert [r for r in caplog.records if "compiled without names" in r.message] != []
    wrong = {"x": np.ones((2, 3), np.float32), "y": np.zeros((2, 4), np.float32)}
    assert outcome(session, None, wrong) == outcome(real, None, wrong) == "InvalidArgument"
    described = [(a.name, a.type, a.shape) for a in session.get_inputs()]
    assert described == [(a.name, a.type, a.shape) for a in real.get_inputs()]


def test_a_run_is_terminated() -> None:
    session, real = both(SUM)
    feed = {name: np.ones((2, 3), np.float32) for name in "xy"}
    options, theirs = ours.RunOptions(), onnxruntime.RunOptions()
    _same(session.run(None, feed, options), real.run(None, feed, theirs))
    options.terminate = theirs.terminate = True
    assert outcome(session, None, feed, options) == outcome(real, None, feed, theirs) == "Fail"


def test_a_profile_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ours.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, "mine"
    session = ours.InferenceSession(model(SUM), options)
    session.run(None, {name: np.ones((2, 3), np.float32) for name in "xy"})
    name = session.end_profiling()
    assert name.startswith("mine_")
    events = json.loads((tmp_path / name).read_text(encoding="utf-8"))
    assert {event["name"] for event in events} == {"model_loading_uri", "model_run"}
    assert session.end_profiling() == ""


def test_a_compiled_model_is_written_and_loaded(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.chips")
    session = ours.InferenceSession(model(SUM), options)
    feed = {name: np.ones((2, 3), np.float32) for name in "xy"}
    loaded = ours.InferenceSession(options.optimized_model_filepath)
    _same(loaded.run(None, feed), session.run(None, feed))
    assert [arg.name for arg in loaded.get_inputs()] == ["x", "y"]


@pytest.mark.parametrize("content", [b"", b"no model", model(SUM)[:-9], model("g () => () {}")])
def test_files_that_are_no_models(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    for source in (path, content):
        with pytest.raises(ours.errors.OnnxRuntimeError, match="ONNXRuntimeError"):
            ours.InferenceSession(source)


def test_no_file_and_no_source() -> None:
    with pytest.raises(ours.errors.NoSuchFile, match="File doesn't exist"):
        ours.InferenceSession("nothing.onnx")
    with pytest.raises(TypeError, match="Unable to load from type"):
        ours.InferenceSession(7)  # type: ignore[arg-type]
