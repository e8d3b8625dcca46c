"""Compiled models as files: what is loaded computes, and says, what was saved."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import stat
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lowering.test_mixed_precision import pairs
from tests.modelling import DelegatingDevice, chain, close, float32, model_of, outputs_of
from tests.random_models import Example, examples

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, Device, Options, Program
from crosschip.ir import (
    Array,
    Builder,
    CacheError,
    DeviceError,
    Error,
    If,
    InputError,
    Loop,
    Model,
    ModelFileError,
    Operand,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ir.version import VERSION
from crosschip.ops.standard.activation import HardSwish, Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.runtime.artifact.container import FORMAT_VERSION, MAGIC, Artifact, encode
from crosschip.runtime.placement.placement import Placement

X = {"x0": np.array([-1, 0.5], np.float32)}


def compile(model: Model, devices: Sequence[str | Device], **more: Any) -> crosschip.CompiledModel:
    return crosschip.compile(model, devices, **{"cache": False, **more})


def saved(model: Model, devices: Sequence[str | Device], **more: Any) -> bytes:
    """The file of a compiled model."""
    with compile(model, devices, **more) as compiled:
        return compiled.to_bytes()


def told(placement: Placement) -> list[object]:
    """All that a placement says."""
    return [
        placement.summary(),
        placement.devices,
        str(placement.original),
        str(placement.model),
        [(d.name, d.type, d.device, dict(d.reasons)) for d in placement.all_decisions()],
        [(s.device, s.name, [o.name for o in s.operations]) for s in placement.all_segments()],
        [decision.name for decision in placement.fallbacks],
        placement.choice,
        placement.settings,
    ]


class Lean(DelegatingDevice):
    """Saves its programs with their weights."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), holds_weights=True)


class Asking(DelegatingDevice):
    """Loads a program with the weights of the model that it gets."""

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return ReferenceProgram(model)


class Presumptuous(Lean, Asking):
    """The same, but says that it does not need them."""


MAKERS: dict[str, Callable[[], list[DelegatingDevice]]] = {
    "one": lambda: [Lean(name="a")],
    "decomposing": lambda: [
        Lean(name="a", declines=["HARD_SWISH", "FULLY_CONNECTED", "BATCH_NORMALIZATION"]),
    ],
    "several": lambda: [
        Lean(name="a", declines=["ADD", "RELU", "CONV_2D", "SLICE"]),
        Asking(name="b", declines=["SLICE", "CONCAT"]),
        DelegatingDevice(name="c"),
    ],
}


@pytest.mark.slow
@settings(max_examples=40)
@given(examples(), st.sampled_from(sorted(MAKERS)), st.integers(0, 3))
def test_what_is_loaded_is_what_was_saved(example: Example, kind: str, joined: int) -> None:
    check_copies(example, MAKERS[kind], {"min_segment": joined} if joined > 1 else {})


@settings(max_examples=20)
@given(examples(quantized=True))
def test_quantization_survives(example: Example) -> None:
    check_copies(example, MAKERS["one"], {})


def check_copies(
    example: Example, devices: Callable[[], list[DelegatingDevice]], limits: dict[str, Any]
) -> None:
    """Saved models are loaded as they were, and so is one that was loaded and saved again."""
    with compile(
        example.model, devices(), placement=crosschip.PlacementOptions(**limits)
    ) as compiled:
        expected = compiled.run(example.inputs)
        content = compiled.to_bytes()
    for _ in range(2):
        with crosschip.load_compiled(content, devices=devices()) as loaded:
            assert told(loaded.placement) == told(compiled.placement)
            assert list(loaded.inputs) == list(example.model.inputs)
            assert loaded.token == compiled.token
            actual = loaded.run(example.inputs)
            content = loaded.to_bytes()
        for name, array in expected.items():
            np.testing.assert_array_equal(actual[name], array, strict=True)


def test_a_file_is_loaded_from_wherever_it_is(tmp_path: Path) -> None:
    path = tmp_path / "net.chips"
    with compile(chain(Relu, Tanh), ["reference"]) as compiled:
        compiled.save(path)
        assert compiled.to_bytes() == path.read_bytes()
    for source in (
        path,
        str(path),
        path.read_bytes(),
        io.BytesIO(path.read_bytes()),
        bytearray(path.read_bytes()),
    ):
        with crosschip.load_compiled(source) as loaded:  # type: ignore[arg-type]  # all of them
            close(loaded.run(X)["y0"], outputs_of(chain(Relu, Tanh), X)["y0"])
            assert loaded.report.cache == "file"
            assert loaded.report.milliseconds > 0


def test_nothing_is_compiled_and_devices_are_the_callers(tmp_path: Path) -> None:
    content = saved(chain(Relu), [DelegatingDevice(name="npu")])
    device = DelegatingDevice(name="npu")
    crosschip.load_compiled(content, devices=[device]).close()
    assert (device.compiled, device.closed) == ([], 0)


def controlled() -> tuple[Model, dict[str, Array]]:
    """A loop with a branch in it, and a large constant as its first state."""
    b = Builder("branch")
    y = b.input("y", float32(2048))
    b.output("z", b.add(Add, b.add(Mul, y, b.constant(np.full(2048, 0.5, np.float32))), y))
    then = b.build()
    b = Builder("otherwise")
    y = b.input("y", float32(2048))
    b.output("z", b.add(Neg, y))
    otherwise = b.build()
    b = Builder("body")
    b.input("i", ITERATION)
    going = b.input("going", CONDITION)
    state = b.input("x", float32(2048))
    capture = b.input("which", CONDITION)
    made = b.insert(If.of("if", capture, [state], [then, otherwise]))[0]
    b.output("goes_on", going)
    b.output("next", b.add(Tanh, made))
    body = b.build()
    b = Builder("outer")
    x, which = b.input("x", float32(2048)), b.input("which", CONDITION)
    count = b.input("n", TensorType(ITERATION.element_type, ()))
    first = b.constant(np.linspace(-1, 1, 2048, dtype=np.float32))
    looped = b.insert(Loop.of("loop", count, None, [first], [which], body))[0]
    b.output("y", b.add(Add, looped, x))
    inputs = {
        "x": np.ones(2048, np.float32),
        "which": np.array(True),
        "n": np.array(3),
    }
    return b.build(), inputs


@pytest.mark.parametrize("declined", ["", "TANH", "ADD", "MUL"])
def test_control_flow_that_the_runtime_runs(declined: str) -> None:
    model, inputs = controlled()

    def devices() -> list[DelegatingDevice]:
        return [
            Lean(name="a", declines=["IF", "LOOP", declined]),
            Lean(name="b", declines=["IF", "LOOP"]),
        ]

    with compile(model, devices()) as compiled:
        content = compiled.to_bytes()
    with crosschip.load_compiled(content, devices=devices()) as loaded:
        assert told(loaded.placement) == told(compiled.placement)
        for which in (True, False):
            state = np.linspace(-1, 1, 2048, dtype=np.float32)
            for _ in range(3):
                state = np.tanh(state * 1.5 if which else -state)
            close(loaded.run({**inputs, "which": np.array(which)})["y"], state + 1)


def weighty(weights: Array) -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Relu, b.add(MatMul, x, b.constant(weights)))

    return model_of(make, float32(1, len(weights)))


WEIGHTS = np.random.default_rng(0).standard_normal((256, 64)).astype(np.float32)
ROW = {"x0": np.linspace(-1, 1, 256, dtype=np.float32)[None]}


@pytest.mark.parametrize(
    ("kind", "copies"), [(Lean, 1), (Asking, 2)], ids=["held by programs", "asked for"]
)
def test_weights_are_in_the_file_as_often_as_needed(
    kind: type[DelegatingDevice], copies: int
) -> None:
    content = saved(weighty(WEIGHTS), [kind(name="npu")])
    assert content.count(WEIGHTS.tobytes()) == copies
    with crosschip.load_compiled(content, devices=[kind(name="npu")]) as loaded:
        close(loaded.run(ROW)["y0"], outputs_of(weighty(WEIGHTS), ROW)["y0"])


def test_a_device_that_asks_for_weights_after_all_is_told() -> None:
    content = saved(weighty(WEIGHTS), [Presumptuous(name="npu")])
    with pytest.raises(ModelFileError, match="were left out where the model was saved"):
        crosschip.load_compiled(content, devices=[Presumptuous(name="npu")])


def test_a_constant_that_is_an_output_is_kept() -> None:
    model = model_of(lambda b, x: (b.add(Relu, x), b.constant(WEIGHTS)), float32(2))
    with crosschip.load_compiled(saved(model, ["reference"])) as loaded:
        np.testing.assert_array_equal(loaded.run(X)["y1"], WEIGHTS)


def test_options_survive() -> None:
    """Ranges are kept to, and precision and settings reach the device."""
    given: list[Options] = []

    class Remembering(DelegatingDevice):
        def load(self, saved: bytes, model: Model, options: Options) -> Program:
            given.append(options)
            return super().load(saved, model, options)

    model = model_of(lambda b, x: b.add(Exp, x), float32(symbol("N")))
    devices = [Remembering({}, name="npu")]
    shapes = crosschip.ShapeOptions(ranges={"N": (1, 4)}, profiles=[{"N": 2}])
    content = saved(model, devices, shapes=shapes, threads=3, precision="bfloat16")
    with crosschip.load_compiled(content, devices=devices) as loaded:
        assert loaded.run({"x0": np.zeros(4, np.float32)})["y0"].tolist() == [1] * 4
        with pytest.raises(InputError, match="was compiled for 1 to 4"):
            loaded.run({"x0": np.zeros(5, np.float32)})
    (options,) = given
    assert (options.threads, options.precision.value) == (3, "bfloat16")
    assert options.sizes.profiles == ((("N", 2),),)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_threads_and_performance_are_those_of_where_it_is_loaded(device: str) -> None:
    model = chain(Relu, Exp)
    content = saved(model, [device], threads=2)
    with crosschip.load_compiled(content, threads=1, performance="low", in_flight=3) as loaded:
        options = loaded.options
        assert (options.threads, options.performance.value, options.in_flight) == (1, "low", 3)
        close(loaded.run(X)["y0"], outputs_of(model, X)["y0"])
        again = loaded.to_bytes()
    with crosschip.load_compiled(again) as loaded:
        assert loaded.options == options
    with crosschip.load_compiled(content) as loaded:
        assert loaded.options.threads == 2


@pytest.mark.parametrize("device", ["onnxruntime"])
def test_threads_reach_the_engine(device: str) -> None:
    """The processes' own threads tell: ONNX Runtime starts one fewer than a run may use."""

    def sessions_threads(**given: Any) -> int:
        with crosschip.load_compiled(content, **given):
            return len(os.listdir("/proc/self/task"))

    content = saved(chain(Relu), [device], threads=1)
    least = sessions_threads()
    assert sessions_threads(threads=6) - least == 5


@pytest.mark.parametrize("given", [{"threads": 1}, {"performance": "low"}])
def test_what_is_fixed_in_a_program_is_refused_by_name(given: dict[str, Any]) -> None:
    """As of a vendor's compiler, which makes programs for so many cores."""
    device = DelegatingDevice(name="npu")
    content = saved(chain(Relu), [device])
    (name, value), *_ = given.items()
    told = f"{name} cannot be {value}: the programs of npu were compiled with {name}=.*; compile"
    with pytest.raises(InputError, match=told):
        crosschip.load_compiled(content, devices=[device], **given)
    with crosschip.load_compiled(content, devices=[device], in_flight=3) as loaded:
        assert loaded.options.in_flight == 1


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"threads": 0}, "threads"),
        ({"performance": "fast"}, "performance"),
        ({"in_flight": 0}, "in"),
    ],
)
def test_settings_that_are_none(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        crosschip.load_compiled(saved(chain(Relu), ["reference"]), **given)


def test_the_choice_among_devices_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosschip.runtime.discovery.automatic", lambda: ["reference"])
    with compile(chain(Relu), "auto") as compiled:
        content = compiled.to_bytes()
    with crosschip.load_compiled(content) as loaded:
        assert loaded.placement.choice == compiled.placement.choice


# What cannot be saved.


class Forgetful(DelegatingDevice):
    """Does not save programs."""

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)

        class Unsaved(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

        return Unsaved()


class Failing(DelegatingDevice):
    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)

        class Unsaved(Program):
            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return program.run(inputs)

            def save(self) -> bytes:
                raise RuntimeError("no room")

        return Unsaved()


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (Forgetful, UnsupportedError, r"npu does not save its programs \(segment net.0, 2 "),
        (Failing, DeviceError, r"npu: failed while saving a program: RuntimeError: no room"),
    ],
)
def test_what_cannot_be_saved_says_why(
    tmp_path: Path, kind: type[DelegatingDevice], error: type[Error], message: str
) -> None:
    with compile(chain(Relu, Tanh), [kind(name="npu")]) as compiled:
        with pytest.raises(error, match=message):
            compiled.save(tmp_path / "net.chips")
        with pytest.raises(error, match=message):
            pickle.dumps(compiled)
        assert list(tmp_path.iterdir()) == []
        assert compiled.run(X)["y0"][0] == 0


def test_a_closed_model_is_not_saved(tmp_path: Path) -> None:
    compiled = compile(chain(Relu), ["reference"])
    compiled.close()
    with pytest.raises(InputError, match="has been closed"):
        compiled.save(tmp_path / "net.chips")


def test_places_that_cannot_be_written_to(tmp_path: Path) -> None:
    with compile(chain(Relu), ["reference"]) as compiled:
        places: list[tuple[str | Path, str]] = [
            (tmp_path / "no" / "net", "No such file"),
            (tmp_path, "is no file"),
            (Path("/dev/null"), "is no file"),
            ("a\0b", "null"),
        ]
        for place, why in places:
            with pytest.raises(InputError, match=why):
                compiled.save(place)
    assert Path("/dev/null").is_char_device()


def test_a_file_replaces_another_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.chips"
    path.write_bytes(b"another")
    (tmp_path / ".net.chips.0.part").write_bytes(b"of a killed writer")
    (tmp_path / ".net.other.0.part").write_bytes(b"of somebody else")
    with compile(chain(Relu), ["reference"]) as compiled:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
            with pytest.raises(InputError, match="cannot be written: full"):
                compiled.save(path)
        assert path.read_bytes() == b"another"
        compiled.save(path)
    crosschip.load_compiled(path).close()
    assert sorted(os.listdir(tmp_path)) == [".net.other.0.part", "net.chips"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


# Where it does not fit.


class Newer(DelegatingDevice):
    @property
    def version(self) -> str:
        return "2.0"


class Elsewhere(DelegatingDevice):
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), tied_to=("Linux\nmodel name: Another",))


class Set(DelegatingDevice):
    @classmethod
    def known_properties(cls) -> dict[str, str]:
        return {"cores": "how many"}


@pytest.mark.parametrize(
    ("device", "message"),
    [
        (Newer(name="npu"), "npu 1.0 compiled it, and here is 2.0; compile the model again"),
        (Elsewhere(name="npu"), "npu compiled it for another machine: .* here is '.*Another'"),
        (Set({"cores": "2"}, name="npu"), r"with the properties \{\}, and has \{'cores': '2'\}"),
        (DelegatingDevice(name="gpu"), "needs the device 'npu': there is no device 'npu'"),
    ],
)
def test_a_device_that_does_not_fit_is_told_at_once(device: Device, message: str) -> None:
    content = saved(chain(Relu), [DelegatingDevice(name="npu")])
    with pytest.raises(DeviceError, match=message):
        crosschip.load_compiled(content, devices=[device])


def test_all_that_does_not_fit_is_told_together() -> None:
    content = saved(chain(Relu, Tanh), [DelegatingDevice(name="a", declines=["TANH"]),
                                        DelegatingDevice(name="b")])  # fmt: skip
    with pytest.raises(DeviceError, match=r"a 1\.0 compiled .*; b compiled it for another machine"):
        crosschip.load_compiled(content, devices=[Newer(name="a"), Elsewhere(name="b")])


def test_another_version_of_crosschip_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("crosschip.runtime.artifact.container.VERSION", "9.9")
        content = saved(chain(Relu), ["reference"])
    with pytest.raises(DeviceError, match=r"crosschip 9\.9 compiled it, and this is .*again"):
        crosschip.load_compiled(content)


def test_a_device_that_does_not_load_is_told() -> None:
    class Unloading(DelegatingDevice):
        def load(self, saved: bytes, model: Model, options: Options) -> Program:
            raise ZeroDivisionError("never seen")

    content = saved(chain(Relu), [DelegatingDevice(name="npu")])
    with pytest.raises(DeviceError, match=r"memory: npu: failed while loading .*never seen"):
        crosschip.load_compiled(content, devices=[Unloading(name="npu")])


def test_the_digest_pins_a_file(tmp_path: Path) -> None:
    path = tmp_path / "net.chips"
    path.write_bytes(saved(chain(Relu), ["reference"]))
    with Artifact(path) as file:
        digest = file.digest
    crosschip.load_compiled(path, digest=digest).close()
    crosschip.load_compiled(path, digest=digest.upper()).close()
    path.write_bytes(saved(chain(Tanh), ["reference"]))
    with pytest.raises(ModelFileError, match="another file than the one that was asked for"):
        crosschip.load_compiled(path, digest=digest)


def test_sources_that_are_none(tmp_path: Path) -> None:
    for source, error, message in [
        (tmp_path / "no", ModelFileError, "there is no such file"),
        (tmp_path, ModelFileError, "is not a regular file"),
        (b"", ModelFileError, "is no file that crosschip has saved"),
        (MAGIC, ModelFileError, "cut off in its first bytes"),
        (io.StringIO("text"), InputError, "not open for reading bytes"),
        (None, InputError, "given as a NoneType"),
        (3, InputError, "given as a int"),
    ]:
        with pytest.raises(error, match=message):
            crosschip.load_compiled(source)  # type: ignore[arg-type]  # that is the point


# What is damaged, or made by somebody else.

GOOD = saved(weighty(WEIGHTS[:, :2]), ["reference"])


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_noticed(place: int, bit: int) -> None:
    damaged = bytearray(GOOD)
    damaged[place] ^= 1 << bit
    with pytest.raises(ModelFileError):
        crosschip.load_compiled(bytes(damaged))


@given(st.integers(0, len(GOOD) - 1))
def test_a_file_that_is_cut_off_is_noticed(size: int) -> None:
    with pytest.raises(ModelFileError):
        crosschip.load_compiled(GOOD[:size])


@given(st.binary(min_size=1, max_size=100))
def test_more_at_the_end_is_noticed(more: bytes) -> None:
    with pytest.raises(ModelFileError, match=r"has \d+ bytes where \d+ belong"):
        crosschip.load_compiled(GOOD + more)


@given(st.binary(max_size=200))
def test_other_bytes_are_no_file(content: bytes) -> None:
    for begin in (b"", MAGIC, GOOD[:24], GOOD[:64]):
        with pytest.raises(ModelFileError):
            crosschip.load_compiled(begin + content)


def parts_of(content: bytes) -> tuple[dict[str, Any], list[bytes]]:
    with Artifact(content) as file:
        return dict(file.metadata), list(map(bytes, file.parts()))


def forged(header: object, parts: Sequence[bytes]) -> bytes:
    """A file whose checksums hold, whatever it says."""
    return b"".join(encode("compiled model", header, parts))  # type: ignore[arg-type]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places_in(plain: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values in a JSON document."""
    found = [place]
    if isinstance(plain, dict):
        for key, value in plain.items():
            found += places_in(value, (*place, key))
    if isinstance(plain, list):
        for index, value in enumerate(plain):
            found += places_in(value, (*place, index))
    return found


def put(plain: Any, place: Sequence[Any], value: object) -> Any:
    """A JSON document with another value at a place."""
    if not place:
        return value
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[place[0]] = put(plain[place[0]], place[1:], value)
    return copy


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_a_header_of_another_make_is_refused(data: st.DataObject) -> None:
    """Or it says the same; never is there another error, or another answer."""
    header, parts = parts_of(GOOD)
    place = data.draw(st.sampled_from(places_in(header)))
    changed = put(header, place, data.draw(json_values))
    if isinstance(changed, dict):
        check_forgery(forged(changed, parts))


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_a_placement_of_another_make_is_refused(data: st.DataObject) -> None:
    model, _ = controlled()
    devices = [
        Lean(name="a", declines=["LOOP", "IF", "ADD"]),
        Lean(name="b", declines=["LOOP", "IF", "TANH"]),
    ]
    header, parts = parts_of(saved(model, [*devices]))
    placement = json.loads(parts[1])
    place = data.draw(st.sampled_from(places_in(placement)))
    parts[1] = json.dumps(put(placement, place, data.draw(json_values))).encode()
    check_forgery(forged(header, parts), devices)


def check_forgery(content: bytes, devices: Sequence[Device] = ()) -> None:
    with suppress(Error):
        crosschip.load_compiled(content, devices=devices).close()


@pytest.mark.parametrize("number", [0, 1])
def test_a_part_of_something_else_is_refused(number: int) -> None:
    header, parts = parts_of(GOOD)
    for content in (b"", b"{}", b"[" * 10_000, b"\xff", parts[1 - number]):
        others = [*parts]
        others[number] = content
        with pytest.raises(ModelFileError):
            crosschip.load_compiled(forged(header, others))
    with pytest.raises(ModelFileError, match="parts, which do not fit"):
        crosschip.load_compiled(forged(header, parts[:-1]))


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(ModelFileError, match="is a file of a cache, not of a compiled model"):
        crosschip.load_compiled(b"".join(encode("cache", {}, [])))


def test_a_size_that_nobody_could_hold_is_refused() -> None:
    """Before a byte is made room for."""
    metadata, parts = parts_of(GOOD)
    header = {"kind": "compiled model", "crosschip": VERSION, "entry": None, "metadata": metadata}
    sizes = [{"size": 2**60, "blocks": []}] * len(parts)
    body = json.dumps({**header, "parts": sizes}).encode()
    preamble = struct.pack("<8sII16x", MAGIC, FORMAT_VERSION, len(body))
    content = preamble + hashlib.sha256(preamble + body).digest() + body
    content = content.ljust(len(GOOD), b"\0")
    with pytest.raises(ModelFileError):
        crosschip.load_compiled(content)


def test_a_token_in_a_file_is_held_against_the_one_that_is_asked_for() -> None:
    with compile(chain(Relu), ["reference"]) as compiled:
        content, token = compiled.to_bytes(), compiled.token
    assert len(token) == 32
    crosschip.load_compiled(content, token=token).close()
    with pytest.raises(CacheError, match=f"has the token {token}, not another"):
        crosschip.load_compiled(content, token="another")


def test_sigmoid_and_friends_survive_decomposition() -> None:
    """A decomposition is saved as it was, since devices had a say in it."""
    model = chain(HardSwish, Sigmoid)
    devices = [Lean(name="a", declines=["HARD_SWISH"])]
    with compile(model, devices) as compiled:
        (decision, _) = compiled.placement.decisions
        assert len(decision.parts) > 1
        content = compiled.to_bytes()
    with crosschip.load_compiled(content, devices=devices) as loaded:
        assert told(loaded.placement) == told(compiled.placement)
        close(loaded.run(X)["y0"], outputs_of(model, X)["y0"])


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_wishes_survive(tmp_path: Path, device: str) -> None:
    """Saved or kept under a token: the options, what engines were told, the mixed precision."""
    wishes: dict[str, Any] = {
        "configuration": crosschip.Configuration(in_flight=3, performance="low"),
        "placement": crosschip.PlacementOptions(mixed_precision="MatMul\n"),
    }
    path = tmp_path / "quantized.onnx"
    onnx.save(pairs(), path)
    cache = crosschip.CacheOptions(tmp_path / "cache", token="wishes")
    with crosschip.compile(path, device, cache=cache, **wishes) as compiled:
        assert compiled.placement.in_float == ("mixed",)
        assert (compiled.options.in_flight, compiled.options.performance) == (3, "low")
        content = compiled.to_bytes()
    with crosschip.compile(path, device, cache=cache, **wishes) as again:
        assert again.report.cache == "hit"
        for loaded in (again, crosschip.load_compiled(content)):
            assert loaded.options == compiled.options
            assert loaded.placement.in_float == compiled.placement.in_float
            assert loaded.placement.settings == compiled.placement.settings
            assert loaded._requests.workers == 3
            loaded.close()
    changes: list[dict[str, Any]] = [
        {"configuration": crosschip.Configuration(in_flight=2, performance="low")},
        {"configuration": crosschip.Configuration(in_flight=3, performance="high")},
        {"placement": None},
    ]
    for change in changes:
        with crosschip.compile(path, device, cache=cache, **wishes | change) as other:
            assert other.report.cache == "miss"


def test_a_compiled_model_is_not_compiled(tmp_path: Path) -> None:
    path = tmp_path / "net.chips"
    path.write_bytes(GOOD)
    for source in (path, str(path), GOOD):
        with pytest.raises(InputError, match=r"is compiled already; load it with .*load_compiled"):
            crosschip.compile(source, "reference")
