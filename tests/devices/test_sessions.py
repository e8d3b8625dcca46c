"""Sessions: outputs that become inputs of the next run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnxruntime import InferenceSession
from tests.devices.transformers import WORDS, decoder
from tests.modelling import DelegatingDevice, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, DeviceLost, Options, Program, Sizing
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    InputError,
    Model,
    Operand,
    TensorType,
    symbol,
    unknown,
)
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.indexing import ScatterND
from crosschip.ops.standard.joining import Concat
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.copies import Copied

n = symbol("n")

ENGINES = [
    *(["onnxruntime"], ["openvino"], ["reference"]),
    ["openvino", "onnxruntime"],
    ["onnxruntime", "reference"],
]


@pytest.fixture(scope="session")
def text() -> onnx.ModelProto:
    """Return a decoder of tokens with carried keys and values."""
    return decoder()


def by_hand(model: onnx.ModelProto, prompt: Array, count: int) -> list[dict[str, Array]]:
    """Return the outputs of onnxruntime with keys and values passed explicitly."""
    session = InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    past = np.zeros((len(prompt), 2, 0, 8), np.float32)
    kept = {f"past_key_values.0.{of}": past for of in ("key", "value")}
    tokens, made = prompt, []
    for _ in range(count):
        seen = kept["past_key_values.0.key"].shape[2] + tokens.shape[1]
        mask = np.ones((len(prompt), seen), np.int64)
        found = session.run(None, {"input_ids": tokens, "attention_mask": mask, **kept})
        made.append(dict(zip(names, found, strict=True)))
        kept = {f"past_key_values.0.{of}": made[-1][f"present.0.{of}"] for of in ("key", "value")}
        tokens = made[-1]["next"]
    return made


def generated(session: Any, prompt: Array, count: int) -> list[dict[str, Array]]:
    """Return the outputs of a session of that model."""
    tokens, seen, made = prompt, 0, []
    for _ in range(count):
        seen += tokens.shape[1]
        mask = np.ones((len(prompt), seen), np.int64)
        made.append(session.run({"input_ids": tokens, "attention_mask": mask}))
        tokens = made[-1]["next"]
    return made


def assert_alike(made: list[dict[str, Array]], expected: list[dict[str, Array]]) -> None:
    for ours, right in zip(made, expected, strict=True):
        assert set(ours) == {"logits", "next"}
        np.testing.assert_array_equal(ours["next"], right["next"])
        np.testing.assert_allclose(ours["logits"], right["logits"], rtol=1e-4, atol=1e-5)


def prompt_of(batch: int, length: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(2, WORDS, (batch, length))


@pytest.mark.parametrize("devices", ENGINES, ids="-".join)
def test_keys_and_values_stay_with_the_session(text: onnx.ModelProto, devices: list[str]) -> None:
    pins = {"Softmax": devices[1]} if len(devices) > 1 else {}
    with crosschip.compile(
        text, devices, placement=crosschip.PlacementOptions(pin=pins), cache=False
    ) as compiled:
        assert len({segment.device for segment in compiled.placement.segments}) == len(devices)
        session = compiled.session()
        for batch, length in ((1, 3), (2, 1)):
            expected = by_hand(text, prompt_of(batch, length), 4)
            assert_alike(generated(session, prompt_of(batch, length), 4), expected)
            for of in ("key", "value"):
                kept = session.state()[f"past_key_values.0.{of}"]
                right = expected[-1][f"present.0.{of}"]
                np.testing.assert_allclose(kept, right, rtol=1e-4, atol=1e-5)
            session.reset()


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_a_driver_in_another_process_hands_state_on(text: onnx.ModelProto, device: str) -> None:
    with crosschip.compile(
        text, [device], placement=crosschip.PlacementOptions(isolate=True), cache=False
    ) as compiled:
        made = generated(compiled.session(), prompt_of(1, 3), 3)
        assert_alike(made, by_hand(text, prompt_of(1, 3), 3))


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_sessions_of_one_model_do_not_disturb_each_other(
    text: onnx.ModelProto, device: str
) -> None:
    prompts = [prompt_of(1, 1 + index, index) for index in range(4)]
    made: dict[int, list[dict[str, Array]]] = {}
    with crosschip.compile(text, [device], cache=False) as compiled:

        def work(index: int) -> None:
            with compiled.session() as session:
                made[index] = generated(session, prompts[index], 5)

        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for index, prompt in enumerate(prompts):
        assert_alike(made[index], by_hand(text, prompt, 5))


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_a_session_begins_where_another_one_is(text: onnx.ModelProto, device: str) -> None:
    expected = by_hand(text, prompt_of(1, 2), 4)
    with crosschip.compile(text, [device], cache=False) as compiled:
        first = compiled.session()
        generated(first, prompt_of(1, 2), 2)
        second = compiled.session(start=first.state())
        for session in (second, first):
            made = session.run(
                {"input_ids": expected[1]["next"], "attention_mask": np.ones((1, 4), np.int64)}
            )
            assert_alike([made], expected[2:3])


@pytest.mark.slow
@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_texts_of_any_lengths_by_turns(text: onnx.ModelProto, device: str) -> None:
    turn = st.tuples(st.integers(0, 1), st.integers(1, 2), st.integers(1, 4), st.booleans())
    with crosschip.compile(text, [device], cache=False) as compiled:
        sessions = compiled.session(), compiled.session()

        @settings(max_examples=15, deadline=None)
        @given(st.lists(turn, min_size=2, max_size=5))
        def check(turns: list[tuple[int, int, int, bool]]) -> None:
            for number, batch, length, wrong in turns:
                prompt = prompt_of(batch, length, number)
                expected = by_hand(text, prompt, 3)
                session = sessions[number]
                session.reset()
                assert_alike(generated(session, prompt, 1), expected[:1])
                if wrong:
                    more = np.ones((batch + 1, length + 1), np.int64)
                    with pytest.raises(InputError, match="past_key_values"):
                        session.run({"input_ids": more[:, :1], "attention_mask": more})
                past = {
                    f"past_key_values.0.{of}": expected[0][f"present.0.{of}"]
                    for of in ("key", "value")
                }
                for given_, right in (({}, expected[1]), (past, expected[1])):
                    inputs = {
                        "input_ids": expected[0]["next"],
                        "attention_mask": np.ones((batch, length + 1), np.int64),
                        **given_,
                    }
                    place = np.empty_like(right["next"])
                    made = compiled.run(inputs, {"next": place}) if given_ else session.run(inputs)
                    assert not given_ or made["next"] is place
                    assert_alike([{n: made[n] for n in ("logits", "next")}], [right])

        check()


def buffered() -> Model:
    """Return a model that writes into a buffer of static size at a counted position."""

    def make(b: Builder, x: Operand, held: Operand, place: Operand) -> tuple[Operand, ...]:
        written = b.add(ScatterND, held, place, x)
        one = b.constant(np.array([[1]], np.int64))
        return written, b.add(Add, place, one), b.add(Mul, written, 2.0)

    int64 = TensorType(ElementType.INT64, (1, 1))
    return model_of(make, float32(1, 2), float32(6, 2), int64)


BUFFERED = {"y0": "x1", "y1": "x2"}


@pytest.mark.parametrize(
    "devices",
    [["onnxruntime"], ["openvino"], ["reference"], ["xla"], ["onnxruntime", "openvino"]],
    ids="-".join,
)
def test_buffers_of_one_size_are_written_again_and_again(devices: list[str]) -> None:
    pins = {"MUL": devices[1]} if len(devices) > 1 else {}
    with crosschip.compile(
        buffered(), devices, placement=crosschip.PlacementOptions(pin=pins), cache=False
    ) as compiled:
        assert len(compiled.placement.segments) == len(devices)
        session = compiled.session(BUFFERED)
        right = np.zeros((6, 2), np.float32)
        for step in range(5):
            x = np.array([[step + 0.5, -step]], np.float32)
            right[step] = x
            (made,) = session.run({"x0": x}).values()
            np.testing.assert_array_equal(made, right * 2)
        state = session.state()
        np.testing.assert_array_equal(state["x1"], right)
        np.testing.assert_array_equal(state["x2"], [[5]])
        # What was handed out is the caller's, and nothing that the session reads.
        state["x1"][...] = 7
        np.testing.assert_array_equal(session.state()["x1"], right)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_a_run_that_fails_leaves_the_state_as_it_was(device: str) -> None:
    with crosschip.compile(buffered(), [device], cache=False) as compiled:
        start = {"x2": np.array([[5]])}
        session = compiled.session(BUFFERED, start)
        x = {"x0": np.ones((1, 2), np.float32)}
        session.run(x)
        before = session.state()
        with pytest.raises(DeviceError, match=r"(?i)scatter_?nd"):
            session.run(x)  # there is no place 6
        for name, array in session.state().items():
            np.testing.assert_array_equal(array, before[name])
        session.reset({"x2": np.array([[1]])})
        session.run(x)
        np.testing.assert_array_equal(session.state()["x2"], [[2]])


def test_what_is_kept_is_not_copied_on_its_way() -> None:
    """Device memory stays on the device, and arrays are passed on."""
    from tests.runtime.test_buffers import Remote

    model = growing()
    with Remote(name="remote") as device, crosschip.compile(model, [device], cache=False) as it:
        session = it.session({"y0": "x1"})
        for step in range(3):
            device.copied.clear()
            session.run({"x0": np.full((1, 2), step, np.float32)})
            if step:  # the input goes there, and the output comes from there
                assert device.copied == ["to the device", "to the host"]


def growing() -> Model:
    """Return a model that appends its input to a carried tensor, and outputs twice that tensor."""

    def make(b: Builder, x: Operand, kept: Operand) -> tuple[Operand, Operand]:
        every = b.add(Concat, [kept, x], 0)
        return every, b.add(Mul, every, 2.0)

    return model_of(make, float32(1, 2), float32(n, 2))


def steps(session: Any, count: int) -> Array:
    for step in range(count):
        (made,) = session.run({"x0": np.full((1, 2), step, np.float32)}).values()
    found: Array = made
    return found


class Turned(DelegatingDevice):
    """A device whose arrays are not in C order, which records what its programs read."""

    def __init__(self) -> None:
        super().__init__(name="turned")
        self.read: list[Array] = []

    def compile(self, model: Model, options: Options) -> Program:
        device = self

        class Turning(ReferenceProgram):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                device.read += inputs
                return [np.asfortranarray(array) for array in super().run(inputs)]

        return Turning(model)


def test_what_is_handed_on_is_in_the_layout_that_programs_read() -> None:
    device = Turned()
    with crosschip.compile(growing(), [device], cache=False) as compiled:
        made = steps(compiled.session({"y0": "x1"}), 4)
        np.testing.assert_array_equal(made, [[0, 0], [2, 2], [4, 4], [6, 6]])
        assert all(array.flags.c_contiguous for array in device.read)
        assert compiled.copies[Copied.BETWEEN].count == 3  # of one row, both layouts are the same


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("shape", [(2,), (1, 3), (1, 1, 2)])
def test_inputs_of_other_shapes_are_refused_in_every_run(
    compiled: CompiledModel, shape: tuple[int, ...], begun: bool
) -> None:
    session = compiled.session({"y0": "x1"})
    if begun:
        steps(session, 1)
    with pytest.raises(InputError, match="x0"):
        session.run({"x0": np.zeros(shape, np.float32)})
    steps(session, 1)
    assert len(session.state()["x1"]) == 1 + begun


@pytest.fixture
def compiled() -> Iterator[CompiledModel]:
    with crosschip.compile(growing(), ["reference"], cache=False) as model:
        yield model


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"y2": "x1"}, "the model has no output 'y2'.*; its outputs are y0, y1"),
        ({"y0": "x2"}, "the model has no input 'x2'"),
        ({"z*": "x*"}, r"no output fits 'z\*'; the outputs are y0, y1"),
        ({"*": "*1"}, r"the model has no input 'y01'"),
        ({"y*": "x1"}, r"'y\*' and 'x1' must both have one \* or none"),
        ({"y0": "x1", "y1": "x1"}, "outputs 'y0' and 'y1' both become input 'x1'; name one"),
        ({"y0": 1}, "state pairs names of outputs and inputs, not 'y0' and 1"),
        (["y0"], r"state is \['y0'\], but must be like"),
        ({}, "state is {}, but must be like"),
        (None, "no output is named as exporters name what the next run reads; say which"),
    ],
)
def test_pairs_must_name_outputs_that_inputs_take(
    compiled: CompiledModel, state: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        compiled.session(state)


def test_types_must_agree() -> None:
    def make(b: Builder, x: Operand, kept: Operand) -> Operand:
        return b.add(Add, x, x)

    model = model_of(make, TensorType(ElementType.INT64, (2,)), float32(2))
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        told = r"output 'y0' is int64\[2\], which cannot become input 'x1' of float32\[2\]"
        with pytest.raises(InputError, match=told):
            compiled.session({"y0": "x1"})


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ({"x0": np.zeros(2)}, "the session does not keep an input 'x0'.*; it keeps x1"),
        ({"x1": np.zeros((1, 3), np.float32)}, r"start of 'x1' has shape \[1, 3\], but"),
        ({"x1": np.zeros((1, 2), np.float64)}, "start of 'x1' is float64, but the model takes"),
        ([1], r"start is \[1\], but must be arrays by the names of inputs"),
    ],
)
def test_what_a_session_starts_with_must_fit(
    compiled: CompiledModel, start: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        compiled.session({"y0": "x1"}, start)
    session = compiled.session({"y0": "x1"})
    with pytest.raises(InputError, match=told):
        session.reset(start)


def test_a_session_starts_with_what_it_is_given(compiled: CompiledModel) -> None:
    start = np.full((2, 2), 9, np.float32)
    session = compiled.session({"y0": "x1"}, {"x1": start})
    start[...] = 0 if session.state()["x1"] is start else 9
    np.testing.assert_array_equal(steps(session, 1), [[18, 18], [18, 18], [0, 0]])
    session.reset()
    assert len(steps(session, 2)) == 4
    session.reset({"x1": np.zeros((0, 2), np.float32)})
    assert len(steps(session, 2)) == 2


def test_state_that_nobody_knows_yet_is_an_error(compiled: CompiledModel) -> None:
    session = compiled.session({"y0": "x1"})
    with pytest.raises(InputError, match="what 'x1' begins with shows in the first run"):
        session.state()
    steps(session, 1)
    assert session.state()["x1"].shape == (1, 2)


def test_sizes_without_names_must_be_given() -> None:
    def make(b: Builder, x: Operand, kept: Operand) -> Operand:
        return b.add(Concat, [kept, x], 0)

    model = model_of(make, float32(1, 2), float32(unknown(), 2))
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        session = compiled.session({"y0": "x1"})
        with pytest.raises(InputError, match=r"the first value of 'x1' .* is unknown.*start="):
            session.run({"x0": np.zeros((1, 2), np.float32)})
        session.reset({"x1": np.zeros((0, 2), np.float32)})
        assert session.run({"x0": np.zeros((1, 2), np.float32)}) == {}


def test_what_is_kept_is_not_given(compiled: CompiledModel) -> None:
    session = compiled.session({"y0": "x1"})
    x = np.zeros((1, 2), np.float32)
    with pytest.raises(InputError, match=r"input 'x1' is kept by the session; reset\(start=…\)"):
        session.run({"x0": x, "x1": x})
    with pytest.raises(InputError, match="input 'x0' is missing"):
        session.run({})
    assert "keeps x1" in repr(session)


def test_what_is_closed_does_not_run(compiled: CompiledModel) -> None:
    session, other = compiled.session({"y0": "x1"}), compiled.session({"y0": "x1"})
    steps(session, 1)
    session.close()
    session.close()
    for use in (lambda: steps(session, 1), session.state, session.reset):
        with pytest.raises(InputError, match="this session has been closed; open another"):
            use()
    steps(other, 1)
    compiled.close()
    with pytest.raises(InputError, match="this compiled model has been closed"):
        steps(other, 1)
    with pytest.raises(InputError, match="this compiled model has been closed"):
        compiled.session({"y0": "x1"})


def test_runs_of_sessions_are_counted(compiled: CompiledModel) -> None:
    steps(compiled.session({"y0": "x1"}), 3)
    statistics = compiled.statistics()
    assert statistics.calls == 3
    assert [segment.runs for segment in statistics.segments] == [3]


def test_sizes_of_state_and_inputs_must_agree() -> None:
    def make(b: Builder, x: Operand, kept: Operand) -> Operand:
        return b.add(Add, x, kept)

    model = model_of(make, float32(n), float32(n))
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        session = compiled.session({"y0": "x1"})
        session.run({"x0": np.zeros(3, np.float32)})
        with pytest.raises(InputError, match=r"input 'x1' has shape \[3\].*where {'n': 2}"):
            session.run({"x0": np.zeros(2, np.float32)})
        session.run({"x0": np.ones(3, np.float32)})
        np.testing.assert_array_equal(session.state()["x1"], [1, 1, 1])


class Fixed(DelegatingDevice):
    """A device that compiles for each length."""

    def capabilities(self) -> Capabilities:
        return Capabilities(sizing=Sizing.FIXED)


def test_a_device_of_fixed_sizes_compiles_for_each_length() -> None:
    with crosschip.compile(growing(), [Fixed()], cache=False) as compiled:
        made = steps(compiled.session({"y0": "x1"}), 3)
    np.testing.assert_array_equal(made, [[0, 0], [2, 2], [4, 4]])


class Failing(DelegatingDevice):
    """A device that fails in its third run."""

    def compile(self, model: Model, options: Options) -> Program:
        inner = super().compile(model, options)
        runs = iter(range(100))

        class Gone(Program):
            def run(self, inputs: Any) -> Any:
                if next(runs) == 2:
                    raise DeviceLost("it is gone")
                return inner.run(inputs)

        return Gone()


def test_state_goes_elsewhere_with_a_run_whose_device_is_lost() -> None:
    with crosschip.compile(growing(), [Failing(), "reference"], cache=False) as compiled:
        made = steps(compiled.session({"y0": "x1"}), 5)
    np.testing.assert_array_equal(made[:, 0], [0, 2, 4, 6, 8])


def counting() -> Model:
    """Return a model that multiplies a carried integer until it exceeds int32."""

    def make(b: Builder, x: Operand, kept: Operand) -> tuple[Operand, Operand]:
        doubled = b.add(Mul, kept, b.constant(np.array(2**10, np.int64)))
        return doubled, b.add(Add, x, 1.0)

    return model_of(make, float32(1), TensorType(ElementType.INT64, (1,)))


@pytest.mark.parametrize("other", ["onnxruntime", "reference"])
def test_numbers_beyond_a_devices_range_go_elsewhere(other: str) -> None:
    with crosschip.compile(counting(), ["openvino", other], cache=False) as compiled:
        session = compiled.session({"y0": "x1"}, {"x1": np.array([3])})
        for _ in range(5):
            session.run({"x0": np.zeros(1, np.float32)})
        np.testing.assert_array_equal(session.state()["x1"], [3 * 2**50])


def test_the_names_of_exporters_are_known(text: onnx.ModelProto) -> None:
    with crosschip.compile(text, ["reference"], cache=False) as compiled:
        kept: Mapping[str, str] = compiled.session().state_outputs
    assert kept == {
        "past_key_values.0.key": "present.0.key",
        "past_key_values.0.value": "present.0.value",
    }


def grouped(cache: str) -> onnx.ModelProto:
    """Grouped-query attention, which appends keys and values or writes them into a buffer.

    Args:
        cache: the size of what it keeps; that of a buffer is `most`.
    """
    kept = "most" if cache == "most" else "total"

    def tensor(name: str, *shape: str | int, of: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, of, shape)

    inputs = [tensor(name, "b", "s", 64 if name == "q" else 32) for name in "qkv"]
    inputs += [tensor(f"past.{of}", "b", 2, cache, 16) for of in "kv"]
    inputs += [tensor("last", "b", of=TensorProto.INT32), tensor("length", 1, of=TensorProto.INT32)]
    outputs = [tensor("y", "b", "s", 64)]
    outputs += [tensor(f"present.{of}", "b", 2, kept, 16) for of in "kv"]
    node = helper.make_node(
        "GroupQueryAttention",
        [value.name for value in inputs],
        [value.name for value in outputs],
        domain="com.microsoft",
        num_heads=4,
        kv_num_heads=2,
    )
    graph = helper.make_graph([node], "grouped", inputs, outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("cache", ["past", "most"])
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_grouped_attention_grows_or_writes_into_a_buffer(device: str, cache: str) -> None:
    model, random = grouped(cache), np.random.default_rng(0)
    right = InferenceSession(model.SerializeToString())
    shape = 1, 2, 12 if cache == "most" else 0, 16
    kept = {f"past.{of}": np.zeros(shape, np.float32) for of in "kv"}
    with crosschip.compile(model, [device], cache=False) as compiled:
        session, length = compiled.session(start=kept), 0
        for count in (3, 1, 1, 1):
            length += count
            given: dict[str, Array] = {
                name: random.standard_normal((1, count, width)).astype(np.float32)
                for name, width in (("q", 64), ("k", 32), ("v", 32))
            }
            given["last"] = np.array([length - 1], np.int32)
            given["length"] = np.array([length], np.int32)
            y, *new = right.run(None, {**given, **kept})
            kept = dict(zip(kept, new, strict=True))
            np.testing.assert_allclose(session.run(given)["y"], y, rtol=1e-4, atol=1e-5)
        for name, array in session.state().items():
            assert array.shape == kept[name].shape
            np.testing.assert_allclose(array[:, :, :length], kept[name][:, :, :length], rtol=1e-6)
